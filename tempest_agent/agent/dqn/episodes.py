"""Returns and lengths of finished episodes, as SB3's logger and callbacks expect them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.agent.games.interface import Step
from tempest_agent.envs.api.episode_statistics import EpisodeStatistics

from .games_vec_env import game_infos


class Episodes:
    """Adds up the rewards of ``num_games`` games."""

    def __init__(self, num_games: int) -> None:
        self._statistics = EpisodeStatistics(num_games)

    def reset(self, games: NDArray[np.bool_] | None = None) -> None:
        """Reset the counts of ``games`` (bool ``(N,)``, all if left out)."""
        self._statistics.reset(games)

    def infos(self, step: Step, given: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
        """Return SB3's infos of a step: ``episode`` and ``TimeLimit.truncated`` where one ended.

        Args:
            step: the outcome of a decision of every game.
            given: the environments' own infos, which have both; None if there are none.
        """
        self._statistics.add(step.reward)
        over: NDArray[np.bool_] = step.game_over
        infos = given or game_infos(step)
        for game, episode in self._statistics.pop(over).items():
            if given is None:
                cut = bool(step.truncated[game] and not step.terminated[game])
                infos[game]["TimeLimit.truncated"] = cut
                infos[game]["episode"] = episode
        return infos

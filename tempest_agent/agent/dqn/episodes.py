"""Returns and lengths of finished episodes, as SB3's logger, callbacks and users expect them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.agent.games.interface import Step
from tempest_agent.envs.api.episode_statistics import EpisodeStatistics

from .games_vec_env import game_infos


class Episodes:
    """Adds up the rewards of ``num_games`` games.

    Episodes that were under way at a resume are not reported: their beginning is not known.
    """

    def __init__(self, num_games: int) -> None:
        self._statistics = EpisodeStatistics(num_games)
        self._known = np.ones(num_games, np.bool_)

    def begin(self, games: NDArray[np.bool_] | None = None) -> None:
        """``games`` (bool ``(N,)``, all if left out) begin anew."""
        self._statistics.reset(games)
        self._known[slice(None) if games is None else games] = True

    def resume(self) -> None:
        """All games go on from somewhere in their middle."""
        self.begin()
        self._known[:] = False

    def infos(self, step: Step, given: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
        """SB3's infos of a step: ``episode`` and ``TimeLimit.truncated`` where one ended.

        Args:
            step: what a decision of every game led to.
            given: the environments' own infos, which know better; None if they have none.
        """
        self._statistics.add(step.reward)
        over: NDArray[np.bool_] = step.game_over
        infos = given or game_infos(step)
        for game, episode in self._statistics.pop(over).items():
            if given is None:
                cut = bool(step.truncated[game] and not step.terminated[game])
                infos[game]["TimeLimit.truncated"] = cut
                if self._known[game]:
                    infos[game]["episode"] = episode
        self._known |= over
        return infos

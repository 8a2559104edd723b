"""A batch of games as a Stable-Baselines3 environment with box actions.

The training loop plays the batch directly; callbacks and SB3's ``evaluate_policy`` use this form.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvStepReturn

from tempest_agent.agent.games.env_games import EnvGames
from tempest_agent.agent.games.interface import Games, Step
from tempest_agent.agent.games.spaces import action_space, observation_space
from tempest_agent.agent.networks.actions import SPINNER_COUNTS
from tempest_agent.envs.api.episode_statistics import EpisodeStatistics
from tempest_agent.envs.messages import shown


def from_box(actions: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.uint8]]:
    """Return knob counts and buttons for box actions ``(N, 3)``."""
    spin = np.round(np.clip(actions[:, 2], -1.0, 1.0) * SPINNER_COUNTS).astype(np.int8)
    buttons = (actions[:, 0] > 0).astype(np.uint8) + np.uint8(2) * (actions[:, 1] > 0)
    return spin, buttons.astype(np.uint8)


def game_infos(step: Step) -> list[dict[str, Any]]:
    """Return the ``score`` of every game, and its ``level`` if known."""
    if step.level is None:
        return [{"score": score} for score in step.score.tolist()]
    both = zip(step.score.tolist(), step.level.tolist(), strict=True)
    return [{"score": score, "level": level} for score, level in both]


class GamesVecEnv(VecEnv):
    """``games`` behind SB3's interface, with same-step autoreset."""

    def __init__(self, games: Games) -> None:
        self.games = games
        self.render_mode: str | None = None
        super().__init__(games.num_games, observation_space(games.layout), action_space())
        self._actions: NDArray[np.float32] | None = None
        self._episodes = EpisodeStatistics(games.num_games)

    def reset(self) -> NDArray[np.float32]:
        self.games.reset()
        self._episodes.reset()
        return self._observation()

    def step_async(self, actions: NDArray[np.float32]) -> None:
        self._actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        if self._actions is None:
            raise RuntimeError("step_wait() before step_async(): call step()")
        step = self.games.step(*from_box(self._actions))
        self._actions = None
        self._episodes.add(step.reward)
        infos = game_infos(step)
        for i, episode in self._episodes.pop(step.game_over).items():
            cut = bool(step.truncated[i] and not step.terminated[i])
            infos[i]["TimeLimit.truncated"] = cut
            infos[i]["terminal_observation"] = step.final_codes[i].astype(np.float32) / 127.0
            infos[i]["episode"] = episode
        return self._observation(), step.reward, step.game_over, infos

    def _observation(self) -> NDArray[np.float32]:
        return self.games.observe().astype(np.float32) / np.float32(127.0)

    def close(self) -> None:
        """Do nothing: the games stay usable."""

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        return [getattr(self, attr_name)] * len(self._indices(indices))

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        setattr(self, attr_name, value)

    def env_method(
        self,
        method_name: str,
        *method_args: Any,
        indices: VecEnvIndices = None,
        **method_kwargs: Any,
    ) -> list[Any]:
        raise AttributeError(f"the games have no method {shown(method_name)}; use .games directly")

    def env_is_wrapped(self, wrapper_class: type[Any], indices: VecEnvIndices = None) -> list[bool]:
        # Returns and lengths are in info["episode"], as Monitor would put them there.
        monitored = wrapper_class.__name__ == "Monitor"
        return [monitored] * len(self._indices(indices))

    def _indices(self, indices: VecEnvIndices) -> Sequence[int]:
        return list(self._get_indices(indices))


def games_of(env: VecEnv) -> Games:
    """Return the batch of games behind ``env``, or its environments as games."""
    return env.games if isinstance(env, GamesVecEnv) else EnvGames(env)

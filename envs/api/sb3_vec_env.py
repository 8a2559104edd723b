"""The games as a Stable-Baselines3 ``VecEnv``, without a process or a copy per game.

Needs ``stable-baselines3`` to be installed.  Its algorithms take ``action_type="box"`` (SAC, PPO,
TD3) or ``"discrete"`` (DQN, PPO); dict actions they refuse.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from tempest_agent.envs.messages import shown

from .vector_env import TempestVectorEnv


class TempestVecEnv(VecEnv):
    """``num_envs`` games; finished ones begin anew within the step.

    Takes the arguments of ``TempestVectorEnv`` except ``autoreset_mode``.  The infos of a step in
    which a game ended hold ``terminal_observation``, ``TimeLimit.truncated`` and, as a ``Monitor``
    would give it, ``episode`` with reward ``r`` and length ``l``; they describe the old game.

    Raises ``ValueError`` for ``action_type="hybrid"``.
    """

    def __init__(self, num_envs: int = 1, action_type: str = "box", **options: Any) -> None:
        if action_type == "hybrid":
            raise ValueError(
                "action_type='hybrid': Stable-Baselines3 refuses dict actions; "
                "use 'box' (SAC, PPO, TD3) or 'discrete' (DQN)"
            )
        self.games = TempestVectorEnv(
            num_envs, autoreset_mode=AutoresetMode.SAME_STEP, action_type=action_type, **options
        )
        self._actions: NDArray[Any] | None = None
        self._returns = np.zeros(num_envs)
        self._lengths = np.zeros(num_envs, np.int64)
        super().__init__(
            num_envs, self.games.single_observation_space, self.games.single_action_space
        )

    def reset(self) -> NDArray[Any]:
        """Begin a new game everywhere, with the seeds given to ``seed()`` if there are any."""
        named = any(seed is not None for seed in self._seeds)
        observations, info = self.games.reset(seed=list(self._seeds) if named else None)
        self.reset_infos = _per_game(info, self.num_envs)
        self._reset_seeds()
        self._reset_options()
        self._returns[:] = 0
        self._lengths[:] = 0
        return observations

    def step_async(self, actions: NDArray[Any]) -> None:
        self._actions = actions

    def step_wait(
        self,
    ) -> tuple[NDArray[Any], NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        if self._actions is None:
            raise RuntimeError("step_wait() before step_async(): there is no action to play")
        observations, rewards, terminated, truncated, info = self.games.step(self._actions)
        self._actions = None
        done = terminated | truncated
        final = info.pop("final_obs", None)
        last = info.pop("final_info", None)
        info["TimeLimit.truncated"] = np.zeros(self.num_envs, np.bool_)
        infos = _per_game(info, self.num_envs)
        self._returns += rewards
        self._lengths += 1
        for game in np.flatnonzero(done).tolist():
            infos[game] = {
                **_of_game(last, game),
                "terminal_observation": final[game],
                "TimeLimit.truncated": bool(truncated[game]),
                "episode": {"r": float(self._returns[game]), "l": int(self._lengths[game])},
            }
        self._returns[done] = 0
        self._lengths[done] = 0
        return observations, rewards.astype(np.float32), done, infos

    def close(self) -> None:
        self.games.close()

    def get_images(self) -> Sequence[NDArray[np.uint8] | None]:
        pictures = self.games.render()
        return [None] * self.num_envs if pictures is None else list(pictures)

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        value = getattr(self.games, attr_name)
        return [value for _ in self._chosen(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError(
            f"set_attr({shown(attr_name)}): the games share their settings; "
            "make a new TempestVecEnv with other options"
        )

    def env_method(
        self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any
    ) -> list[Any]:
        if method_name != "ram":
            raise NotImplementedError(
                f"env_method({shown(method_name)}): the games are one compiled batch; "
                "only 'ram' exists per game, all else is in TempestVecEnv.games"
            )
        images = self.games.ram()
        return [images[game] for game in self._chosen(indices)]

    def env_is_wrapped(self, wrapper_class: type[gym.Wrapper], indices: Any = None) -> list[bool]:
        # It fills info["episode"] itself, which is what SB3 asks for when it looks for a Monitor.
        from stable_baselines3.common.monitor import Monitor

        return [issubclass(wrapper_class, Monitor) for _ in self._chosen(indices)]

    def _chosen(self, indices: Any) -> Iterable[int]:
        return self._get_indices(indices)


def _of_game(info: dict[str, Any], game: int) -> dict[str, Any]:
    return {name: values.item(game) for name, values in info.items() if not name.startswith("_")}


def _per_game(info: dict[str, Any], num_games: int) -> list[dict[str, Any]]:
    names = [name for name in info if not name.startswith("_")]
    columns = [info[name].tolist() for name in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)][:num_games]

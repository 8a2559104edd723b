"""A Gymnasium vector environment behind Stable-Baselines3's interface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import concatenate, create_empty_array
from numpy.typing import NDArray
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvStepReturn

from tempest_agent.errors import UserError, shown


class VectorEnvAdapter(VecEnv):
    """``env`` for SB3's algorithms, callbacks and ``evaluate_policy``.

    The infos of a step in which an episode ended hold ``terminal_observation``,
    ``TimeLimit.truncated`` and ``episode`` (``r`` and ``l``), as SB3 and its ``Monitor`` put them.

    Args:
        env: with same-step autoreset, the one that SB3 knows.

    Raises:
        UserError: another autoreset mode; from ``step``, an episode without its last observation.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        mode = env.metadata.get("autoreset_mode")
        if mode != AutoresetMode.SAME_STEP:
            raise UserError(
                f"the vector environment has autoreset mode {getattr(mode, 'value', mode)}; SB3's "
                "tools need SameStep: gymnasium.make_vec(..., vector_kwargs="
                "{'autoreset_mode': 'SameStep'}), for Tempest autoreset_mode='SameStep'"
            )
        self.env: Any = env
        self.render_mode: str | None = env.render_mode
        self._actions: Any = None
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)
        self._returns = np.zeros(self.num_envs)
        self._lengths = np.zeros(self.num_envs, np.int64)

    def reset(self) -> NDArray[Any]:
        """Begin all episodes anew, with the seeds of ``seed()`` if there are any."""
        seeded = any(seed is not None for seed in self._seeds)
        observation, _ = self.env.reset(seed=list(self._seeds) if seeded else None)
        self._reset_seeds()
        self._returns[:] = 0.0
        self._lengths[:] = 0
        return np.array(observation)

    def step_async(self, actions: Any) -> None:
        """Take actions batched as Gymnasium batches them, or a list of single ones."""
        if isinstance(actions, list):
            empty: Any = create_empty_array(self.action_space, self.num_envs)
            actions = concatenate(self.action_space, actions, empty)
        self._actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        if self._actions is None:
            raise RuntimeError("step_wait() before step_async(): call step()")
        observation, reward, terminated, truncated, info = self.env.step(self._actions)
        self._actions = None
        done = np.asarray(terminated) | np.asarray(truncated)
        self._returns += reward
        self._lengths += 1
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if done.any() and "final_obs" not in info:
            raise UserError(
                "the vector environment ended an episode without info['final_obs'], which "
                "AutoresetMode.SAME_STEP promises: put the last observations there before the "
                "reset, as gymnasium.vector.SyncVectorEnv does"
            )
        for i in np.flatnonzero(done).tolist():
            infos[i] = {
                "terminal_observation": np.array(info["final_obs"][i]),
                "TimeLimit.truncated": bool(truncated[i] and not terminated[i]),
                "episode": {"r": float(self._returns[i]), "l": int(self._lengths[i])},
            }
        self._returns[done] = 0.0
        self._lengths[done] = 0
        return np.array(observation), np.asarray(reward, np.float32), done, infos

    def close(self) -> None:
        self.env.close()

    def get_images(self) -> Sequence[NDArray[np.uint8] | None]:
        pictures = self.env.render()
        return [None] * self.num_envs if pictures is None else list(pictures)

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        value = getattr(self.env, attr_name)
        return [value for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        raise NotImplementedError(f"set_attr({shown(attr_name)}): set it on the vector environment")

    def env_method(
        self,
        method_name: str,
        *method_args: Any,
        indices: VecEnvIndices = None,
        **method_kwargs: Any,
    ) -> list[Any]:
        raise NotImplementedError(f"env_method({shown(method_name)}): call the vector environment")

    def env_is_wrapped(self, wrapper_class: type[Any], indices: VecEnvIndices = None) -> list[bool]:
        return [issubclass(wrapper_class, Monitor) for _ in self._get_indices(indices)]


def as_vec_env(env: Any) -> Any:
    """Gymnasium vector environments adapted; everything else as it is."""
    return VectorEnvAdapter(env) if isinstance(env, VectorEnv) else env

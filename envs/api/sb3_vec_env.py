"""Gymnasium vector environments, and Tempest above all, as Stable-Baselines3 ``VecEnv``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import concatenate, create_empty_array
from numpy.typing import NDArray
from stable_baselines3.common.base_class import maybe_make_env
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvStepReturn

from tempest_agent.envs.messages import shown
from tempest_agent.errors import UserError, one_line

from .episode_statistics import EpisodeStatistics
from .vector_env import TempestVectorEnv

_ENDINGS = ("final_obs", "final_info")


class GymVecEnv(VecEnv):
    """``env`` for SB3's algorithms, callbacks and ``evaluate_policy``.

    Infos are a dictionary for each environment.  In a step in which an episode ended they are those
    of its last step, with ``terminal_observation``, ``TimeLimit.truncated`` and ``episode`` (``r``
    and ``l``), as SB3 and its ``Monitor`` give them; those of the reset are in ``reset_infos``.

    Args:
        env: with same-step autoreset, the only mode that SB3 supports.

    Raises:
        UserError: another autoreset mode; from ``step``, an episode without its last observation,
            or not one reward each.
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
        self._episodes = EpisodeStatistics(self.num_envs)

    def reset(self) -> NDArray[Any]:
        """Reset all environments, with the seeds given to ``seed()`` if there are any."""
        seeded = any(seed is not None for seed in self._seeds)
        observation, info = self.env.reset(seed=list(self._seeds) if seeded else None)
        self.reset_infos = infos_of(info, self.num_envs)
        self._reset_seeds()
        self._episodes.reset()
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
        require_rewards(reward, self.num_envs)
        self._episodes.add(reward)
        last, final = info.get("final_obs"), infos_of(info.get("final_info", {}), self.num_envs)
        others = {name: info[name] for name in info if name.lstrip("_") not in _ENDINGS}
        others["TimeLimit.truncated"] = np.zeros(self.num_envs, np.bool_)
        infos = infos_of(others, self.num_envs)
        if last is None and done.any():
            raise UserError(
                "the vector environment ended an episode without info['final_obs'], which "
                "AutoresetMode.SAME_STEP promises: put the last observations there before the "
                "reset, as gymnasium.vector.SyncVectorEnv does"
            )
        for i, episode in self._episodes.pop(done).items():
            self.reset_infos[i] = infos[i]
            del infos[i]["TimeLimit.truncated"]
            infos[i] = {
                # A vector environment's RecordEpisodeStatistics puts it beside the reset's infos.
                "episode": infos[i].pop("episode", episode),
                **final[i],
                "terminal_observation": np.array(last[i]),
                "TimeLimit.truncated": bool(truncated[i] and not terminated[i]),
            }
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
        # It fills info["episode"] itself, which is what SB3 looks for a Monitor for.
        return [issubclass(wrapper_class, Monitor) for _ in self._get_indices(indices)]


class TempestVecEnv(GymVecEnv):
    """``num_envs`` games of Tempest, without a process or a copy per game.

    Takes the arguments of ``TempestVectorEnv`` except ``autoreset_mode``; ``env`` is that vector
    environment.  SB3's algorithms take ``action_type="box"`` (SAC, PPO, TD3) or ``"discrete"``
    (DQN, PPO).

    Raises ``ValueError`` for ``action_type="hybrid"``: SB3 refuses dict actions.
    """

    def __init__(self, num_envs: int = 1, action_type: str = "box", **options: Any) -> None:
        if action_type == "hybrid":
            raise ValueError(
                "action_type='hybrid': Stable-Baselines3 refuses dict actions; "
                "use 'box' (SAC, PPO, TD3) or 'discrete' (DQN)"
            )
        mode = AutoresetMode.SAME_STEP
        super().__init__(
            TempestVectorEnv(num_envs, autoreset_mode=mode, action_type=action_type, **options)
        )

    def env_method(
        self,
        method_name: str,
        *method_args: Any,
        indices: VecEnvIndices = None,
        **method_kwargs: Any,
    ) -> list[Any]:
        """Return the RAM image of each chosen game; games have no other method than ``"ram"``."""
        if method_name != "ram":
            return super().env_method(method_name)
        images = self.env.ram()
        return [images[game] for game in self._get_indices(indices)]


def infos_of(batched: Mapping[str, Any], count: int) -> list[dict[str, Any]]:
    """Return Gymnasium's batched infos as a dictionary for each of ``count`` environments.

    ``_name`` beside ``name`` masks the environments that have it.
    """
    of_all: dict[str, Sequence[Any]] = {}
    of_some: dict[str, tuple[Sequence[Any], list[int]]] = {}
    for name, values in batched.items():
        if name.startswith("_") and name[1:] in batched:
            continue
        entries = _entries(values, count)
        mask = batched.get(f"_{name}")
        if mask is None or mask.all():
            of_all[name] = entries
        else:
            of_some[name] = entries, np.flatnonzero(mask).tolist()
    infos = [dict(zip(of_all, row, strict=True)) for row in zip(*of_all.values(), strict=True)]
    infos = infos or [{} for _ in range(count)]
    for name, (entries, games) in of_some.items():
        for game in games:
            infos[game][name] = entries[game]
    return infos


def _entries(values: Any, count: int) -> Sequence[Any]:
    """Return the entry of each of ``count`` environments in one info."""
    if isinstance(values, Mapping):
        return infos_of(values, count)
    if isinstance(values, np.ndarray) and values.ndim == 1 and len(values) == count:
        # As Python numbers, which single environments mostly give.
        entries: list[Any] = values.tolist()
        return entries
    if isinstance(values, np.ndarray | list | tuple) and len(values) == count:
        return list(values)
    # One value for all of them.
    return [values] * count


def require_rewards(reward: Any, count: int) -> None:
    """Raise ``UserError`` unless ``reward`` is a number for each of ``count`` environments."""
    if np.shape(reward) != (count,):
        raise UserError(
            f"the environments gave rewards of shape {np.shape(reward)}, and {(count,)} is needed, "
            "one number each: add up what each one gives"
        )


def as_vec_env(env: Any) -> Any:
    """Return ``env``; a Gymnasium vector environment is adapted, a named environment made.

    Raises:
        UserError: no environment, or a name that stands for none.
    """
    if isinstance(env, str):
        try:
            return maybe_make_env(env, verbose=0)
        except (gym.error.Error, ImportError, ValueError) as error:
            raise UserError(
                f"env={shown(env)} cannot be made ({one_line(error)}): give an environment, or "
                "the name of one that is registered"
            ) from error
    if env is not None and not isinstance(env, (gym.Env, VecEnv, VectorEnv)):
        raise UserError(
            f"env={shown(env)} must be an environment, a vector environment or a registered name"
        )
    return GymVecEnv(env) if isinstance(env, VectorEnv) else env

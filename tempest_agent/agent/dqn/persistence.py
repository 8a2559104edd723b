"""Saving and loading of ``HybridDQN``, under SB3's names and without pickle.

Files are the checkpoints of ``checkpoint``: tensors and plain values.
"""

from __future__ import annotations

import io
import json
import pathlib
import random
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from typing_extensions import Self

from tempest_agent.agent.checkpoints.checkpoint_files import (
    existing,
    read_checkpoint,
    read_replay,
    with_suffix,
    write_checkpoint,
    write_replay,
)
from tempest_agent.agent.checkpoints.checkpoint_schema import (
    PLAYER,
    check_replay,
    require_entries,
)
from tempest_agent.agent.curriculum.schedules import Schedules, Table
from tempest_agent.agent.games.env_games import EnvGames
from tempest_agent.agent.games.spaces import spaces_to
from tempest_agent.agent.learner.weights import PARAMETERS, parameters_of, put_parameters
from tempest_agent.config import to_dict
from tempest_agent.errors import UserError, one_line

from .loading import load_model

if TYPE_CHECKING:
    from .hybrid_dqn import HybridDQN

_REPLAY_STAMP = "replay"


class Persistence:
    """The part of ``HybridDQN`` that knows files."""

    def state_dict(self: HybridDQN) -> dict[str, Any]:  # type: ignore[misc]
        """Everything an exact continuation needs besides the rows of the replay."""
        return {
            "config": to_dict(self.config),
            "layout": asdict(self.layout),
            "spaces": spaces_to(self.observation_space, self.action_space),
            "exploration_fraction": self.exploration_fraction,
            "step": self.num_timesteps,
            "vector_steps": self.vector_steps,
            "owed": self.owed,
            "teacher_score": self.teacher_score,
            "schedules": self.schedules.to_dict(),
            "curriculum": self.curriculum.state_dict() if self.env is not None else None,
            "learner": self.learner.state_dict(),
            "collector": self.collector.state_dict() if self.env is not None else None,
            "replay": self.replay.state_dict() if self.env is not None else None,
            "teacher": {} if self.teacher is None else self.teacher.state_dict(),
            "guard": self.guard.state_dict(),
            "random": {
                "torch": torch.get_rng_state(),
                "numpy": np.random.get_state(legacy=False),
                "python": random.getstate(),
            },
        }

    def load_state_dict(  # type: ignore[misc]
        self: HybridDQN, state: dict[str, Any], replay: dict[str, NDArray[Any]] | None
    ) -> None:
        """Go on exactly from ``state_dict``; without ``replay`` the buffer fills up anew first."""
        self._load_counters(state)
        if "curriculum" in state:
            self.curriculum.load_state_dict(state["curriculum"])
        self.curriculum.start_levels.apply(self.games)
        self.collector.load_state_dict(state["collector"], self.num_timesteps)
        if self.teacher is not None and state.get("teacher"):
            self.teacher.load_state_dict(state["teacher"])
        if "guard" in state:  # Earlier versions had none.
            self.guard.load_state_dict(state["guard"])
        if replay is None:
            self.replay.load_random(state["replay"])
        else:
            self.replay.load(replay, state["replay"])
        torch.set_rng_state(state["random"]["torch"])
        numpy_state = state["random"]["numpy"]
        inner = {**numpy_state["state"], "key": np.asarray(numpy_state["state"]["key"])}
        np.random.set_state({**numpy_state, "state": inner})
        version, internal, gauss = state["random"]["python"]
        random.setstate((version, tuple(internal), gauss))
        self.episodes.resume()
        self._restart_rates()
        if not isinstance(self.games, EnvGames):
            self._go_on_from(self.games.observe().astype(np.float32) / np.float32(127.0))

    def _load_counters(self: HybridDQN, state: dict[str, Any]) -> None:  # type: ignore[misc]
        self.schedules = Schedules.from_dict(state["schedules"], self.config)
        rate = self.schedules.learning_rate
        self.rate_table = rate if isinstance(rate, Table) else None
        self.learner.load_state_dict(state["learner"])
        self.num_timesteps = int(state["step"])
        self.vector_steps = int(state["vector_steps"])
        self.owed = int(state["owed"])
        self.teacher_score = float(state["teacher_score"])
        self._n_updates = self.learner.updates
        self.policy.step = self.num_timesteps

    def save(  # type: ignore[misc]
        self: HybridDQN,
        path: str | pathlib.Path | io.BufferedIOBase,
        exclude: Iterable[str] | None = None,
        include: Iterable[str] | None = None,
    ) -> None:
        """Write a checkpoint without the replay to ``path`` (not SB3's pickled zip).

        Args:
            path: gets ``.pt`` where it has no suffix.
            exclude: SB3's; a checkpoint is always whole.
            include: SB3's; a checkpoint is always whole.

        Raises:
            UserError: ``path`` is no path, or cannot be written; the file there before stays.
        """
        if not isinstance(path, str | pathlib.Path):
            raise UserError("HybridDQN.save needs a path; a checkpoint is written whole or not")
        write_checkpoint(with_suffix(path), self.state_dict())

    @classmethod
    def load(
        cls,
        path: str | pathlib.Path | io.BufferedIOBase,
        env: Any = None,
        device: torch.device | str = "auto",
        custom_objects: dict[str, Any] | None = None,
        print_system_info: bool = False,
        force_reset: bool = True,
        **kwargs: Any,
    ) -> Self:
        """The model of a checkpoint of ``save``, of ``tempest-agent train``, or a player.

        ``learn(..., reset_num_timesteps=False)`` then goes on with the schedules of the file.  The
        replay is not in it: it fills up first, unless ``load_replay_buffer`` brings it back.

        Args:
            path: with or without ``.pt``.
            env: as in the constructor, with the spaces that the model was trained with and any
                number of environments.  Without one the model can ``predict``, and learn after
                ``set_env``.
            device: ``auto``, ``cpu`` or ``cuda``.
            custom_objects: SB3's; there are no objects in the file.
            print_system_info: SB3's; prints this machine's versions.
            force_reset: SB3's; the games begin anew at the next ``learn``.
            **kwargs: other arguments of the constructor, in place of those of the file.

        Raises:
            UserError: no such file, a damaged one, or one that does not fit ``env`` or ``kwargs``.
        """
        if not isinstance(path, str | pathlib.Path):
            raise UserError("HybridDQN.load needs a path")
        if print_system_info:
            from stable_baselines3.common.utils import get_system_info

            get_system_info()
        model: Any = load_model(cls, existing(pathlib.Path(path)), env, device, kwargs)
        loaded: Self = model
        return loaded

    def get_parameters(self: HybridDQN) -> dict[str, dict[str, Any]]:  # type: ignore[misc]
        """Copies of the state of ``online``, ``target`` and ``average`` network and ``optimizer``.

        ``average`` is the one that plays.
        """
        return parameters_of(self.learner)

    def set_parameters(  # type: ignore[misc]
        self: HybridDQN,
        load_path_or_dict: str | pathlib.Path | Mapping[str, Any],
        exact_match: bool = True,
        device: torch.device | str = "auto",
    ) -> None:
        """Take over weights; nothing is changed unless all of them fit.

        Where networks are given without ``optimizer``, its moments begin at zero: those of other
        weights would push the new ones about.  Of the networks that are not given, target and
        average follow ``online``, or all follow the only one given.

        Args:
            load_path_or_dict: what ``get_parameters`` gave, or the path of a checkpoint.
            exact_match: whether all four entries must be there.
            device: SB3's; weights go where the model is.

        Raises:
            UserError: missing or unknown entries, or weights of another shape.
        """
        if isinstance(load_path_or_dict, Mapping):
            given = dict(load_path_or_dict)
        else:
            path = existing(pathlib.Path(load_path_or_dict))
            content = read_checkpoint(path)
            require_entries(path, content, PLAYER)
            content = content["learner"]
            given = {name: content[name] for name in PARAMETERS if name in content}
        put_parameters(self.learner, given, exact_match)

    def save_replay_buffer(  # type: ignore[misc]
        self: HybridDQN, path: str | pathlib.Path | io.BufferedIOBase
    ) -> None:
        """Write the replay's rows to ``path``, an archive of plain arrays (NumPy's ``.npz``).

        Raises:
            UserError: ``path`` is no path or cannot be written, or there is no replay.
        """
        if not isinstance(path, str | pathlib.Path) or self.env is None:
            raise UserError("save_replay_buffer needs a path, and a model with an environment")
        rest = {
            "state": np.array(json.dumps(self.replay.state_dict())),
            "length": np.array(self.replay.length),
            "observation": self.games.observe(),
            "zap_legal": self.games.zap_legal(),
        }
        write_replay(pathlib.Path(path), _REPLAY_STAMP, {**self.replay.arrays(), **rest})

    def load_replay_buffer(  # type: ignore[misc]
        self: HybridDQN,
        path: str | pathlib.Path | io.BufferedIOBase,
        truncate_last_traj: bool = True,
    ) -> None:
        """Read what ``save_replay_buffer`` wrote; episodes under way then end with a bootstrap.

        Args:
            path: of the file.
            truncate_last_traj: SB3's; always so.

        Raises:
            UserError: no such file, or a replay of another shape; the present one is kept.
        """
        if not isinstance(path, str | pathlib.Path) or self.env is None:
            raise UserError("load_replay_buffer needs a path, and a model with an environment")
        path = pathlib.Path(path)
        what = f"{path} is no replay of HybridDQN; give a file of save_replay_buffer"
        length = (read_replay(path, _REPLAY_STAMP, {"length": 8}) or {}).get("length")
        if length is None or length.shape != () or length.dtype.kind not in "iu":
            raise UserError(what)
        if int(length) != self.replay.length:
            raise UserError(
                f"{path} holds up to {int(length)} decisions of each environment, this "
                f"replay {self.replay.length}; use the same buffer_size and environments"
            )
        seen = self.games.observe()
        largest = self.replay.largest_arrays(self.replay.length * self.n_envs)
        largest |= {"observation": seen.nbytes, "zap_legal": self.n_envs, "state": 100_000}
        arrays = read_replay(path, _REPLAY_STAMP, largest) or {}
        try:
            state = json.loads(str(arrays["state"]))
            left, legal = arrays["observation"], arrays["zap_legal"]
            check_replay(state)
            self.replay.load(arrays, state)
            self.replay.end_games(left.reshape(seen.shape), legal.reshape(self.n_envs))
        except (KeyError, ValueError, RecursionError) as error:
            raise UserError(f"{what} ({one_line(error)[:120]})") from error

"""Saving and loading of ``HybridDQN``: checkpoints of tensors and plain values, without pickle."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch

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
    RUN,
    check_replay,
    require_entries,
)
from tempest_agent.agent.checkpoints.run_checkpoints import MISFITS
from tempest_agent.agent.games.spaces import spaces_from
from tempest_agent.agent.games.tempest_games import PLAIN_LAYOUT, TEMPEST_LAYOUT, TempestGames
from tempest_agent.agent.learner.weights import PARAMETERS
from tempest_agent.agent.loop.state import load_counters
from tempest_agent.agent.loop.training_loop import TrainingLoop
from tempest_agent.agent.networks.layout import Layout
from tempest_agent.config import from_dict
from tempest_agent.envs.api.observations import PLAIN
from tempest_agent.envs.messages import shown
from tempest_agent.errors import UserError, one_line

from .games_vec_env import GamesVecEnv
from .policies import policy_name

_REPLAY_STAMP = "replay"


def save_model(path: Any, state: dict[str, Any]) -> None:
    """Write the checkpoint ``state``; see ``HybridDQN.save``."""
    if not isinstance(path, str | pathlib.Path):
        raise UserError("HybridDQN.save needs a path; a checkpoint is written whole or not")
    write_checkpoint(with_suffix(path), state)


def load_model(
    cls: Any, path: Any, env: Any, device: torch.device | str, kwargs: dict[str, Any]
) -> Any:
    """Return the model, of class ``cls``, in a checkpoint; see ``HybridDQN.load``."""
    if not isinstance(path, str | pathlib.Path):
        raise UserError("HybridDQN.load needs a path")
    path = existing(pathlib.Path(path))
    content = read_checkpoint(path)
    is_player = bool(content.get("player_only"))
    require_entries(path, content, PLAYER if is_player else RUN)
    try:
        config = from_dict(content["config"])
        if not (isinstance(env, GamesVecEnv) and isinstance(env.games, TempestGames)):
            # Other games have no states to value plans in.
            config = replace(config, teacher=replace(config.teacher, labels="action"))
        layout = Layout(**content["layout"])
        policy = policy_name(config.network.encoder)
        model = cls(policy, env, config=config, device=device, _init_setup_model=False, **kwargs)
        if env is None:
            model.observation_space, model.action_space = spaces_from(content, layout)
        if model.exploration_fraction is None:
            model.exploration_fraction = content.get("exploration_fraction")
        model.layout = layout
        model._setup_model()
        if model.layout != layout:
            of_tempest = {TEMPEST_LAYOUT: "features", PLAIN_LAYOUT: PLAIN}
            kind = of_tempest.get(layout)
            like = (
                f"Tempest with obs_type={shown(kind)}" if kind else "an environment like that one"
            )
            raise UserError(
                f"{path} was trained on other observations or actions than {env} has; give {like}"
            )
        if is_player:
            model.set_parameters({"average": content["learner"]["average"]}, exact_match=False)
            model.loop.num_timesteps = int(content["step"])
        else:
            _load_training(model.loop, content, keep_rate=kwargs.get("learning_rate") is not None)
    except MISFITS as error:
        raise UserError(
            f"{path} does not fit this version of tempest-agent or the arguments given "
            f"({one_line(error)}); use the version and settings that wrote it"
        ) from error
    model.num_timesteps = model.policy.step = model.loop.num_timesteps
    model._n_updates = model.loop.learner.updates
    return model


def _load_training(loop: TrainingLoop, content: dict[str, Any], keep_rate: bool) -> None:
    """Load all but games and rows; ``keep_rate`` keeps the learning rates of the arguments."""
    planned, table = loop.curriculum.schedules, loop.learning_rates
    load_counters(loop, content)
    if keep_rate:
        schedules = replace(loop.curriculum.schedules, learning_rate=planned.learning_rate)
        loop.curriculum.schedules, loop.learning_rates = schedules, table
    if not loop.has_games:
        return
    num_envs = int(content["config"]["run"]["num_envs"])
    if content["collector"] is not None and loop.games.num_games == num_envs:
        loop.collector.load_state_dict(content["collector"], with_games=False)
        loop.replay.load_random(content["replay"])
        loop.curriculum.load_state_dict(content["curriculum"])
    loop.restart_throughput()


def parameters_in(source: Any) -> dict[str, Any]:
    """Return the parameters that ``source`` is, or those of the checkpoint at that path."""
    if isinstance(source, Mapping):
        return dict(source)
    path = existing(pathlib.Path(source))
    content = read_checkpoint(path)
    require_entries(path, content, PLAYER)
    learner = content["learner"]
    return {name: learner[name] for name in PARAMETERS if name in learner}


def save_replay(loop: TrainingLoop, path: Any) -> None:
    """Write the replay's rows to ``path``; see ``HybridDQN.save_replay_buffer``."""
    if not isinstance(path, str | pathlib.Path) or not loop.has_games:
        raise UserError("save_replay_buffer needs a path, and a model with an environment")
    rest = {
        "state": np.array(json.dumps(loop.replay.state_dict())),
        "length": np.array(loop.replay.length),
        "observation": loop.games.observe(),
        "zap_legal": loop.games.zap_legal(),
    }
    write_replay(pathlib.Path(path), _REPLAY_STAMP, {**loop.replay.arrays(), **rest})


def load_replay(loop: TrainingLoop, path: Any) -> None:
    """Read the rows that ``save_replay`` wrote; see ``HybridDQN.load_replay_buffer``."""
    if not isinstance(path, str | pathlib.Path) or not loop.has_games:
        raise UserError("load_replay_buffer needs a path, and a model with an environment")
    path, replay, games = pathlib.Path(path), loop.replay, loop.games.num_games
    what = f"{path} is no replay of HybridDQN; give a file of save_replay_buffer"
    length = (read_replay(path, _REPLAY_STAMP, {"length": 8}) or {}).get("length")
    if length is None or length.shape != () or length.dtype.kind not in "iu":
        raise UserError(what)
    if int(length) != replay.length:
        raise UserError(
            f"{path} holds up to {int(length)} decisions of each environment, this "
            f"replay {replay.length}; use the same buffer_size and environments"
        )
    seen = loop.games.observe()
    largest = replay.largest_arrays(replay.length * games)
    largest |= {"observation": seen.nbytes, "zap_legal": games, "state": 100_000}
    arrays = read_replay(path, _REPLAY_STAMP, largest) or {}
    try:
        state = json.loads(str(arrays["state"]))
        last, legal = arrays["observation"], arrays["zap_legal"]
        check_replay(state)
        replay.load(arrays, state)
        replay.end_games(last.reshape(seen.shape), legal.reshape(games))
    except (KeyError, ValueError, RecursionError) as error:
        raise UserError(f"{what} ({one_line(error)[:120]})") from error

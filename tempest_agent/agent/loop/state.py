"""The state of a training loop, as a checkpoint holds it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tempest_agent.agent.curriculum.schedules import Schedules, Table
from tempest_agent.agent.games.spaces import action_space, observation_space, spaces_to
from tempest_agent.config import to_dict

from .training_loop import TrainingLoop


def state_dict(
    loop: TrainingLoop,
    spaces: Mapping[str, Any] | None = None,
    exploration_fraction: float | None = None,
) -> dict[str, Any]:
    """Return everything an exact continuation needs besides the rows of the replay.

    Args:
        loop: whose state.
        spaces: of its environments (``spaces_to``); Tempest's if left out.
        exploration_fraction: share of a run over which exploration falls, for ``HybridDQN``.
    """
    has_games = loop.has_games
    if spaces is None:
        spaces = spaces_to(observation_space(loop.layout), action_space())
    return {
        "config": to_dict(loop.config),
        "layout": asdict(loop.layout),
        "spaces": spaces,
        "exploration_fraction": exploration_fraction,
        "step": loop.num_timesteps,
        "vector_steps": loop.vector_steps,
        "owed": loop.owed,
        "teacher_score": loop.teacher_score,
        "schedules": loop.curriculum.schedules.to_dict(),
        "curriculum": loop.curriculum.state_dict() if has_games else None,
        "learner": loop.learner.state_dict(),
        "collector": loop.collector.state_dict() if has_games else None,
        "replay": loop.replay.state_dict() if has_games else None,
        "teacher": {} if loop.teacher is None else loop.teacher.state_dict(),
        "guard": loop.guard.state_dict(),
        "random": {
            "torch": torch.get_rng_state(),
            "numpy": np.random.get_state(legacy=False),
            "python": random.getstate(),
        },
    }


def load_state_dict(
    loop: TrainingLoop, state: Mapping[str, Any], replay: Mapping[str, NDArray[Any]] | None
) -> None:
    """Continue exactly from ``state_dict``; without the rows ``replay`` it fills up again first."""
    load_counters(loop, state)
    loop.curriculum.load_state_dict(state["curriculum"])
    loop.collector.load_state_dict(state["collector"])
    if loop.teacher is not None and state["teacher"]:
        loop.teacher.load_state_dict(state["teacher"])
    loop.guard.load_state_dict(state["guard"])
    if replay is None:
        loop.replay.load_random(state["replay"])
    else:
        loop.replay.load(replay, state["replay"])
    torch.set_rng_state(state["random"]["torch"])
    numpy_state = state["random"]["numpy"]
    inner = {**numpy_state["state"], "key": np.asarray(numpy_state["state"]["key"])}
    np.random.set_state({**numpy_state, "state": inner})
    version, internal, gauss = state["random"]["python"]
    random.setstate((version, tuple(internal), gauss))
    loop.restart_throughput()


def load_counters(loop: TrainingLoop, state: Mapping[str, Any]) -> None:
    """Load networks, optimiser, schedules and counters; not games, replay and random streams."""
    schedules = Schedules.from_dict(state["schedules"])
    loop.curriculum.schedules = schedules
    rates = schedules.learning_rate
    loop.learning_rates = rates if isinstance(rates, Table) else None
    loop.learner.load_state_dict(state["learner"])
    loop.num_timesteps = int(state["step"])
    loop.vector_steps = int(state["vector_steps"])
    loop.owed = int(state["owed"])
    loop.teacher_score = float(state["teacher_score"])

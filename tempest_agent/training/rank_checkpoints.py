"""Checkpoints of a run of several ranks: one state and one replay, as one process has them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.agent.loop.state import state_dict
from tempest_agent.agent.loop.training_loop import TrainingLoop
from tempest_agent.agent.ranks.merge_states import (
    merge,
    merge_arrays,
    own_part,
    split,
    split_arrays,
)
from tempest_agent.config import Config, to_dict

Arrays = dict[str, NDArray[Any]]


def collect_run(
    loop: TrainingLoop, config: Config, with_replay: bool
) -> tuple[dict[str, Any], Arrays | None]:
    """Return state and replay of the whole run ``config``, complete on rank 0 only."""
    replicas = loop.replicas
    state = state_dict(loop)
    rows = loop.replay.arrays() if with_replay else None
    if replicas.size == 1:
        return state, rows
    parts = replicas.collect({"state": own_part(state), "rows": rows})
    if parts is None:
        return state, rows
    state = merge(state, [part["state"] for part in parts])
    state["config"] = to_dict(config)
    return state, None if rows is None else merge_arrays([part["rows"] for part in parts])


def deal_run(
    loop: TrainingLoop, state: dict[str, Any], replay: Arrays | None
) -> tuple[dict[str, Any], Arrays | None]:
    """Return this rank's part of the run's ``state`` and ``replay``, which rank 0 alone gives."""
    replicas = loop.replicas
    if replicas.size == 1:
        return state, replay
    state = split(state, replicas.rank, replicas.size, state_dict(loop))
    if not replicas.gather(replay is not None)[0]:
        return state, None
    parts = None
    if replay is not None:
        parts = [split_arrays(replay, rank, replicas.size) for rank in range(replicas.size)]
    dealt = replicas.deal(parts)
    return state, {name: np.asarray(column) for name, column in dealt.items()}

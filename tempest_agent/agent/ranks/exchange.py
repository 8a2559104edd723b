"""What ranks send each other besides gradients: checkpoints, replays and networks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.agent.learner.weights import PARAMETERS
from tempest_agent.config import Config, to_dict

from .merge_states import merge, merge_arrays, own_part, split, split_arrays

if TYPE_CHECKING:
    from tempest_agent.agent.dqn.hybrid_dqn import HybridDQN

Arrays = dict[str, NDArray[Any]]


def collect_run(
    algorithm: HybridDQN, config: Config, with_replay: bool
) -> tuple[dict[str, Any], Arrays | None]:
    """State and replay of the whole run ``config``, as one process would have them.

    Only those of the first rank are complete.
    """
    replicas = algorithm.replicas
    state = algorithm.state_dict()
    rows = algorithm.replay.arrays() if with_replay else None
    if replicas.size == 1:
        return state, rows
    parts = replicas.collect({"state": own_part(state), "rows": rows})
    if parts is None:
        return state, rows
    state = merge(state, [part["state"] for part in parts])
    state["config"] = to_dict(config)
    return state, None if rows is None else merge_arrays([part["rows"] for part in parts])


def deal_run(
    algorithm: HybridDQN, state: dict[str, Any], replay: Arrays | None
) -> tuple[dict[str, Any], Arrays | None]:
    """This rank's part of the whole run's ``state`` and, as the first rank has it, ``replay``."""
    replicas = algorithm.replicas
    if replicas.size == 1:
        return state, replay
    state = split(state, replicas.rank, replicas.size, algorithm.state_dict())
    if not replicas.gather(replay is not None)[0]:
        return state, None
    parts = None
    if replay is not None:
        parts = [split_arrays(replay, rank, replicas.size) for rank in range(replicas.size)]
    dealt = replicas.deal(parts)
    return state, {name: np.asarray(column) for name, column in dealt.items()}


def share_networks(algorithm: HybridDQN) -> None:
    """Give every rank the networks and the optimiser of the first."""
    if algorithm.replicas.size == 1:
        return
    state = algorithm.learner.state_dict()
    networks = algorithm.replicas.broadcast({name: state[name] for name in PARAMETERS})
    algorithm.learner.load_networks(networks)

"""The states of several ranks as one checkpoint, and back, for any number of ranks.

Game ``i`` of rank ``r`` of ``K`` is game ``i * K + r`` of the run.  A checkpoint of several ranks
is that of one process with all the games, plus the entry ``ranks``: what cannot be merged, such as
random streams, so that the same number of ranks continues exactly.  Any other number gets new
streams.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from tempest_agent.agent.checkpoints.checkpoint_files import pack

State = dict[str, Any]
Arrays = dict[str, NDArray[Any]]

OWN = ("collector", "replay", "teacher", "random")
"""Entries of the loop's ``state_dict`` that differ between ranks."""

STREAMS = "random"
"""Name of the entries that hold random generators."""

_PLACES = ("aside_codes", "aside_zap")


def own_part(state: Mapping[str, Any]) -> State:
    """Return the entries of ``state_dict(loop)`` that differ between ranks."""
    part = {name: state[name] for name in OWN}
    part["metrics"] = pack(state["learner"]["metrics"])
    return part


def merge(state: Mapping[str, Any], parts: Sequence[State]) -> State:
    """Return the state of the whole run.

    Args:
        state: of the first rank.
        parts: ``own_part`` of every rank.
    """
    games = len(parts[0]["collector"]["episode_start"])
    whole = _put_back(state, _woven(parts, games))
    counts = [part["collector"]["counts"] for part in parts]
    whole["collector"]["counts"] = {
        name: np.sum([np.asarray(each[name]) for each in counts], axis=0).tolist()
        for name in counts[0]
    }
    whole["collector"]["largest_reward"] = max(
        float(part["collector"]["largest_reward"]) for part in parts
    )
    whole["learner"]["metrics"] = merged_metrics([part["metrics"] for part in parts])
    return whole | {"ranks": [_without_games(part, games) for part in parts]}


def split(state: Mapping[str, Any], rank: int, size: int, fresh: Mapping[str, Any]) -> State:
    """Return the state with which a rank continues.

    Args:
        state: of the whole run.
        rank: its number.
        size: number of ranks now.
        fresh: the rank's own ``state_dict(loop)`` before: its random streams serve if ``state``
            has none for it.
    """
    parts = state.get("ranks", ())
    games = len(state["collector"]["episode_start"])
    strands = _strand(own_part(state), rank, size, games)
    if len(parts) == size:
        return _put_back(state, _filled(parts[rank], strands))
    if rank == 0:
        return _put_back(state, strands)
    unused = own_part(fresh)
    strands = _with_streams(strands, unused)
    # Rank 0 keeps what has been counted since the last log row.
    strands["collector"]["counts"] = unused["collector"]["counts"]
    return _put_back(state, strands | {"metrics": unused["metrics"]})


def merge_arrays(parts: Sequence[Arrays]) -> Arrays:
    """Return the replay of the whole run from those of all ranks (``ReplayBuffer.arrays``)."""
    size = len(parts)
    whole: Arrays = {}
    games = parts[0]["codes"].shape[1]
    for name, first in parts[0].items():
        columns = [np.asarray(part[name]) for part in parts]
        if name == "aside_rows":
            steps = [rows // games * games * size for rows in columns]
            own = [rows % games * size + rank for rank, rows in enumerate(columns)]
            whole[name] = np.concatenate([a + b for a, b in zip(steps, own, strict=True)])
        elif name in _PLACES:
            whole[name] = np.concatenate(columns)
        else:
            shape = (-1, games, *first.shape[2:])
            stacked = np.stack([column.reshape(shape) for column in columns], axis=2)
            rows = stacked.reshape(len(stacked), games * size, *first.shape[2:])
            whole[name] = rows.reshape(-1) if first.ndim == 1 else rows
    order = np.argsort(whole["aside_rows"])
    return whole | {name: whole[name][order] for name in ("aside_rows", *_PLACES)}


def split_arrays(whole: Mapping[str, NDArray[Any]], rank: int, size: int) -> Arrays:
    """Return a rank's part of the replay of the whole run."""
    games = whole["codes"].shape[1]
    rows = whole["aside_rows"]
    mine = rows % games % size == rank
    part: Arrays = {}
    for name, column in whole.items():
        if name == "aside_rows":
            part[name] = (rows // games * (games // size) + rows % games // size)[mine]
        elif name in _PLACES:
            part[name] = column[mine]
        elif column.ndim == 1:
            part[name] = np.ascontiguousarray(column.reshape(-1, games)[:, rank::size]).reshape(-1)
        else:
            part[name] = np.ascontiguousarray(column[:, rank::size])
    return part


def merged_metrics(states: Sequence[Mapping[str, Any]]) -> State:
    """Merge the running metrics (``Metrics.state_dict``) of several ranks."""
    whole: State = {"sums": {}, "totals": {}, "highest": {}, "lowest": {}}
    ways: dict[str, Any] = {"totals": sum, "highest": max, "lowest": min}
    for state in states:
        for name, (total, count) in state["sums"].items():
            before = whole["sums"].get(name, [0.0, 0.0])
            whole["sums"][name] = [before[0] + total, before[1] + count]
    for kind, way in ways.items():
        names = dict.fromkeys(name for state in states for name in state[kind])
        for name in names:
            whole[kind][name] = way([s[kind][name] for s in states if name in s[kind]])
    return whole


def _is_of_games(value: Any, games: int) -> bool:
    is_array = isinstance(value, np.ndarray | Tensor)
    return is_array and value.ndim > 0 and len(value) == games


def _woven(parts: Sequence[Any], games: int) -> Any:
    """Interleave the arrays of the games; of everything else take the first."""
    first = parts[0]
    if isinstance(first, Mapping):
        return {
            name: value if name == STREAMS else _woven([part[name] for part in parts], games)
            for name, value in first.items()
        }
    if _is_of_games(first, games):
        arrays = [np.asarray(part) for part in parts]
        return np.stack(arrays, axis=1).reshape(-1, *arrays[0].shape[1:])
    return first


def _strand(tree: Any, rank: int, size: int, games: int) -> Any:
    """Return ``tree`` with a rank's part of the arrays of all games."""
    if isinstance(tree, Mapping):
        return {
            name: value if name == STREAMS else _strand(value, rank, size, games)
            for name, value in tree.items()
        }
    return tree[rank::size] if _is_of_games(tree, games) else tree


def _without_games(tree: Any, games: int) -> Any:
    """Return ``tree`` without the arrays of the games, which are in the merged state."""
    if isinstance(tree, Mapping):
        return {
            name: value if name == STREAMS else _without_games(value, games)
            for name, value in tree.items()
            if not _is_of_games(value, games)
        }
    return tree


def _filled(part: Any, strands: Any) -> Any:
    """Return ``part``, completed from ``strands``."""
    if isinstance(part, Mapping) and isinstance(strands, Mapping):
        names = dict.fromkeys((*strands, *part))
        return {
            name: _filled(part[name], strands.get(name)) if name in part else strands[name]
            for name in names
        }
    return part


def _with_streams(tree: Any, fresh: Any) -> Any:
    """Return ``tree`` with the random streams of ``fresh``."""
    if not isinstance(tree, Mapping) or not isinstance(fresh, Mapping):
        return tree
    return {
        name: fresh[name]
        if name == STREAMS and name in fresh
        else _with_streams(value, fresh.get(name))
        for name, value in tree.items()
    }


def _put_back(state: Mapping[str, Any], part: Mapping[str, Any]) -> State:
    """Return ``state`` with the entries of ``own_part`` replaced."""
    whole = {name: value for name, value in state.items() if name != "ranks"}
    return {
        **whole,
        **{name: part[name] for name in OWN},
        "learner": {**state["learner"], "metrics": part["metrics"]},
    }

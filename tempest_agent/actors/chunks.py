"""Convert steps of an actor's games to columns of a chunk, and merge the chunks of all actors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.agent.collect.source import Played
from tempest_agent.agent.games.interface import Step
from tempest_agent.agent.replay.plans import LateLabels
from tempest_agent.agent.replay.rows import Rows

from .messages import Chunk, Columns

ROWS = (
    "codes", "spin", "buttons", "reward", "terminated", "truncated", "episode_start", "zap_legal",
    "driver", "label_spin", "label_buttons", "labelled",
)  # fmt: skip
STEP = ("game_over", "score", "ticks", "level", "death_cause")
"""What a step reports besides its row."""
OWN = ("own_spin", "own_buttons")
FINAL = ("final_codes", "final_zap_legal")
"""Needed only where a game was truncated, so they are sent for those steps alone."""
LATE = "late_"
"""Prefix of the columns of late labels, of all steps one after the other."""


def columns_of(played: Sequence[Played]) -> dict[str, NDArray[Any]]:
    """Stack T consecutive steps of n games into columns ``(T, n, ...)``."""
    columns = {name: np.stack([getattr(each.rows, name) for each in played]) for name in ROWS}
    columns |= {name: np.stack([getattr(each, name) for each in played]) for name in OWN}
    for name in STEP:
        if getattr(played[0].step, name) is not None:
            columns[name] = np.stack([getattr(each.step, name) for each in played])
    return columns


def last_of(
    played: Sequence[Played], codes: NDArray[np.int8], zap_legal: NDArray[np.bool_]
) -> dict[str, NDArray[Any]]:
    """Return what a chunk holds once: the games' states now, and the ends of truncated games."""
    cut = np.argwhere([each.step.truncated & ~each.step.terminated for each in played])
    last = {"codes": codes.copy(), "zap_legal": zap_legal.copy(), "cut": cut}
    for name in FINAL:
        own = [getattr(played[t].step, name)[game] for t, game in cut]
        last[name] = np.array(own, getattr(played[0].step, name).dtype)
    return last | _late_of(played)


def _late_of(played: Sequence[Played]) -> dict[str, NDArray[Any]]:
    """Return the late labels of all steps, ``(M, ...)`` each, and the step that each came with."""
    with_labels = [(t, each.late) for t, each in enumerate(played) if each.late is not None]
    if not with_labels:
        return {}
    columns = {
        LATE + name: np.concatenate([getattr(late, name) for _, late in with_labels])
        for name in LateLabels._fields
    }
    steps = [np.full(late.ago.size, t) for t, late in with_labels]
    return columns | {LATE + "step": np.concatenate(steps)}


class MergedChunks:
    """T steps of all N games, merged from the chunks of all actors.

    Args:
        chunks: one per actor, in order; game i is played by actor ``i % actors``.
    """

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self.steps = chunks[0].steps
        self._columns = _merged([chunk.columns for chunk in chunks], axis=1)
        shown = ("codes", "zap_legal")
        self._last = _merged([{name: chunk.last[name] for name in shown} for chunk in chunks], 0)
        self._cuts = [
            (int(t), int(game) * len(chunks) + actor, chunk.last, i)
            for actor, chunk in enumerate(chunks)
            for i, (t, game) in enumerate(chunk.last["cut"])
        ]
        self._late = [chunk.last for chunk in chunks]
        self._no_codes = np.zeros_like(self._last["codes"])

    def played(self, t: int) -> Played:
        """Return step ``t`` of every game, from 0."""
        columns = {name: column[t] for name, column in self._columns.items()}
        final = self._final(t)
        rows = Rows(**{name: columns[name] for name in ROWS}, **final)
        shared = {name: columns[name] for name in Step._fields if name in columns}
        step = Step(**shared, **final)
        own_spin, own_buttons = (columns[name] for name in OWN)
        return Played(rows, step, own_spin, own_buttons, late=self._late_labels(t))

    def _late_labels(self, t: int) -> LateLabels | None:
        parts = []
        for actor, last in enumerate(self._late):
            if LATE + "step" in last:
                here = last[LATE + "step"] == t
                late = LateLabels(*(last[LATE + name][here] for name in LateLabels._fields))
                parts.append(late._replace(game=late.game * len(self._late) + actor))
        if not any(part.game.size for part in parts):
            return None
        return LateLabels(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def _final(self, t: int) -> dict[str, NDArray[Any]]:
        codes, zap_legal = self._no_codes, np.zeros_like(self._last["zap_legal"])
        here = [cut for cut in self._cuts if cut[0] == t]
        if here:
            codes = codes.copy()
        for _, game, last, i in here:
            codes[game], zap_legal[game] = (last[name][i] for name in FINAL)
        return dict(zip(FINAL, (codes, zap_legal), strict=True))

    def seen(self, t: int) -> tuple[NDArray[np.int8], NDArray[np.bool_]]:
        """Return codes ``(N, F)`` and legal zaps ``(N,)`` before step ``t``, or after the last."""
        if t == self.steps:
            return self._last["codes"], self._last["zap_legal"]
        return self._columns["codes"][t], self._columns["zap_legal"][t]


def _merged(parts: Sequence[Columns], axis: int) -> Columns:
    """Interleave the columns of all actors, whose games alternate along ``axis``."""
    if len(parts) == 1:
        return parts[0]
    games = sum(part["codes"].shape[axis] for part in parts)
    merged: dict[str, NDArray[Any]] = {}
    for name, first in parts[0].items():
        whole = np.empty((*first.shape[:axis], games, *first.shape[axis + 1 :]), first.dtype)
        for actor, part in enumerate(parts):
            whole[(slice(None),) * axis + (slice(actor, None, len(parts)),)] = part[name]
        merged[name] = whole
    return merged

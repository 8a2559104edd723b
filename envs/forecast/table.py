"""The table of the lanes that kill in the next ticks: one bit a tick in one number a lane."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from tempest_agent.envs.machine.compiled import rule
from tempest_agent.envs.machine.inputs import MAX_INPUT_DELAY
from tempest_agent.envs.machine.memory import LANES, PLAYER_SHOT_SLOTS

HORIZON = 16
"""Ticks that players look ahead; tick 0 is the one that the decision is for."""

AHEAD = HORIZON + MAX_INPUT_DELAY
"""Ticks that are foreseen, from the next one on: a decision may act only after a delay."""

TABLE_FIELDS = [
    ("deadly", "<i4", (LANES,)),
    ("possible", "<i4", (LANES,)),
    ("pulse_known", "<i8"),
    ("pulse_on", "<i8"),
    ("pulse_quiet", "<i8"),
    ("shot_depth", "<i8", (PLAYER_SHOT_SLOTS,)),
    ("shot_cuts", "<i8", (PLAYER_SHOT_SLOTS,)),
]
TABLE_DTYPE = np.dtype([*TABLE_FIELDS, ("gap", "u1", (64,))])
"""Bit ``k`` of ``deadly[lane]``: who is in ``lane`` after the move of tick ``k`` dies.
``possible``: he may, if an enemy goes on as it does.  ``pulse_on``, ``pulse_quiet``: the pulse
clock, bit ``k`` is tick ``k``, once ``pulse_known``.  ``shot_depth``, ``shot_cuts``: the player's
shots while a dive is foreseen.  ``gap``: a cache line, so that threads do not contend."""

Table: TypeAlias = Any
"""A record with the fields of TABLE_DTYPE; they are attributes only inside compiled code."""


@rule
def clear_table(table: Table) -> None:
    table.deadly[:] = 0
    table.possible[:] = 0
    table.pulse_known = 0


@rule
def span(first: int, end: int) -> int:
    """Return the bits of the ticks ``first`` to ``end - 1`` that are foreseen."""
    first = max(first, 0)
    end = min(end, AHEAD)
    return (1 << end) - (1 << first) if first < end else 0


@rule
def mark(ticks: Any, which: int, lane: int) -> None:
    """Add the ticks of the bits ``which`` to those of ``lane``, any integer, modulo 16."""
    ticks[lane & 15] |= which

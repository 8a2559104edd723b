"""The record of one decision: forecast dangers, lane values, chosen controls."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from tempest_agent.envs.machine.compiled import rule
from tempest_agent.envs.machine.memory import LANES, PLAYER_SHOT_SLOTS

HORIZON = 16
"""Ticks that the expert looks ahead; tick 0 is the one that the decision is for."""

LETHAL = 1e6
"""Cost from which on being in a lane in a tick counts as death."""

PLAN_DTYPE = np.dtype(
    [
        ("danger", "<f8", (HORIZON, LANES)),
        ("chance", "<f8", (HORIZON, LANES)),
        ("value", "<f8", (LANES,)),
        ("outlook", "<f8", (2, LANES)),
        ("shot_depth", "<i8", (PLAYER_SHOT_SLOTS,)),
        ("shot_cuts", "<i8", (PLAYER_SHOT_SLOTS,)),
        ("best", "<f8"),
        ("pulse_on", "<i8"),
        ("pulse_quiet", "<i8"),
        ("lane", "<i8"),
        ("spin", "<i8"),
        ("fire", "<i8"),
        ("zap", "<i8"),
    ]
)
"""``danger[k, lane]``: cost of being in ``lane`` after tick ``k``'s move, from LETHAL on deadly.
``chance``: the same for what chance decides while inputs are pending, by ticks from the image.
``value[lane]``: what a tick in that lane is worth.  ``outlook``: the escape table's two last rows.
``shot_depth``, ``shot_cuts``: the player's shots while a dive is foreseen.
``best``: the value of the best way found; below ``-LETHAL`` no way survives the horizon.
``pulse_on``, ``pulse_quiet``: bit ``k`` is tick ``k``.  Then the decision: the lane to be in
after the move, the knob counts, the buttons."""

Plan: TypeAlias = Any
"""One record of PLAN_DTYPE; its fields are attributes only inside compiled code."""


@rule
def mark(danger: Any, tick: int, lane: int, cost: float) -> None:
    """Mark that ``lane`` (any integer, modulo 16) costs ``cost`` in ``tick``, if foreseen."""
    if 0 <= tick < HORIZON:
        danger[tick, lane & 15] = max(danger[tick, lane & 15], cost)


@rule
def mark_span(danger: Any, first: int, end: int, lane: int, cost: float) -> None:
    """Mark the same for the ticks ``first`` to ``end - 1``."""
    for tick in range(max(first, 0), min(end, HORIZON)):
        danger[tick, lane & 15] = max(danger[tick, lane & 15], cost)

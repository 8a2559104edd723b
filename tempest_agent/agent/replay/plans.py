"""Labels that value several plans of a state: what is stored of them.

A plan counts by its first action, and by its regret: the points by which it is worth less than the
best plan.  Plans with the same first action are one, worth what the best of them is.  A teacher
that knows only one action has one plan, without regret.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tempest_agent.agent.devices import Column
from tempest_agent.envs.machine.compiled import kernel

PLANS = 16
"""First actions that a row has room for: the planner's default budget has at most 15."""

MOST_REGRET = 2000
"""Points at which a regret is cut."""

NO_PLAN = 65_535
"""Regret of an entry without a plan."""


class Plans(NamedTuple):
    """The plans of B rows, ``(B, PLANS)`` each."""

    spin: Column
    """Knob counts of the first action, int8."""
    buttons: Column
    """Buttons of the first action, uint8."""
    regret: Column
    """Points, int32, at most ``MOST_REGRET``; ``NO_PLAN`` where there is no plan."""


class LateLabels(NamedTuple):
    """Plans of M states, for rows that are stored already."""

    ago: NDArray[np.int64]
    """``(M,)``: how many steps before the newest step."""
    game: NDArray[np.int64]
    spin: NDArray[np.int8]
    """``(M, PLANS)``, and so ``buttons`` and ``regret``."""
    buttons: NDArray[np.uint8]
    regret: NDArray[np.uint16]


def merge_plans(
    spins: NDArray[np.int8], buttons: NDArray[np.uint8], values: NDArray[np.float64]
) -> tuple[NDArray[np.int8], NDArray[np.uint8], NDArray[np.uint16]]:
    """Return first actions and regrets ``(N, PLANS)`` of plans ``(N, P)``.

    ``values`` are points, ``-inf`` where there is no plan.  Of more first actions than there is
    room for the best are kept.
    """
    shape = len(spins), PLANS
    merged = np.zeros(shape, np.int8), np.zeros(shape, np.uint8), np.full(shape, NO_PLAN, np.uint16)
    _merge(spins, buttons, values, *merged)
    return merged


@kernel
def _merge(
    spins: NDArray[np.int8],
    buttons: NDArray[np.uint8],
    values: NDArray[np.float64],
    out_spins: NDArray[np.int8],
    out_buttons: NDArray[np.uint8],
    out_regrets: NDArray[np.uint16],
) -> None:
    for row in range(len(spins)):
        best = -np.inf
        for plan in range(values.shape[1]):
            best = max(best, values[row, plan])
        kept = 0
        for plan in range(values.shape[1]):
            if values[row, plan] == -np.inf:
                continue
            regret = int(min(best - values[row, plan], MOST_REGRET) + 0.5)
            place = 0
            while place < kept and not (
                out_spins[row, place] == spins[row, plan]
                and out_buttons[row, place] == buttons[row, plan]
            ):
                place += 1
            if place == kept:
                if kept < PLANS:
                    kept += 1
                else:
                    place = int(np.argmax(out_regrets[row]))
            if regret < out_regrets[row, place]:
                out_spins[row, place] = spins[row, plan]
                out_buttons[row, place] = buttons[row, plan]
                out_regrets[row, place] = regret

"""Where turns take the claw, read from an observation's codes in whole numbers.

The compiled form of ``agent/networks/landings`` and ``deadly_lanes``, which take tensors.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tempest_agent.agent.games.tempest_games import TEMPEST_LAYOUT
from tempest_agent.agent.networks.landings import LANE_COUNTS
from tempest_agent.envs.features.layout import (
    EXISTS,
    FEATURE_SCALE,
    FORECAST_FEATURES,
    FORECAST_START,
    LANE_FEATURES,
    PLACE_CODE,
    POSITION_FEATURE,
)
from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.inputs import SPINNER_MAX
from tempest_agent.envs.machine.memory import LANES

_PENDING_SPINS = np.array(TEMPEST_LAYOUT.pending_spins)


@rule
def write_landings(codes: NDArray[np.int8], late: bool, landed: NDArray[np.int64]) -> int:
    """Write where each knob count leads to, ``(63,)``; return where the claw is before the turn.

    In counts from the low edge of the lane where it stands now.  ``late``: inputs under way turn
    it before the decision does.
    """
    lowest, highest = _edges(codes)
    claw = (int64(codes[POSITION_FEATURE]) // PLACE_CODE + LANE_COUNTS - 1) // 2
    if late:
        for i in range(len(_PENDING_SPINS)):
            # The nearest whole number; a half is never met.
            share = 2 * SPINNER_MAX * int64(codes[_PENDING_SPINS[i]])
            counts = (share + FEATURE_SCALE) // (2 * FEATURE_SCALE)
            claw = min(max(claw - counts, lowest), highest)
    for turn in range(-SPINNER_MAX, SPINNER_MAX + 1):
        landed[turn + SPINNER_MAX] = min(max(claw - turn, lowest), highest)
    return claw


@rule
def _edges(codes: NDArray[np.int8]) -> tuple[int, int]:
    """Return the lowest and the highest place of an open well's rim; far away on a closed one."""
    for lane in range(LANES):
        if codes[lane * LANE_FEATURES + EXISTS] <= 0:
            return (lane + 1 - LANES) * LANE_COUNTS, lane * LANE_COUNTS - 1
    far = LANES * LANE_COUNTS * LANE_COUNTS
    return -far, far


@rule
def write_deadly(
    codes: NDArray[np.int8], landed: NDArray[np.int64], deadly: NDArray[np.bool_]
) -> None:
    """Write which knob counts end in a deadly lane, ``(63,)``; none where all of them do."""
    safe = 0
    for knot in range(len(landed)):
        lane = (landed[knot] // LANE_COUNTS) % LANES
        deadly[knot] = codes[FORECAST_START + lane * FORECAST_FEATURES] > 0
        safe += int64(not deadly[knot])
    if safe == 0:
        deadly[:] = False

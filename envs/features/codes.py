"""How a quantity becomes a code of the observation, a whole number from -127 to 127."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.machine.compiled import rule
from tempest_agent.envs.machine.memory import RIM_DEPTH

from .layout import FEATURE_SCALE

FULL = FEATURE_SCALE


@rule
def nearness(depth: int) -> int:
    """Return 1 at the rim, falling linearly from just below it to the bottom."""
    if depth <= RIM_DEPTH:
        return FULL
    return max(1, (0xF0 - depth) * 120 // 223)


@rule
def soon(ticks: int, horizon: int) -> int:
    """Return 1 for the next tick (0), falling to the least code from ``horizon`` ticks on."""
    if ticks <= 0:
        return FULL
    if ticks >= horizon:
        return 1
    return max(1, 2 * FULL // (ticks + 2))


@rule
def close(distance: int, horizon: int) -> int:
    """Return 1 for no distance, falling linearly to the least code from ``horizon`` on."""
    if distance <= 0:
        return FULL
    if distance >= horizon:
        return 1
    return FULL - 126 * distance // horizon


@rule
def share(value: int, top: int) -> int:
    """Return ``value / top``, cut at 1."""
    return min(FULL, value * FULL // top)


@rule
def flag(condition: bool) -> int:
    return FULL if condition else 0


@rule
def put_nearer(out: NDArray[np.int8], index: int, code: int) -> bool:
    """Keep the larger code at ``index``; whether ``code`` is the one kept."""
    if code > out[index]:
        out[index] = code
        return True
    return False

"""The observation as floats: its codes divided by 127."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.machine.compiled import kernel, rule
from tempest_agent.envs.machine.intrinsics import prefetch

from .layout import FEATURE_SCALE

# 1/127 as a number of 16 bits, whose product with a code is exact, and what it lacks: the sum of
# the two products rounds to code / 127 for every code, at a third of a division's time.
_INVERSE = np.float32(round(2**22 / FEATURE_SCALE) / 2**22)
_INVERSE_REST = np.float32(1 / FEATURE_SCALE - float(_INVERSE))
_FLOATS_PER_LINE = 16


@rule
def write_floats(codes: NDArray[np.int8], out: NDArray[np.float32]) -> None:
    """Write ``codes / 127``; both arrays have one axis."""
    for i in range(len(codes)):
        code = np.float32(codes[i])
        out[i] = code * _INVERSE + code * _INVERSE_REST


@rule
def expect_floats(out: NDArray[np.float32], part: int) -> None:
    """Prefetch third ``part`` (0-2) of ``out`` before it is written.

    Many games' floats fit no cache.  Asked for in parts while a game is played, they are there
    in time; all at once they would delay all other reads.
    """
    third = len(out) // (3 * _FLOATS_PER_LINE) + 1
    first = part * third * _FLOATS_PER_LINE
    stop = min(first + third * _FLOATS_PER_LINE, len(out))
    for index in range(first, stop, _FLOATS_PER_LINE):
        prefetch(out, index)


@kernel
def _write_all_floats(codes: NDArray[np.int8], out: NDArray[np.float32]) -> None:
    write_floats(codes, out)


def as_floats(codes: NDArray[np.int8]) -> NDArray[np.float32]:
    """Return the observation codes of any shape as the environment's floats: ``codes / 127``."""
    out = np.empty(codes.shape, np.float32)
    _write_all_floats(np.ascontiguousarray(codes).reshape(-1), out.reshape(-1))
    return out

"""Values between knots and the best of all candidates, each in one pass over memory.

On a CPU these replace some sixty small operations of an update, which together took longer than the
matrix products of a small network.  Results are the same to the last bit.  All arrays are
contiguous, their numbers float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.arcade.compiled import int64, kernel, rule

Floats = NDArray[np.float32]

ZERO = np.float32(0.0)
HALF = np.float32(0.5)
ONE = np.float32(1.0)


@rule
def _place(position: Any, count: int) -> Any:
    """The knot of ``count`` below a position in [-1, 1], and how far behind it that is.

    NaN passes, behind the first knot.
    """
    inside = -ONE if position < -ONE else ONE if position > ONE else position
    place = (inside + ONE) * (HALF * np.float32(count - 1))
    lower = min(int64(place), count - 2) if place > ZERO else 0
    return lower, place - np.float32(lower)


@kernel
def between(values: Floats, chosen: NDArray[np.int64], position: Floats, out: Floats) -> None:
    """Values ``(N,)`` on straight lines between knots.

    Args:
        values: ``(N, P, K)``, P of 1 if there is nothing to choose.
        chosen: ``(N,)``, which of P; of length 0 if there is nothing to choose.
        position: ``(N,)`` in [-1, 1].
        out: ``(N,)``, written.
    """
    for i in range(values.shape[0]):
        row = values[i, chosen[i] if chosen.shape[0] > 0 else 0]
        lower, weight = _place(position[i], row.shape[0])
        left = row[lower]
        out[i] = left + weight * (row[lower + 1] - left)


@kernel
def between_gradients(
    values: Floats,
    chosen: NDArray[np.int64],
    position: Floats,
    incoming: Floats,
    to_values: Floats,
    to_position: Floats,
) -> None:
    """Gradients through ``between`` from those ``(N,)`` to its ``out``.

    ``to_values`` comes as zeros and ``to_position`` as anything, of their shapes, or of length 0
    where nobody wants them.
    """
    for i in range(values.shape[0]):
        pair = chosen[i] if chosen.shape[0] > 0 else 0
        row = values[i, pair]
        lower, weight = _place(position[i], row.shape[0])
        if to_values.shape[0] > 0:
            upper = incoming[i] * weight
            to_values[i, pair, lower] = incoming[i] - upper
            to_values[i, pair, lower + 1] = upper
        if to_position.shape[0] > 0:
            slope = incoming[i] * (row[lower + 1] - row[lower])
            slope *= HALF * np.float32(row.shape[0] - 1)
            to_position[i] = slope if abs(position[i]) <= ONE else ZERO


@kernel
def best(
    values: Floats,
    knots: Floats,
    proposed: Floats,
    proposals: Floats,
    legal: NDArray[np.bool_],
    pair: NDArray[np.int64],
    position: Floats,
    value: Floats,
) -> None:
    """The best legal candidate of each of N rows; the first of equals, and the first NaN.

    Args:
        values: ``(N, P, K)``.
        knots: ``(K,)``, their positions.
        proposed: ``(N, P)``, values of the proposals, which come before the knots; of length 0 if
            there are none.
        proposals: ``(N, P)``, their positions.
        legal: ``(N, P)``.
        pair: ``(N,)``, written like those that follow.
        position: ``(N,)``.
        value: ``(N,)``.
    """
    count, pairs, width = values.shape
    first = -1 if proposed.shape[0] > 0 else 0
    for i in range(count):
        highest, which, where = -np.float32(np.inf), 0, first
        for p in range(pairs):
            # What is illegal counts as minus infinity, the value to begin with.
            for k in range(first, width if legal[i, p] else first):
                own = proposed[i, p] if k < 0 else values[i, p, k]
                if not own <= highest and highest == highest:
                    highest, which, where = own, p, k
        pair[i], value[i] = which, highest
        position[i] = proposals[i, which] if where < 0 else knots[where]

"""The best action, targets, and the gradient of the loss, each in one pass over memory.

They are for values that are numbers with straight lines between knots (``huber`` and ``squared``),
on a CPU: some two hundred small operations of an update, which take longer than the matrix products
of a small network.  Results are those of the single operations to the last bit.  All arrays are
contiguous, their numbers float32; B rows, P values of the discrete action, K knots.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.machine.compiled import int64, kernel, rule

Floats = NDArray[np.float32]

ZERO = np.float32(0.0)
HALF = np.float32(0.5)
ONE = np.float32(1.0)


@rule
def _place(position: Any, count: int) -> Any:
    """The knot of ``count`` below a position in [-1, 1], and how far behind it that is."""
    inside = -ONE if position < -ONE else ONE if position > ONE else position
    place = (inside + ONE) * (HALF * np.float32(count - 1))
    # NaN passes, behind the first knot.
    lower = min(int64(place), count - 2) if place > ZERO else 0
    return lower, place - np.float32(lower)


@rule
def _between(knots: Any, position: Any) -> Any:
    """The value at ``position`` on straight lines between values ``(K,)``."""
    lower, weight = _place(position, knots.shape[0])
    return knots[lower] + weight * (knots[lower + 1] - knots[lower])


@rule
def _best(values: Any, proposals: Any, legal: Any) -> Any:
    """Pair, knot (-1 is its proposal) and value of the best legal candidate of one row.

    The first of equals, and the first NaN.
    """
    pairs, width = values.shape
    first = -1 if proposals.shape[0] > 0 else 0
    highest, pair, knot = -np.float32(np.inf), 0, first
    for p in range(pairs):
        # What is illegal counts as minus infinity, the value to begin with.
        for k in range(first, width if legal[p] else first):
            value = _between(values[p], proposals[p]) if k < 0 else values[p, k]
            if not value <= highest and highest == highest:
                highest, pair, knot = value, p, k
    return pair, knot, highest


@kernel
def best_actions(
    values: Floats,
    axis: Floats,
    proposals: Floats,
    legal: NDArray[np.bool_],
    pair: NDArray[np.int64],
    position: Floats,
    value: Floats,
) -> None:
    """The best legal action of each row.

    Args:
        values: ``(B, P, K)``.
        axis: ``(K,)``, positions of the knots.
        proposals: ``(B, P)`` positions, which come before the knots; ``(B, 0)`` if there are none.
        legal: ``(B, P)``.
        pair: ``(B,)``, written like those that follow.
        position: ``(B,)``.
        value: ``(B,)``.
    """
    for i in range(values.shape[0]):
        chosen, knot, highest = _best(values[i], proposals[i], legal[i])
        pair[i], value[i] = chosen, highest
        position[i] = proposals[i, chosen] if knot < 0 else axis[knot]


@kernel
def bootstrap(
    values: Floats,
    axis: Floats,
    proposals: Floats,
    legal: NDArray[np.bool_],
    judge: Floats,
    returns: Floats,
    discounts: Floats,
    limit: float,
    out: Floats,
) -> None:
    """Targets of B rows, from the states they are bootstrapped on.

    Args:
        values: ``(B, P, K)``, those that choose, with the next three as in ``best_actions``.
        axis: as there.
        proposals: as there.
        legal: as there.
        judge: ``(B, P, K)``, those that say what the choice is worth.
        returns: ``(B,)``.
        discounts: ``(B,)``, 0 after a termination.
        limit: of the targets.
        out: ``(4, B)``, written: the targets within the limit and before, and whether they were
            below and above.
    """
    most = np.float32(limit)
    for i in range(values.shape[0]):
        pair, knot, _ = _best(values[i], proposals[i], legal[i])
        position = proposals[i, pair] if knot < 0 else axis[knot]
        target = returns[i]
        # What is worth nothing may be no number.
        target += discounts[i] * _between(judge[i, pair], position) if discounts[i] > ZERO else ZERO
        low, high = target < -most, target > most
        out[0, i] = -most if low else most if high else target
        out[1, i] = target
        out[2, i] = ONE if low else ZERO
        out[3, i] = ONE if high else ZERO


@kernel
def loss_gradients(
    values: Floats,
    pair: NDArray[np.int64],
    position: Floats,
    target: Floats,
    weight: Floats,
    proposals: Floats,
    spread: Floats,
    is_squared: bool,
    share: float,
    climb_weight: float,
    each: Floats,
    to_values: Floats,
    climb: Floats,
    to_proposals: Floats,
) -> None:
    """Losses of B rows, and the gradient of their mean.

    Args:
        values: ``(B, P, K)``.
        pair: ``(B,)``, what was done, with ``position``.
        position: ``(B,)``.
        target: ``(B,)``.
        weight: ``(B,)``, of the rows.
        proposals: ``(B, P)``, positions that are to climb the values; ``(B, 0)`` if there are none.
        spread: ``(B,)``, unit of the values that are climbed.
        is_squared: whether the loss is the squared error, not Huber's.
        share: what the mean loss counts.
        climb_weight: what that of the proposals counts beside that of the values.
        each: ``(2, B)``, written like all that follow: predictions and losses.
        to_values: ``(B, P, K)``.
        climb: ``(B, P)``, values of the proposals in units of the spread.
        to_proposals: ``(B, P)``.
    """
    count, pairs, width = values.shape
    of_row = np.float32(share) / np.float32(count)
    of_proposal = -(np.float32(share) * np.float32(climb_weight)) / np.float32(count * pairs)
    to_values[:] = ZERO
    for i in range(count):
        row = values[i, pair[i]]
        lower, beyond = _place(position[i], width)
        predicted = row[lower] + beyond * (row[lower + 1] - row[lower])
        error = predicted - target[i]
        slope = error
        each[0, i], each[1, i] = predicted, HALF * error * error
        if not is_squared and abs(error) >= ONE:
            each[1, i] = abs(error) - HALF
            slope = -ONE if error < ZERO else ONE
        slope *= of_row * weight[i]
        upper = slope * beyond
        to_values[i, pair[i], lower] = slope - upper
        to_values[i, pair[i], lower + 1] = upper
        for p in range(proposals.shape[1]):
            row = values[i, p]
            lower, beyond = _place(proposals[i, p], width)
            rise = row[lower + 1] - row[lower]
            climb[i, p] = (row[lower] + beyond * rise) / spread[i]
            uphill = of_proposal / spread[i] * rise * (HALF * np.float32(width - 1))
            to_proposals[i, p] = uphill if abs(proposals[i, p]) <= ONE else ZERO


@kernel
def dueling_values(numbers: Floats, mean: Floats, out: Floats) -> None:
    """Values ``(B, A)`` of a state value and A advantages ``(B, 1 + A)`` of that ``mean``."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = numbers[i, 0] + numbers[i, j + 1] - mean[i, 0]


@kernel
def dueling_gradients(to_values: Floats, out: Floats) -> None:
    """Gradients ``(B, 1 + A)`` to a state value and A advantages from those ``(B, A)`` to values.

    In each row of ``to_values`` all but two are 0, so that it does not matter how they are added.
    """
    count, width = to_values.shape
    for i in range(count):
        total = ZERO
        for j in range(width):
            total += to_values[i, j]
        out[i, 0] = total
        mean = total / np.float32(width)
        for j in range(width):
            out[i, j + 1] = to_values[i, j] - mean

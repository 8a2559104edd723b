"""Arithmetic with the same last bit on every machine.

Sums are taken in one written order, and IEEE 754 fixes the results of ``+ - * /`` and of square
roots.  It does not fix exponentials, cosines and hyperbolic tangents: each mathematical library
rounds them in its own way, so they are polynomials here.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.machine.compiled import kernel, rule

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

# ln 2 in two parts: a whole number times the first has no rounding error.
_LN2_HIGH = float.fromhex("0x1.62e42fee00000p-1")
_LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_PER_LN2 = float.fromhex("0x1.71547652b82fep+0")
_INVERSE_FACTORIALS = np.array([1.0 / math.factorial(n) for n in range(14)])
_UNDERFLOW = -708.0
_HALVES = np.array([math.ldexp(1.0, -n) for n in range(1024)])
"""Powers of one half, exact."""


@rule
def exponential(x: float) -> float:
    """Return e to the power of ``x``, which is at most 0; 0 below -708 (float64)."""
    bounded = max(x, _UNDERFLOW)
    halvings = np.int64(-bounded * _PER_LN2 + 0.5)
    rest = (bounded + halvings * _LN2_HIGH) + halvings * _LN2_LOW
    total = _INVERSE_FACTORIALS[13]
    for n in range(12, -1, -1):
        total = total * rest + _INVERSE_FACTORIALS[n]
    return total * _HALVES[halvings] if x >= _UNDERFLOW else 0.0


@rule
def hyperbolic_tangent(x: float) -> float:
    """Return tanh in float64, with an absolute error of a few units in the last place of 1."""
    small = exponential(-2.0 * abs(x))
    size = (1.0 - small) / (1.0 + small)
    return size if x >= 0.0 else -size


def cosines(numerators: NDArray[np.int64], denominator: int) -> Doubles:
    """Return ``cos(pi / 2 * numerators / denominator)``, reduced in whole numbers."""
    place = numerators % (4 * denominator)
    place = np.minimum(place, 4 * denominator - place)
    mirrored = place > denominator
    place = np.where(mirrored, 2 * denominator - place, place)
    square = np.square(place * (0.5 * math.pi / denominator))
    total = np.zeros_like(square)
    for n in range(22, -1, -2):
        total = 1.0 / math.factorial(n) - total * square
    out: Doubles = np.where(mirrored, -total, total)
    return out


@kernel
def dense(inputs: Floats, weights: Floats, bias: Floats, out: Floats) -> None:
    """Write ``out = bias + inputs @ weights``, row by row, input by input."""
    write_dense(inputs, weights, bias, out, np.empty(inputs.shape[1], np.int64))


@rule
def write_dense(
    inputs: Floats, weights: Floats, bias: Floats, out: Floats, used: NDArray[np.int64]
) -> None:
    """Do the same with scratch memory, ``used``, for as many numbers as a row has inputs."""
    width = out.shape[1]
    for row in range(inputs.shape[0]):
        count = 0
        for i in range(inputs.shape[1]):
            if inputs[row, i] != 0.0:
                used[count] = i
                count += 1
        total = out[row]
        for j in range(width):
            total[j] = bias[j]
        # Four inputs a pass save three of four trips of the sums to memory; their order stays.
        for at in range(0, count - 3, 4):
            a, b, c, d = used[at], used[at + 1], used[at + 2], used[at + 3]
            va, vb, vc, vd = inputs[row, a], inputs[row, b], inputs[row, c], inputs[row, d]
            wa, wb, wc, wd = weights[a], weights[b], weights[c], weights[d]
            for j in range(width):
                total[j] = (((total[j] + va * wa[j]) + vb * wb[j]) + vc * wc[j]) + vd * wd[j]
        for at in range(count - count % 4, count):
            va, wa = inputs[row, used[at]], weights[used[at]]
            for j in range(width):
                total[j] += va * wa[j]


@kernel
def normalise(values: Floats, gain: Floats, shift: Floats, epsilon: float) -> None:
    """Apply LayerNorm and ReLU to every row, in place."""
    count = values.shape[1]
    for row in range(values.shape[0]):
        mean = 0.0
        for j in range(count):
            mean += values[row, j]
        mean /= count
        spread = 0.0
        for j in range(count):
            difference = values[row, j] - mean
            spread += difference * difference
        scale = 1.0 / np.sqrt(spread / count + epsilon)
        for j in range(count):
            value = (values[row, j] - mean) * scale * gain[j] + shift[j]
            values[row, j] = max(value, 0.0)


@kernel
def surround(lanes: Floats, out: Floats) -> None:
    """Write each lane ``(N, L, C)`` between its neighbours on the ring, ``(N * L, 3 * C)``."""
    rows, count, width = lanes.shape
    for row in range(rows):
        for lane in range(count):
            for side in range(3):
                beside = (lane + side - 1) % count
                for j in range(width):
                    out[row * count + lane, side * width + j] = lanes[row, beside, j]


@kernel
def squash(raw: Floats, out: Doubles) -> None:
    """Write tanh of every number ``(N, M)``."""
    for row in range(raw.shape[0]):
        for i in range(raw.shape[1]):
            out[row, i] = hyperbolic_tangent(np.float64(raw[row, i]))


@rule
def _blended(values: Floats | Doubles, lower: int, number: int, weight: float) -> float:
    """Interpolate with parabolas between the knots ``lower`` and ``lower + 1``."""
    knots = values.shape[0]
    b = np.float64(values[lower, number])
    c = np.float64(values[lower + 1, number])
    # Beyond each end the last parabola continues by one knot.
    a, d = 3.0 * (b - c), 3.0 * (c - b)
    a = np.float64(values[lower - 1, number]) if lower > 0 else a + values[lower + 2, number]
    d = (
        np.float64(values[lower + 2, number])
        if lower < knots - 2
        else d + values[lower - 1, number]
    )
    bend = 2.0 * a - 5.0 * b + 4.0 * c - d
    twist = 3.0 * (b - c) + d - a
    return b + 0.5 * weight * (c - a + weight * (bend + weight * twist))


@kernel
def between(knots: Floats | Doubles, places: Doubles, quadratic: bool, out: Doubles) -> None:
    """Write the numbers ``(N, P, K, D)`` at one spinner position in [-1, 1] each, ``(N, P)``."""
    rows, pairs, count, numbers = knots.shape
    for row in range(rows):
        for pair in range(pairs):
            place = (places[row, pair] + 1.0) * 0.5 * (count - 1)
            lower = min(np.int64(place), max(count - 2, 0))
            own = knots[row, pair]
            for n in range(numbers):
                if quadratic and count > 2:
                    out[row, pair, n] = _blended(own, lower, n, place - lower)
                    continue
                value = np.float64(own[lower, n])
                if count > 1:
                    value += (place - lower) * (own[lower + 1, n] - value)
                out[row, pair, n] = value


@kernel
def softmax_means(logits: Doubles, out: Doubles) -> None:
    """Write the means ``(M,)`` of softmax distributions over even steps from -1 to 1."""
    numbers = logits.shape[1]
    chance = np.empty(numbers)
    for row in range(logits.shape[0]):
        largest = logits[row, 0]
        for n in range(numbers):
            largest = max(largest, logits[row, n])
        for n in range(numbers):
            chance[n] = exponential(logits[row, n] - largest)
        total = moment = 0.0
        for n in range(numbers):
            total += chance[n]
            moment += chance[n] * (2.0 * n / (numbers - 1) - 1.0)
        out[row] = moment / total


@kernel
def pick(
    values: Doubles,
    proposed: Doubles,
    positions: Doubles,
    legal: NDArray[np.bool_],
    deadly: NDArray[np.bool_],
    deadly_proposed: NDArray[np.bool_],
    best_pair: NDArray[np.uint8],
    best_position: Doubles,
) -> None:
    """Write the best legal candidate of every row; of equal ones the first (see ``greedy``).

    Args:
        values: ``(N, P, K)`` of the knots; K is 0 if only proposals may be chosen.
        proposed: ``(N, P)`` of the proposals, minus infinity without any.
        positions: ``(N, P)`` of the proposals.
        legal: ``(N, P)``.
        deadly: ``(N, K)``, knots that are none of the candidates unless all legal ones are deadly.
        deadly_proposed: ``(N, P)``, the same of the proposals.
        best_pair: ``(N,)``, written.
        best_position: ``(N,)``, written.
    """
    rows, pairs, count = values.shape
    for row in range(rows):
        best = -np.inf
        for spares in (True, False):
            for pair in range(pairs):
                if not legal[row, pair]:
                    continue
                if proposed[row, pair] > best and not (spares and deadly_proposed[row, pair]):
                    best = proposed[row, pair]
                    best_pair[row], best_position[row] = pair, positions[row, pair]
                for knot in range(count):
                    if values[row, pair, knot] > best and not (spares and deadly[row, knot]):
                        best = values[row, pair, knot]
                        best_pair[row] = pair
                        best_position[row] = 2.0 * knot / (count - 1) - 1.0
            if best > -np.inf:
                break

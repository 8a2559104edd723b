"""LayerNorm and ReLU after a matrix product, in one pass over memory.

A product's result does not fit into the caches of a core, so adding the bias, normalising, and
cutting off below 0 each wait for memory.  Here every row is read once and written once, forwards
and backwards.  All arrays are float32 and contiguous.

A row's mean and variance come from one pass.  Where the mean lies so far from 0 that the difference
of squares would lose digits, a second pass finds the variance.

No loop reads a row that another of its arrays may write, and none reads under a condition: either
would rule out vector instructions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.machine.compiled import kernel, sum_kernel

Floats = NDArray[np.float32]

ZERO = np.float32(0.0)
ONE = np.float32(1.0)
FAR = np.float32(64.0)
"""Squared distance of a row's mean from 0, in variances, beyond which there is a second pass: up to
here rounding changes a variance by less than a part in 100,000."""

BLOCK = 64
"""Rows whose gradients are added up before they go into the total: a sum of sums rounds less."""


@sum_kernel
def rectified(
    values: Floats, bias: Floats, gain: Floats, shift: Floats, epsilon: float, alive: Floats
) -> None:
    """Apply ``relu(layer_norm(values + bias))`` to every row ``(R, N)``, in place.

    ``alive``: ``(R,)``, 0 for rows that become zeros; of length 0 if all rows count.
    """
    width = values.shape[1]
    count = np.float32(width)
    for i in range(values.shape[0]):
        row = values[i]
        if alive.shape[0] > 0 and alive[i] == ZERO:
            row[:] = ZERO
            continue
        total = squares = ZERO
        for j in range(width):
            value = row[j] + bias[j]
            row[j] = value
            total += value
            squares += value * value
        mean = total / count
        spread = squares / count - mean * mean
        if mean * mean > FAR * spread:
            spread = ZERO
            for j in range(width):
                difference = row[j] - mean
                spread += difference * difference
            spread /= count
        scale = ONE / np.sqrt(spread + np.float32(epsilon))
        middle = mean * scale
        for j in range(width):
            value = (row[j] * scale - middle) * gain[j] + shift[j]
            # Written so that NaN passes.
            row[j] = ZERO if value <= ZERO else value


@sum_kernel
def rectified_and_kept(
    values: Floats,
    bias: Floats,
    gain: Floats,
    shift: Floats,
    epsilon: float,
    alive: Floats,
    scales: Floats,
    out: Floats,
) -> None:
    """Write the same to ``out`` ``(R, N)``, and what ``gradients`` needs.

    ``values`` become the standardised rows, ``scales`` ``(R,)`` the factors on them.
    """
    width = values.shape[1]
    count = np.float32(width)
    for i in range(values.shape[0]):
        row, target = values[i], out[i]
        if alive.shape[0] > 0 and alive[i] == ZERO:
            target[:] = ZERO
            continue
        total = squares = ZERO
        for j in range(width):
            value = row[j] + bias[j]
            row[j] = value
            total += value
            squares += value * value
        mean = total / count
        spread = squares / count - mean * mean
        if mean * mean > FAR * spread:
            spread = ZERO
            for j in range(width):
                difference = row[j] - mean
                spread += difference * difference
            spread /= count
        scale = ONE / np.sqrt(spread + np.float32(epsilon))
        middle = mean * scale
        scales[i] = scale
        for j in range(width):
            standard = row[j] * scale - middle
            row[j] = standard
            value = standard * gain[j] + shift[j]
            target[j] = ZERO if value <= ZERO else value


@sum_kernel
def gradients(
    incoming: Floats,
    standard: Floats,
    scales: Floats,
    gain: Floats,
    shift: Floats,
    alive: Floats,
    outgoing: Floats,
    sums: Floats,
) -> None:
    """Write the gradients through ``rectified_and_kept``.

    Args:
        incoming: ``(R, N)``, to its ``out``.
        standard: ``(R, N)``, its ``values`` afterwards.
        scales: ``(R,)``.
        gain: ``(N,)``, as given to it, with ``shift``.
        shift: ``(N,)``.
        alive: as given to it.
        outgoing: ``(R, N)``, to its ``values``; written, and may be ``incoming``.
        sums: ``(3, N)``, to bias, gain and shift; written.
    """
    rows, width = incoming.shape
    count = np.float32(width)
    part, scaled = np.zeros((3, width), np.float32), np.empty(width, np.float32)
    to_bias, to_gain, to_shift = part[0], part[1], part[2]
    sums[:] = ZERO
    for i in range(rows):
        if alive.shape[0] > 0 and alive[i] == ZERO:
            outgoing[i] = ZERO
        else:
            received, normal, out = incoming[i], standard[i], outgoing[i]
            mean = slope = ZERO
            for j in range(width):
                own = received[j]
                own = own if normal[j] * gain[j] + shift[j] > ZERO else ZERO
                to_shift[j] += own
                to_gain[j] += own * normal[j]
                own *= gain[j]
                mean += own
                slope += own * normal[j]
                scaled[j] = own
            mean /= count
            slope /= count
            scale = scales[i]
            for j in range(width):
                change = (scaled[j] - mean - normal[j] * slope) * scale
                out[j] = change
                to_bias[j] += change
        if i % BLOCK == BLOCK - 1 or i == rows - 1:
            for kind in range(3):
                for j in range(width):
                    sums[kind, j] += part[kind, j]
                    part[kind, j] = ZERO


@kernel
def beside(lanes: NDArray[Any], out: NDArray[Any]) -> None:
    """Write each lane ``(B, L, C)`` between its neighbours on the ring, ``(B, L, 3 * C)``."""
    rows, count, width = lanes.shape
    for row in range(rows):
        for lane in range(count):
            for side in range(3):
                source = lanes[row, (lane + side + count - 1) % count]
                target = out[row, lane, side * width : (side + 1) * width]
                for j in range(width):
                    target[j] = source[j]


@kernel
def beside_gradients(incoming: Floats, out: Floats) -> None:
    """Write the gradients ``(B, L, C)`` through ``beside``, given those to its ``out``."""
    rows, count, width = out.shape
    for row in range(rows):
        for lane in range(count):
            before = incoming[row, (lane + count - 1) % count, 2 * width :]
            own = incoming[row, lane, width : 2 * width]
            after = incoming[row, (lane + 1) % count, :width]
            target = out[row, lane]
            for j in range(width):
                target[j] = own[j] + before[j] + after[j]

"""Hybrid actions, a pair of buttons and a spinner value, written as controls by compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.machine.compiled import int64, kernel, rule
from tempest_agent.envs.machine.inputs import BUTTON_PAIRS, SPINNER_MAX

NOT_ACTING: tuple[bool, NDArray[np.int64], NDArray[np.float32]] = (
    False, np.empty(0, np.int64), np.empty((0, 1), np.float32),
)  # fmt: skip
"""For compiled code that takes whether it is given hybrid actions, and their two arrays."""


NO_PAIR, NO_NUMBER = 1, 2


NAN_SPINNER = (
    "action: the spinner is nan, probably the output of a diverged network; "
    "a number from -1 to 1 is needed"
)


def spinner_counts(spinner: NDArray[np.floating[Any]]) -> NDArray[np.int8]:
    """Return the knob counts of spinner values, rounded and cut to -31..31; refuse NaN."""
    values = np.ascontiguousarray(spinner, np.float64)
    counts = np.empty(values.shape, np.int8)
    if not _round_counts(values.reshape(-1), counts.reshape(-1)):
        raise ValueError(NAN_SPINNER)
    return counts


@rule
def _count(value: float) -> int:
    """Return the knob counts of a spinner value; 0 for NaN."""
    if value != value:
        return 0
    return int64(np.rint(max(-1.0, min(1.0, value)) * SPINNER_MAX))


@kernel
def _round_counts(values: NDArray[np.float64], counts: NDArray[np.int8]) -> bool:
    """Write the counts; whether all values are numbers."""
    numbers = True
    for i in range(len(values)):
        value = values[i]
        numbers = numbers and value == value
        counts[i] = _count(value)
    return numbers


@rule
def write_controls(
    buttons: NDArray[np.int64],
    spinner: NDArray[np.floating[Any]],
    counts: NDArray[np.int8],
    pairs: NDArray[np.uint8],
) -> int:
    """Write the controls of hybrid actions, all there are; bits of what is wrong with them."""
    wrong = int64(0)
    for i in range(len(buttons)):
        # Seen as unsigned, a negative number is too large as well.
        if np.uint64(buttons[i]) >= np.uint64(BUTTON_PAIRS):
            wrong |= NO_PAIR
        pairs[i] = buttons[i]
        value = np.float64(spinner[i, 0])
        if value != value:
            wrong |= NO_NUMBER
        counts[i] = _count(value)
    return wrong


@kernel
def decode_hybrid(
    buttons: NDArray[np.int64],
    spinner: NDArray[np.floating[Any]],
    counts: NDArray[np.int8],
    pairs: NDArray[np.uint8],
) -> int:
    """Call ``write_controls`` from Python."""
    return write_controls(buttons, spinner, counts, pairs)

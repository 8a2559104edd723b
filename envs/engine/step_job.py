"""A step's job: all that compiled code works on, as one array of numbers.

A step needs some twenty arrays and ten constants.  Passing them to compiled code one by one costs
as much as playing ten games.  So their addresses and the constants stand in an array that is made
once, and only what is new in a step is written into it.

Behind them stand the counters by which threads share the games, see ``work_sharing``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

(
    RAM, STREAMS, GAMES, CODES, LAST_RAM, LAST_GAMES, LAST_CODES, SWITCHES,
    POINTS, TERMINATED, TRUNCATED, TABLES,
) = range(12)  # fmt: skip
"""Places of the addresses of a batch's arrays; ``TABLES``: memory for forecasts, one a thread."""

SPIN, BUTTONS, FLOATS, REPORT, ENDS, REWARDS = range(12, 18)
"""Places of the addresses that a step brings with it."""

(
    TOTAL, NUM_SWITCHES, FRAME_SKIP, SKIP_IDLE, MAX_TICKS, MAX_STEPS, INPUT_DELAY, AUTORESET,
    NUM_CODES,
) = range(18, 27)  # fmt: skip
"""Places of the constants; ``NUM_CODES``: numbers of an observation, 0 if none is written."""

FLOATING, REPORTING, ENDING, REWARDING = range(27, 31)
"""Places of 1 if a step brings ``FLOATS``, ``REPORT``, ``ENDS``, ``REWARDS``, else 0."""

THREADS = 31
SCALE = 32
"""Place of the reward for a point, the bits of a float."""

COUNTERS = 40
LINE = 8
"""A counter has a cache line to itself, so that threads do not contend for it."""


def new_job(
    arrays: list[NDArray[np.generic]], constants: list[int], threads: int
) -> NDArray[np.int64]:
    """Return a job of ``arrays`` (``RAM`` to ``TABLES``) and ``constants`` (from ``TOTAL``).

    It holds addresses: the owner of the job has to keep the arrays alive.
    """
    job = np.zeros(COUNTERS + (threads + 1) * LINE, np.int64)
    for place, array in enumerate(arrays):
        job[place] = address(array)
    job[TOTAL : TOTAL + len(constants)] = constants
    job[THREADS] = threads
    return job


def set_switches(job: NDArray[np.int64], switches: NDArray[np.void]) -> None:
    """Let new games draw from other ``switches``; between two steps only."""
    job[SWITCHES] = address(switches)
    job[NUM_SWITCHES] = len(switches)


def address(array: NDArray[np.generic]) -> int:
    """Return the address of the array's memory."""
    return int(array.__array_interface__["data"][0])

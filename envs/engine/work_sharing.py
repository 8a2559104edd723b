"""How threads share the games of a step: compiled code takes the next few from common counters.

Every thread has a share of its own, which stays in its core's cache from step to step.  A thread
that has finished it continues with the rest of the others' shares, so that one that is late, or
whose games are slow, delays nobody.

The counters stand behind the job's entries: the games finished, then for each share its next game
and what happened in the games that its owner played.  A step starts when the caller resets them.
Between ``claim`` and ``finish`` a thread may rely on the job's other entries: no step ends before.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.machine.compiled import rule
from tempest_agent.envs.machine.intrinsics import fetch_add, load, store

from .step_job import COUNTERS, LINE, THREADS, TOTAL

CHUNK = 8
"""Games taken at once: some 8 microseconds of play, the most that the last thread is late."""

_FINISHED = COUNTERS
_FIRST = COUNTERS + LINE

_LINGER = 40_000
# Reads of the counter before giving up on a thread's last chunk: some 20 microseconds.


@rule
def open_shares(job: NDArray[np.int64]) -> None:
    """Let the threads play the step that the job describes."""
    store(job, _FINISHED, 0)
    for share in range(job[THREADS]):
        job[_FIRST + share * LINE + 1] = 0
    for share in range(job[THREADS]):
        store(job, _FIRST + share * LINE, job[TOTAL] * share // job[THREADS])


@rule
def claim(job: NDArray[np.int64], share: int) -> tuple[int, int]:
    """Return the next games for the owner of ``share``: first and end; equal if none is left."""
    threads = job[THREADS]
    for turn in range(threads):
        at = (share + turn) % threads
        stop = job[TOTAL] * (at + 1) // threads
        if load(job, _FIRST + at * LINE) < stop:
            start = fetch_add(job, _FIRST + at * LINE, CHUNK)
            if start < stop:
                return start, min(start + CHUNK, stop)
    return 0, 0


@rule
def finish(job: NDArray[np.int64], share: int, games: int, happened: int) -> None:
    """Count ``games`` games as played by the owner of ``share``, and note what happened."""
    job[_FIRST + share * LINE + 1] |= happened
    fetch_add(job, _FINISHED, games)


@rule
def linger(job: NDArray[np.int64]) -> None:
    """Wait a moment for the other threads' last games."""
    for _ in range(_LINGER):
        if load(job, _FINISHED) >= job[TOTAL]:
            return


def leave_no_games(job: NDArray[np.int64]) -> None:
    """Set the counters as after a step: nothing to claim, everything finished."""
    job[_FIRST::LINE] = job[TOTAL]
    job[_FINISHED] = job[TOTAL]


def finished(job: NDArray[np.int64]) -> bool:
    """Return whether all games of the step have been played."""
    return bool(job[_FINISHED] >= job[TOTAL])


def happened_in(job: NDArray[np.int64]) -> int:
    """Return what happened in a finished step, bits as ``step_games`` returns them."""
    return int(np.bitwise_or.reduce(job[_FIRST + 1 :: LINE]))

"""How threads share the games of a step: compiled code takes the next few from common counters.

Every thread has a share of its own, which stays in its core's cache from step to step.  Who is
through with it goes on with what is left of the others', so nobody waits for a thread that began
late or whose games are slow.

The counters stand behind the job's entries: the games finished, whether the threads are to end,
then for each thread the next game of its share, then for each whether it sleeps.  A step begins
when the caller sets the shares back.  Whoever gets games by ``claim`` may trust the job's other
entries until it has called ``finish`` for them, because no step ends before.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.machine.compiled import rule
from tempest_agent.envs.machine.intrinsics import fetch_add, load, store

from .step_job import COUNTERS, LINE, THREADS, TOTAL

CHUNK = 8
"""Games taken at once: some 8 microseconds of play, which is what the last thread is late."""

_FINISHED, _CLOSED, _FIRST = 0, 1, 2

_LINGER = 40_000
# Reads of the counter before giving up on a thread's last chunk: some 20 microseconds.

_PATIENCE = 400_000
# Reads before a thread sleeps: some 200 microseconds, longer than a vector environment needs from
# one step to the next.  Waking a thread would take a tenth of a step of 1,024 games.


@rule
def _end_of_share(job: NDArray[np.int64], share: int) -> int:
    return job[TOTAL] * (share + 1) // job[THREADS]


@rule
def open_shares(job: NDArray[np.int64]) -> None:
    """Let the threads begin with the step that the job describes."""
    counters = job[COUNTERS::LINE]
    threads = job[THREADS]
    store(counters, _FINISHED, 0)
    for share in range(threads):
        store(counters, _FIRST + share, job[TOTAL] * share // threads)


@rule
def claim(job: NDArray[np.int64], share: int) -> tuple[int, int]:
    """Return the next games for the owner of ``share`` to play: from, up to; equal when none is left."""
    counters = job[COUNTERS::LINE]
    threads = job[THREADS]
    for turn in range(threads):
        at = (share + turn) % threads
        stop = _end_of_share(job, at)
        if load(counters, _FIRST + at) < stop:
            start = fetch_add(counters, _FIRST + at, CHUNK)
            if start < stop:
                return start, min(start + CHUNK, stop)
    return 0, 0


@rule
def finish(job: NDArray[np.int64], games: int) -> None:
    """Count ``games`` games as played."""
    fetch_add(job[COUNTERS::LINE], _FINISHED, games)


@rule
def linger(job: NDArray[np.int64]) -> bool:
    """Wait a moment for the others to finish; whether they have."""
    counters = job[COUNTERS::LINE]
    for _ in range(_LINGER):
        if load(counters, _FINISHED) >= job[TOTAL]:
            return True
    return False


@rule
def await_share(job: NDArray[np.int64], share: int, woken: bool) -> bool:
    """Wait for the next step to begin; whether it has.  If not, the thread is to sleep.

    ``woken``: it comes from sleep, so the step must begin at once.  If it does not, the thread
    has probably taken the caller's place on a busy processor.
    """
    counters = job[COUNTERS::LINE]
    stop = _end_of_share(job, share)
    for _ in range(_PATIENCE // 4 if woken else _PATIENCE):
        if load(counters, _FIRST + share) < stop:
            return True
        if load(counters, _CLOSED) != 0:
            return False
    store(counters, _FIRST + job[THREADS] + share, 1)
    # The caller may have begun before it could see that.
    return load(counters, _FIRST + share) < stop


def clear_shares(job: NDArray[np.int64]) -> None:
    """Leave no games, as after a step, and all threads awake: the start of new threads."""
    counters = job[COUNTERS::LINE]
    counters[:] = 0
    counters[_FINISHED] = job[TOTAL]
    counters[_FIRST : _FIRST + int(job[THREADS])] = job[TOTAL]


def finished(job: NDArray[np.int64]) -> bool:
    """Return whether all games of the step have been played."""
    return job.item(COUNTERS + _FINISHED * LINE) >= job.item(TOTAL)


def take_sleeper(job: NDArray[np.int64], share: int) -> bool:
    """Return whether the thread sleeps, or is about to; from now on it counts as one that is awake."""
    place = COUNTERS + (_FIRST + job.item(THREADS) + share) * LINE
    sleeps = job.item(place) != 0
    if sleeps:
        job[place] = 0
    return sleeps


def dismiss(job: NDArray[np.int64]) -> None:
    """Let every thread end once it has no more games to play."""
    job[COUNTERS + _CLOSED * LINE] = 1


def dismissed(job: NDArray[np.int64]) -> bool:
    """Return whether ``dismiss`` has been called."""
    return job.item(COUNTERS + _CLOSED * LINE) != 0

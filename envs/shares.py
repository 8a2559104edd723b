"""How threads share the games of a step: compiled code takes the next few from a common list.

Every thread has a share of its own, which stays in its core's cache from step to step.  Who is
through with it goes on with what is left of the others', so nobody waits for a thread that began
late or whose games are slow.  A list is good for one step: a thread that comes too late finds
nothing in it to do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .arcade.compiled import rule
from .intrinsics import fetch_add, load

CHUNK = 8
"""Games taken at once: some 10 microseconds of play, which is what the last thread is late."""

_LINE = 8
# A cache line to each counter, so that threads do not take it from each other.

_PATIENCE = 20_000
# Reads of the counter before giving up: some 10 microseconds, about the time of a chunk.


def no_shares() -> NDArray[np.int64]:
    """The list of a step that one thread plays alone."""
    return np.zeros(0, np.int64)


def new_shares(total: int, threads: int) -> NDArray[np.int64]:
    """A list of ``total`` games for ``threads`` threads, nothing of it done."""
    shares = np.zeros((threads + 1) * _LINE, np.int64)
    for share in range(threads):
        shares[share * _LINE] = total * share // threads
    return shares


def finished(shares: NDArray[np.int64]) -> int:
    """How many games have been played to the step's end."""
    return int(shares[-_LINE])


@rule
def claim(shares: NDArray[np.int64], share: int, total: int) -> tuple[int, int]:
    """The next games for the owner of ``share`` to play: from, up to; equal when none is left."""
    threads = len(shares) // _LINE - 1
    for turn in range(threads):
        at = (share + turn) % threads
        stop = total * (at + 1) // threads
        start = fetch_add(shares, at * _LINE, CHUNK)
        if start < stop:
            return start, min(start + CHUNK, stop)
    return 0, 0


@rule
def finish(shares: NDArray[np.int64], games: int) -> None:
    """Count ``games`` games as played."""
    fetch_add(shares, len(shares) - _LINE, games)


@rule
def linger(shares: NDArray[np.int64], total: int) -> None:
    """Stay a moment, since the others are about to finish; being woken would take longer."""
    for _ in range(_PATIENCE if len(shares) > 0 else 0):
        if load(shares, len(shares) - _LINE) == total:
            break

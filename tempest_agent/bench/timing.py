"""TODO"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

REPETITIONS = 5


Preparation: TypeAlias = Callable[[], Callable[[], None]]
"""Makes something to be timed."""


def fastest(*prepare: Preparation) -> list[float]:
    """Least seconds of ``REPETITIONS`` runs of each; what ``prepare`` does is not timed.

    The runs take turns, so that a machine that is busy for a while slows all of them down.
    """
    seconds: list[list[float]] = [[] for _ in prepare]
    for _ in range(REPETITIONS + 1):  # The first one compiles.
        for times, make in zip(seconds, prepare, strict=True):
            run = make()
            began = time.perf_counter()
            run()
            times.append(time.perf_counter() - began)
    return [min(times[1:]) for times in seconds]


def paired(count: int, *pairs: tuple[Preparation, Preparation]) -> list[tuple[float, float]]:
    """Seconds of both of each pair, whose ratio is the median of those of ``count`` runs of both.

    The two follow each other, so that what else the machine does disturbs both.  The pairs take
    turns, so that a machine that is busy for a while disturbs them alike.
    """
    seconds = np.zeros((len(pairs), count + 1, 2))
    for number in range(count + 1):
        for which, pair in enumerate(pairs):
            for way, make in enumerate(pair):
                run = make()
                began = time.perf_counter()
                run()
                seconds[which, number, way] = time.perf_counter() - began
    return [_typical(each[1:]) for each in seconds]  # The first ones compile.


def _typical(pairs: NDArray[np.float64]) -> tuple[float, float]:
    """Of ``(runs, 2)`` seconds: the second's least, and the first's by the median of the ratios."""
    ratio = float(np.median(pairs[:, 0] / pairs[:, 1]))
    least = float(pairs[:, 1].min())
    return ratio * least, least

"""Time several ways of doing something in turns, so that other load slows all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

REPETITIONS = 5

Preparation: TypeAlias = Callable[[], Callable[[], None]]
"""Prepares a run, untimed, and returns what is timed."""


def seconds_of(run: Callable[[], object]) -> float:
    """Return the wall-clock seconds of one call of ``run``."""
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def rounds(count: int, warm_up: int, *prepare: Preparation) -> NDArray[np.float64]:
    """Return the seconds of ``count`` rounds, ``(len(prepare), count)``.

    In each round every way runs once; the first ``warm_up`` rounds, which compile and allocate, are
    left out.
    """
    seconds = np.empty((len(prepare), warm_up + count))
    for number in range(warm_up + count):
        for way, make in enumerate(prepare):
            seconds[way, number] = seconds_of(make())
    return seconds[:, warm_up:]


def fastest(*prepare: Preparation) -> list[float]:
    """Return the least seconds of ``REPETITIONS`` runs of each way."""
    return [float(least) for least in rounds(REPETITIONS, 1, *prepare).min(1)]


def paired(count: int, *pairs: tuple[Preparation, Preparation]) -> list[tuple[float, float]]:
    """Return the seconds of both ways of each pair, their ratio the median of ``count`` rounds.

    The second's is its least; the first's follows from the median of the ratios.
    """
    seconds = rounds(count, 1, *(way for pair in pairs for way in pair))
    least = seconds[1::2].min(1)
    ratios = np.median(seconds[::2] / seconds[1::2], axis=1)
    return [(float(r * s), float(s)) for r, s in zip(ratios, least, strict=True)]

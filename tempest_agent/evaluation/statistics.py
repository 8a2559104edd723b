"""Statistics of scores: interquartile mean, probability of improvement, and their intervals.

Agarwal et al. 2021, "Deep Reinforcement Learning at the Edge of the Statistical Precipice": with
few games, the interquartile mean with a stratified bootstrap interval is more reliable than the
mean or the median.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

BOOTSTRAP_SEED = 20210830
"""Fixed, so that the same scores always give the same interval."""


def interquartile_mean(scores: ArrayLike) -> float:
    """Return the 25 % trimmed mean of ``scores`` (shape ``(n,)``, n >= 1).

    ``floor(n / 4)`` scores are left out at either end.
    """
    values = np.sort(np.asarray(scores, np.float64))
    if values.ndim != 1 or not values.size:
        raise ValueError("scores must be a one-dimensional array of at least one score")
    return float(_trimmed_means(values[None])[0])


def bootstrap_interval(
    strata: Sequence[ArrayLike], confidence: float = 0.95, resamples: int = 2_000
) -> tuple[float, float]:
    """Return the percentile bootstrap interval of the interquartile mean over all scores.

    ``strata`` are groups of scores (one per start level, say).  Every resample draws from each
    group, with replacement, as many scores as it has, which keeps the proportions of the groups.
    """
    groups = [np.asarray(group, np.float64) for group in strata]
    if not groups or any(group.ndim != 1 or not group.size for group in groups):
        raise ValueError("every stratum must be a one-dimensional array of at least one score")
    random = np.random.default_rng(BOOTSTRAP_SEED)
    drawn = np.concatenate(
        [group[random.integers(0, group.size, (resamples, group.size))] for group in groups],
        axis=1,
    )
    means = _trimmed_means(np.sort(drawn, axis=1))
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(means, [tail, 1.0 - tail])
    return float(low), float(high)


def median_interval(
    values: ArrayLike, confidence: float = 0.95, resamples: int = 2_000
) -> tuple[float, float]:
    """Return the percentile bootstrap interval of the median of ``values``, ``(n,)``, n >= 1."""
    (group,) = _scores_of([values])
    random = np.random.default_rng(BOOTSTRAP_SEED)
    drawn = group[random.integers(0, group.size, (resamples, group.size))]
    return _percentiles(np.median(drawn, axis=1).tolist(), confidence)


def runs_interval(
    runs: Sequence[ArrayLike], confidence: float = 0.95, resamples: int = 2_000
) -> tuple[float, float]:
    """Return the interval of the interquartile mean over the scores of several training runs.

    ``runs`` are the scores of each run, shape ``(games,)``.  The interval covers the variation
    between runs and between games: every resample draws as many runs as there are, with
    replacement, and from each drawn run as many of its scores as it has.
    """
    random = np.random.default_rng(BOOTSTRAP_SEED)
    means = [
        float(_trimmed_means(np.sort(drawn)[None])[0])
        for drawn in _resampled_runs(_scores_of(runs), resamples, random)
    ]
    return _percentiles(means, confidence)


def probability_of_improvement(scores: ArrayLike, others: ArrayLike) -> float:
    """Return the chance that a random one of ``scores`` is above a random one of ``others``.

    Ties count half: the Mann-Whitney statistic over all pairs, as in Agarwal et al. 2021.
    """
    ours, theirs = _scores_of([scores, others])
    ordered = np.sort(theirs)
    below = np.searchsorted(ordered, ours, "left")
    at_most = np.searchsorted(ordered, ours, "right")
    return float((below + at_most).sum() / (2.0 * ours.size * theirs.size))


def improvement_interval(
    runs: Sequence[ArrayLike],
    others: Sequence[ArrayLike],
    confidence: float = 0.95,
    resamples: int = 2_000,
) -> tuple[float, float]:
    """Return the interval of ``probability_of_improvement``, resampled as in ``runs_interval``."""
    random = np.random.default_rng(BOOTSTRAP_SEED)
    pairs = zip(
        _resampled_runs(_scores_of(runs), resamples, random),
        _resampled_runs(_scores_of(others), resamples, random),
        strict=True,
    )
    return _percentiles([probability_of_improvement(*pair) for pair in pairs], confidence)


def _scores_of(groups: Sequence[ArrayLike]) -> list[NDArray[np.float64]]:
    arrays = [np.asarray(group, np.float64) for group in groups]
    if not arrays or any(array.ndim != 1 or not array.size for array in arrays):
        raise ValueError("every group must be a one-dimensional array of at least one score")
    return arrays


def _resampled_runs(
    runs: Sequence[NDArray[np.float64]], resamples: int, random: np.random.Generator
) -> Iterator[NDArray[np.float64]]:
    for _ in range(resamples):
        drawn = [runs[number] for number in random.integers(0, len(runs), len(runs))]
        yield np.concatenate([run[random.integers(0, run.size, run.size)] for run in drawn])


def _percentiles(values: Sequence[float], confidence: float) -> tuple[float, float]:
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(values, [tail, 1.0 - tail])
    return float(low), float(high)


def _trimmed_means(ordered: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of the middle half of each sorted row of ``ordered``, ``(rows, n)``."""
    cut = ordered.shape[1] // 4
    middle = ordered[:, cut : ordered.shape[1] - cut]
    return np.asarray(middle.mean(axis=1), np.float64)

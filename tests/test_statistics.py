"""The interquartile mean and its bootstrap interval."""

from __future__ import annotations

import numpy as np
import pytest

from tempest_agent.statistics import bootstrap_interval, interquartile_mean


@pytest.mark.parametrize(
    ("scores", "mean"),
    [
        ([5.0], 5.0),
        ([1, 2, 3], 2.0),
        ([0, 10, 20, 1000], 15.0),
        ([1000, 20, 10, 0], 15.0),
        ([0, 1, 2, 3, 4], 2.0),
        ([0, 0, 1, 2, 3, 4, 90, 90], 2.5),
    ],
)
def test_mean_of_the_middle_half(scores: list[float], mean: float) -> None:
    assert interquartile_mean(scores) == mean


def test_mean_equals_a_slow_reference_for_every_size() -> None:
    random = np.random.default_rng(1)
    for size in range(1, 40):
        scores = random.normal(size=size)
        rest = list(scores)
        for _ in range(size // 4):
            rest.remove(min(rest))
            rest.remove(max(rest))
        assert interquartile_mean(scores) == pytest.approx(sum(rest) / len(rest))


def test_interval_is_the_same_at_every_call_and_holds_the_mean() -> None:
    scores = np.random.default_rng(2).normal(100.0, 10.0, 100)
    low, high = bootstrap_interval([scores])
    assert (low, high) == bootstrap_interval([scores])
    assert low < interquartile_mean(scores) < high


def test_interval_covers_the_true_mean_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(3)
    hits = 0
    for _ in range(200):
        low, high = bootstrap_interval([random.normal(0.0, 1.0, 100)], resamples=400)
        hits += low <= 0.0 <= high
    assert 176 <= hits <= 199


def test_interval_of_equal_scores_is_a_point() -> None:
    assert bootstrap_interval([[7, 7, 7, 7]]) == (7.0, 7.0)


def test_resamples_keep_the_size_of_every_stratum() -> None:
    # Two constant groups: any resample that keeps the proportion has the same mean.
    assert bootstrap_interval([[0.0] * 6, [10.0] * 6]) == (5.0, 5.0)
    low, high = bootstrap_interval([[0.0] * 6 + [10.0] * 6])
    assert low < 5.0 < high


@pytest.mark.parametrize("scores", [[], [[1.0, 2.0]]])
def test_what_is_not_a_list_of_scores_is_refused(scores: list[object]) -> None:
    with pytest.raises(ValueError, match="at least one score"):
        interquartile_mean(scores)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least one score"):
        bootstrap_interval([scores])  # type: ignore[list-item]

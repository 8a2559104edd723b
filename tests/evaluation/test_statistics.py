"""The interquartile mean and its bootstrap interval."""

from __future__ import annotations

import numpy as np
import pytest

from tempest_agent.evaluation.statistics import (
    bootstrap_interval,
    improvement_interval,
    interquartile_mean,
    probability_of_improvement,
    runs_interval,
)


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


@pytest.mark.parametrize(
    ("scores", "others", "probability"),
    [
        ([3, 1], [2, 0], 3 / 4),
        ([1, 2, 3], [2, 2], 1 / 2),
        ([5], [1, 2, 3], 1),
        ([1], [1], 1 / 2),
        ([0, 0], [1, 2, 3], 0),
    ],
)
def test_probability_of_improvement(
    scores: list[float], others: list[float], probability: float
) -> None:
    assert probability_of_improvement(scores, others) == probability


def test_probability_of_improvement_equals_a_count_of_all_pairs() -> None:
    random = np.random.default_rng(4)
    for _ in range(20):
        ours = random.integers(0, 8, random.integers(1, 30))
        theirs = random.integers(0, 8, random.integers(1, 30))
        wins = sum(1.0 if x > y else 0.5 if x == y else 0.0 for x in ours for y in theirs)
        expected = wins / (len(ours) * len(theirs))
        assert probability_of_improvement(ours, theirs) == pytest.approx(expected)


def test_whole_runs_are_drawn_as_well_as_their_games() -> None:
    # Both zeros (1 in 4), both tens, or one of each, whose middle half has the mean 5.
    assert runs_interval([[0] * 8, [10] * 8]) == (0, 10)
    assert runs_interval([[0] * 8, [10] * 8], confidence=0.3) == (5, 5)
    assert improvement_interval([[0] * 4, [10] * 4], [[5] * 4]) == (0, 1)
    assert improvement_interval([[7] * 4], [[5] * 4, [6] * 4]) == (1, 1)


def test_one_run_is_a_plain_bootstrap_of_its_games() -> None:
    scores = np.random.default_rng(5).normal(100.0, 10.0, 64)
    plain, ours = bootstrap_interval([scores]), runs_interval([scores])
    assert ours == pytest.approx(plain, abs=0.5)
    assert ours == runs_interval([scores])


def test_the_interval_over_runs_covers_the_truth_where_runs_differ() -> None:
    random = np.random.default_rng(6)
    hits = {runs_interval: 0, bootstrap_interval: 0}
    for _ in range(60):
        runs = [random.normal(random.normal(), 0.3, 16) for _ in range(8)]
        for interval in hits:
            low, high = interval(runs, resamples=200)
            hits[interval] += low <= 0.0 <= high
    assert hits[runs_interval] >= 48
    assert hits[bootstrap_interval] <= 30


@pytest.mark.parametrize("runs", [[], [[]], [[[1.0]]]])
def test_runs_without_scores_are_refused(runs: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="at least one score"):
        runs_interval(runs)
    with pytest.raises(ValueError, match="at least one score"):
        improvement_interval(runs, [[1.0]])

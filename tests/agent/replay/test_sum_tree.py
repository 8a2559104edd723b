"""The sum tree against plain cumulative sums."""

from __future__ import annotations

import numpy as np
import pytest

from tempest_agent.agent.replay.sum_tree import SumTree


class FixedDraws:
    """Stands in for a generator: the middle of every slice."""

    def random(self, count: int) -> np.ndarray:
        return np.full(count, 0.5)


@pytest.mark.parametrize("size", [1, 31, 32, 33, 1000, 4096])
def test_rows_are_those_of_the_cumulative_sum(size: int) -> None:
    random = np.random.default_rng(size)
    tree = SumTree(size)
    values = np.zeros(size)
    for _ in range(20):
        rows = random.integers(0, size, 50)
        # Whole numbers add up without rounding, so both ways must agree exactly.
        new = random.integers(0, 9, 50).astype(np.float64)
        tree.set(rows, new)
        values[rows] = new
    values[0] = 5.0
    tree.set(np.array([0]), np.array([5.0]))
    np.testing.assert_array_equal(tree.values, values)
    assert tree.total == values.sum()
    count = 333
    masses = (np.arange(count) + 0.5) * (values.sum() / count)
    expected = np.searchsorted(np.cumsum(values), masses, side="right")
    np.testing.assert_array_equal(tree.sample(count, FixedDraws()), expected)  # type: ignore[arg-type]


def test_a_row_of_priority_zero_is_never_drawn() -> None:
    random = np.random.default_rng(0)
    tree = SumTree(500)
    values = random.random(500) * (random.random(500) < 0.1) * 1e-9
    values[123] = 1e9
    tree.set(np.arange(500), values)
    for _ in range(200):
        assert (values[tree.sample(64, random)] > 0).all()

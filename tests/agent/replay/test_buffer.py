"""The replay against a slow reference that works on whole episodes, and its special cases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from replay_rows import FEATURES, check_against_reference, make_rows

from tempest_agent.agent.replay.buffer import ReplayBuffer
from tempest_agent.agent.replay.ring import check_memory
from tempest_agent.agent.replay.rows import AGENT, EXPERT, EXPLORATION, Rows
from tempest_agent.errors import UserError


@pytest.mark.parametrize("trace", ["uncorrected", "cut"])
@pytest.mark.parametrize("n_steps", [1, 3, 5])
@pytest.mark.parametrize("prioritised", [False, True])
def test_samples_equal_the_slow_reference(trace: str, n_steps: int, prioritised: bool) -> None:
    games = 3
    random = np.random.default_rng(n_steps)
    buffer = ReplayBuffer(
        games * 17,
        games,
        FEATURES,
        n_steps=n_steps,
        gamma=0.9,
        trace=trace,
        prioritised=prioritised,
    )
    history: list[Rows] = []
    for t in range(60):
        history.append(make_rows(t, games, random))
        buffer.add(history[-1])
        if t >= 1:
            check_against_reference(buffer, history, buffer.sample(40))


def test_every_complete_row_is_sampled_and_the_newest_is_not() -> None:
    random = np.random.default_rng(0)
    buffer = ReplayBuffer(2 * 10, 2, FEATURES, n_steps=3, gamma=0.9)
    for t in range(14):
        buffer.add(make_rows(t, 2, random, ends=0.0))
    newest = (buffer.position - 1) % 10
    seen = set(buffer.sample(3000).rows.tolist())
    assert seen == set(range(20)) - {2 * newest, 2 * newest + 1}


def episode(ends: str) -> list[Rows]:
    """One game, six decisions of reward 1, ended at the sixth, then six more."""
    random = np.random.default_rng(0)
    rows = []
    for t in range(12):
        last = np.array([t == 5])
        row = make_rows(t, 1, random, ends=0.0)
        rows.append(
            row._replace(
                reward=np.ones(1, np.float32),
                terminated=last & ("terminated" in ends),
                truncated=last & ("truncated" in ends),
                driver=np.zeros(1, np.uint8),
            )
        )
    return rows


def sampled_by_row(buffer: ReplayBuffer) -> dict[int, tuple[int, float, NDArray[np.int8]]]:
    batch = buffer.sample(500)
    return {
        int(row): (int(batch.horizons[i]), float(batch.discounts[i]), batch.next_codes[i])
        for i, row in enumerate(batch.rows)
    }


def test_all_six_starts_before_a_death_are_sampled_without_bootstrap() -> None:
    buffer = ReplayBuffer(20, 1, FEATURES, n_steps=12, gamma=0.5)
    for row in episode("terminated"):
        buffer.add(row)
    found = sampled_by_row(buffer)
    assert [found[t][:2] for t in range(6)] == [(6 - t, 0.0) for t in range(6)]


def test_truncation_bootstraps_on_the_games_own_last_observation() -> None:
    buffer = ReplayBuffer(20, 1, FEATURES, n_steps=12, gamma=0.5)
    for row in episode("truncated"):
        buffer.add(row)
    found = sampled_by_row(buffer)
    for t in range(6):
        horizon, discount, codes = found[t]
        assert (horizon, discount) == (6 - t, 0.5 ** (6 - t))
        assert codes[3] == -1
        assert codes[0] == 5


def test_death_on_the_last_allowed_decision_is_a_termination() -> None:
    buffer = ReplayBuffer(20, 1, FEATURES, n_steps=3, gamma=0.5)
    for row in episode("terminated truncated"):
        buffer.add(row)
    assert sampled_by_row(buffer)[5][:2] == (1, 0.0)
    assert not buffer.final_observations


def test_games_that_are_left_do_not_reach_into_the_next() -> None:
    random = np.random.default_rng(0)
    buffer = ReplayBuffer(20, 1, FEATURES, n_steps=12, gamma=0.5)
    left_at = np.full((1, FEATURES), 77, np.int8)
    buffer.end_games(left_at, np.array([True]))
    for t in range(8):
        buffer.add(make_rows(t, 1, random, ends=0.0))
        if t == 4:
            buffer.end_games(left_at, np.array([True]))
    found = sampled_by_row(buffer)
    assert [found[t][0] for t in range(5)] == [5, 4, 3, 2, 1]
    for t in range(5):
        np.testing.assert_array_equal(found[t][2], left_at[0])
    assert found[5][0] == 2


def test_a_trace_is_cut_at_the_first_later_action_of_another() -> None:
    drivers = [EXPERT, AGENT, AGENT, EXPLORATION, EXPERT, AGENT, AGENT, AGENT]
    random = np.random.default_rng(0)
    buffer = ReplayBuffer(20, 1, FEATURES, n_steps=4, gamma=0.5, trace="cut")
    for t, driver in enumerate(drivers):
        rows = make_rows(t, 1, random, ends=0.0)
        buffer.add(rows._replace(driver=np.array([driver], np.uint8)))
    found = sampled_by_row(buffer)
    assert [found[t][0] for t in range(7)] == [3, 2, 1, 1, 3, 2, 1]


def test_observations_kept_aside_go_with_their_rows() -> None:
    random = np.random.default_rng(3)
    buffer = ReplayBuffer(4 * 8, 4, FEATURES, n_steps=2, gamma=0.9)
    for t in range(100):
        buffer.add(make_rows(t, 4, random, ends=0.3))
        assert len(buffer.final_observations) <= 32
        flags = buffer.flags.reshape(-1)
        assert all((flags[row] & 3) == 2 for row in buffer.final_observations)


@pytest.mark.parametrize("prioritised", [False, True])
def test_snapshot_gives_the_same_samples(prioritised: bool) -> None:
    random = np.random.default_rng(5)

    def new(seed: int) -> ReplayBuffer:
        return ReplayBuffer(
            3 * 9, 3, FEATURES, n_steps=3, gamma=0.9, seed=seed, prioritised=prioritised
        )

    first, second = new(1), new(2)
    for t in range(13):
        first.add(make_rows(t, 3, random))
        if t:
            first.update_priorities(first.sample(5).rows, random.random(5))
    second.load(first.arrays(), first.state_dict())
    for t in range(13, 30):
        rows = make_rows(t, 3, random)
        first.add(rows)
        second.add(rows)
        for a, b in zip(first.sample(20), second.sample(20), strict=True):
            np.testing.assert_array_equal(a, b)


def test_priorities_decide_how_often_a_row_is_drawn() -> None:
    random = np.random.default_rng(0)
    buffer = ReplayBuffer(
        10, 1, FEATURES, n_steps=1, gamma=0.9, prioritised=True, priority_exponent=1.0
    )
    for t in range(9):
        buffer.add(make_rows(t, 1, random))
    rows = np.arange(8)
    errors = np.array([1, 2, 3, 4, 0, 0, 0, 10], np.float64)
    buffer.update_priorities(rows, errors)
    batch = buffer.sample(20_000, importance=1.0)
    counts = np.bincount(batch.rows, minlength=9) / 20_000
    np.testing.assert_allclose(counts[:8], errors / 20, atol=0.01)
    assert counts[8] == 0
    # With beta = 1 the weights undo the priorities: weight x chance is the same for all rows.
    products = batch.weights * (errors[batch.rows] + 1e-3)
    np.testing.assert_allclose(products, products[0], rtol=1e-4)


def test_a_buffer_that_cannot_fit_is_refused_before_allocation() -> None:
    with pytest.raises(UserError, match=r"replay\.capacity=1000000000000 needs .* at most \d+"):
        ReplayBuffer(10**12, 128, 400, n_steps=5, gamma=0.99)
    check_memory(1000, 400)


def test_a_buffer_too_short_for_its_returns_is_refused() -> None:
    with pytest.raises(UserError, match="set at least 896"):
        ReplayBuffer(500, 128, 4, n_steps=5, gamma=0.99)


def test_an_empty_buffer_cannot_be_sampled() -> None:
    buffer = ReplayBuffer(100, 4, FEATURES, n_steps=2, gamma=0.9)
    buffer.add(make_rows(0, 4, np.random.default_rng(0)))
    with pytest.raises(ValueError, match="no complete decision"):
        buffer.sample(1)


# --- priorities ---------------------------------------------------------------------------------


def filled(steps: int, games: int = 8, ends: float = 0.1, **settings: Any) -> ReplayBuffer:
    random = np.random.default_rng(0)
    buffer = ReplayBuffer(games * 40, games, FEATURES, n_steps=3, gamma=0.9, **settings)
    for t in range(steps):
        buffer.add(make_rows(t, games, random, ends))
    return buffer


def test_one_row_comes_from_each_slice_of_the_priorities() -> None:
    """With equal priorities a batch as large as the buffer draws every row just once."""
    buffer = filled(40, prioritised=True)
    count = len(buffer)
    assert sorted(buffer.sample(count).rows.tolist()) == sorted(
        np.flatnonzero(buffer.priorities.values > 0).tolist()  # type: ignore[union-attr]
    )


def test_a_new_row_has_the_largest_priority_seen() -> None:
    buffer = filled(20, prioritised=True, priority_exponent=1.0)
    buffer.update_priorities(buffer.sample(4).rows, np.array([7.0, 1.0, 0.5, 0.1]))
    buffer.add(make_rows(20, 8, np.random.default_rng(1)))
    new = 19 * 8 + np.arange(8)
    tree = buffer.priorities
    assert tree is not None
    np.testing.assert_allclose(tree.values[new], 7.001)
    np.testing.assert_array_equal(tree.values[20 * 8 : 21 * 8], 0.0)


@pytest.mark.parametrize("beta", [0.0, 0.4, 1.0])
def test_importance_weights_by_hand(beta: float) -> None:
    buffer = filled(30, prioritised=True, priority_exponent=1.0)
    tree = buffer.priorities
    assert tree is not None
    everything = np.flatnonzero(tree.values > 0)
    errors = np.random.default_rng(2).uniform(0.1, 5, everything.size)
    buffer.update_priorities(everything, errors)
    batch = buffer.sample(64, importance=beta)
    chance = tree.values[batch.rows] / tree.values.sum()
    raw = (1.0 / (len(buffer) * chance)) ** beta
    np.testing.assert_allclose(batch.weights, raw / raw.max(), rtol=1e-5)


def test_ages_count_decisions_of_all_games() -> None:
    buffer = filled(55)
    newest = (buffer.position - 1) % buffer.length
    rows = np.array([newest * 8 + 3, ((newest - 1) % 40) * 8, ((newest + 1) % 40) * 8 + 7])
    np.testing.assert_array_equal(buffer.ages(rows), [0, 8, 39 * 8])


def test_the_path_of_a_return_is_its_decisions() -> None:
    buffer = filled(50, trace="retrace")
    batch = buffer.sample(50)
    assert batch.path is not None
    for i, row in enumerate(batch.rows):
        for k in range(3):
            assert batch.path.valid[i, k] == (k < batch.horizons[i])
            t, game = ((row // 8) + k) % 40, row % 8
            np.testing.assert_array_equal(batch.path.codes[i, k], buffer.codes[t, game])
            assert batch.path.reward[i, k] == buffer.reward[t, game]
            assert batch.path.driver[i, k] == (buffer.flags[t, game] >> 4) & 3
    total = (batch.path.reward * batch.path.valid * 0.9 ** np.arange(3)).sum(axis=1)
    np.testing.assert_allclose(total, batch.returns, rtol=1e-5, atol=1e-6)
    assert filled(50).sample(4).path is None

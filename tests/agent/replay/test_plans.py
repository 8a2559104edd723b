"""Labels of plans in the replay: merged, stored late, marked near deaths, and drawn by shares."""

from __future__ import annotations

import numpy as np
import pytest
from replay_rows import FEATURES, make_rows

from tempest_agent.agent.replay.buffer import ReplayBuffer, Shares
from tempest_agent.agent.replay.plans import (
    MOST_REGRET,
    NO_PLAN,
    PLANS,
    LateLabels,
    merge_plans,
)
from tempest_agent.agent.replay.rows import Rows

GAMES, LENGTH = 5, 20
SHARES = Shares(0.5, 0.25)


def make_buffer(shares: Shares | None = SHARES) -> ReplayBuffer:
    return ReplayBuffer(
        GAMES * LENGTH, GAMES, FEATURES, n_steps=3, gamma=0.9, seed=4, shares=shares
    )


def named(steps: list[int], games: list[int], now: int) -> LateLabels:
    """Labels that name their step and game."""
    step, game = np.array(steps), np.array(games)
    spin = np.tile((step % 100).astype(np.int8)[:, None], PLANS)
    buttons = np.tile(game.astype(np.uint8)[:, None], PLANS)
    regret = np.tile((step * 10 + game).astype(np.uint16)[:, None], PLANS)
    return LateLabels(now - step, game, spin, buttons, regret)


def test_plans_with_one_first_action_are_worth_what_the_best_is() -> None:
    random = np.random.default_rng(1)
    spins = random.integers(-1, 3, (50, 33)).astype(np.int8)
    buttons = random.integers(0, 4, (50, 33)).astype(np.uint8)
    values = random.normal(0, 1500, (50, 33))
    values[random.random((50, 33)) < 0.3] = -np.inf
    values[7] = -np.inf
    merged = merge_plans(spins, buttons, values)
    for row in range(50):
        best: dict[tuple[int, int], float] = {}
        for spin, pressed, value in zip(spins[row], buttons[row], values[row], strict=True):
            if value > -np.inf:
                action = int(spin), int(pressed)
                best[action] = max(best.get(action, -np.inf), value)
        most = max(best.values(), default=0.0)
        wanted = {action: min(most - value, MOST_REGRET) for action, value in best.items()}
        found = {
            (int(spin), int(pressed)): int(regret)
            for spin, pressed, regret in zip(*(part[row] for part in merged), strict=True)
            if regret != NO_PLAN
        }
        assert found == {action: int(regret + 0.5) for action, regret in wanted.items()}


def test_of_too_many_first_actions_the_best_are_kept() -> None:
    spins = np.arange(31, dtype=np.int8)[None]
    values = np.random.default_rng(0).permutation(31).astype(np.float64)[None]
    spin, _, regret = merge_plans(spins, np.zeros((1, 31), np.uint8), values)
    assert sorted(regret[0]) == list(range(PLANS))
    assert set(spin[0]) == set(np.argsort(-values[0])[:PLANS])


@pytest.mark.parametrize("steps", [12, 47])
def test_late_labels_land_in_their_rows_and_go_with_them(steps: int) -> None:
    random = np.random.default_rng(2)
    buffer = make_buffer()
    labelled: set[tuple[int, int]] = set()
    for t in range(steps):
        buffer.add(make_rows(t, GAMES, random))
        if t % 5 == 4:
            codes = np.zeros((GAMES, FEATURES), np.int8)
            buffer.end_games(codes, np.zeros(GAMES, np.bool_), np.arange(GAMES) == 1)
        asked = [(t - ago, game) for ago in range(13) for game in range(GAMES)]
        asked = [each for each in asked if random.random() < 0.05 and each not in labelled]
        if asked:
            # Those before the first step belong to rows that a resumed run has lost.
            buffer.add_labels(named(*map(list, zip(*asked, strict=True)), now=t))
            labelled |= set(asked)
    for t in range(max(0, steps - LENGTH), steps):
        for game in range(GAMES):
            row = t % LENGTH, game
            batch = buffer._batch(np.array([row[0] * GAMES + game]), np.ones(1, np.float32))
            assert batch.plans is not None
            assert batch.plans.known[0] == ((t, game) in labelled)
            if batch.plans.known[0]:
                assert (batch.plans.regret == t * 10 + game).all()
                assert (batch.plans.buttons == game).all()
                assert (batch.plans.spin == t % 100).all()


def quiet(t: int, starts: list[int]) -> Rows:
    """Rows that end nothing; the games ``starts`` begin."""
    rows = make_rows(t, GAMES, np.random.default_rng(t), ends=0.0)
    return rows._replace(episode_start=np.isin(np.arange(GAMES), starts))


def test_the_last_ticks_of_a_life_are_marked() -> None:
    buffer = make_buffer()
    for t in range(30):
        buffer.add(quiet(t, [2] if t == 25 else []))
        died = np.isin(np.arange(GAMES), {24: [0], 26: [0], 28: [2], 29: [4]}.get(t, []))
        buffer.mark_deaths(died, 4)
    near = buffer.plan_columns["near_death"]
    marked = {(t, game) for t in range(10, 30) for game in range(GAMES) if near[t % LENGTH, game]}
    assert marked == {
        *((t, 0) for t in range(21, 27)),
        *((t, 2) for t in range(25, 29)),
        *((t, 4) for t in range(26, 30)),
    }
    drawn = buffer.sample(2000).rows[:500]
    newest = 29 % LENGTH
    assert set(drawn.tolist()) == {
        t % LENGTH * GAMES + game for t, game in marked if t % LENGTH != newest
    }
    for t in range(30, 47):
        buffer.add(quiet(t, []))
    assert near.sum() == 5, "what is overwritten is no longer near a death"


def test_a_batch_has_the_shares_that_were_asked_for() -> None:
    buffer = make_buffer()
    for t in range(LENGTH):
        buffer.add(quiet(t, []))
    every = [(t, game) for t in range(LENGTH - 1) for game in range(GAMES)]
    labelled = [each for each in every if sum(each) % 4 == 0]
    buffer.add_labels(named(*map(list, zip(*labelled, strict=True)), now=LENGTH - 1))
    batch = buffer.sample(4000)
    assert batch.plans is not None
    # No death yet, so that share is drawn from all rows.
    assert batch.plans.known[:2000].all()
    assert batch.plans.known[2000:].mean() == pytest.approx(len(labelled) / 95, abs=0.05)
    _, counts = np.unique(batch.rows[:2000], return_counts=True)
    assert counts.size == len(labelled)
    assert counts.max() < 2.5 * counts.mean()
    part = batch.part(100, 300)
    assert part.plans is not None
    np.testing.assert_array_equal(part.plans.regret, batch.plans.regret[100:300])


def test_without_labels_the_batch_is_uniform() -> None:
    buffer = make_buffer(Shares(1.0, 0.0))
    for t in range(LENGTH):
        buffer.add(quiet(t, []))
    batch = buffer.sample(500)
    assert np.unique(batch.rows).size == 95


def test_a_snapshot_with_plans_gives_the_same_samples() -> None:
    random = np.random.default_rng(6)
    buffer, other = make_buffer(), make_buffer()
    for t in range(33):
        buffer.add(make_rows(t, GAMES, random))
        buffer.mark_deaths(random.random(GAMES) < 0.1, 3)
        buffer.add_labels(named([t, t - 3], [t % GAMES, 1], now=t))
    other.load({name: a.copy() for name, a in buffer.arrays().items()}, buffer.state_dict())
    assert buffer.arrays().keys() <= buffer.largest_arrays(100).keys()
    for _ in range(3):
        one, two = buffer.sample(64), other.sample(64)
        assert one.plans is not None
        assert two.plans is not None
        np.testing.assert_array_equal(one.rows, two.rows)
        for mine, theirs in zip(one.plans, two.plans, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_rows_without_labels_take_no_more_memory() -> None:
    plain, with_plans = make_buffer(None), make_buffer()
    assert with_plans.row_bytes - plain.row_bytes == 4 * PLANS + 1
    assert not plain.plan_columns

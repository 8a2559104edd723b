"""Labels of plans in the replay: merged, stored late, marked near deaths, and drawn by shares."""

from __future__ import annotations

import numpy as np
import pytest
from replay_rows import FEATURES, make_rows

from tempest_agent.agent.replay.buffer import ReplayBuffer
from tempest_agent.agent.replay.plans import (
    MOST_REGRET,
    NO_PLAN,
    PLANS,
    LateLabels,
    merge_plans,
)
from tempest_agent.agent.replay.rows import HAS_PLANS, PlanBatch, Rows

GAMES, LENGTH = 5, 20


def make_buffer(plans: bool = True) -> ReplayBuffer:
    return ReplayBuffer(GAMES * LENGTH, GAMES, FEATURES, n_steps=3, gamma=0.9, seed=4, plans=plans)


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
            known = bool(buffer.flags[row] & HAS_PLANS)
            assert known == ((t, game) in labelled)
            if known:
                plans = buffer.plan_columns
                assert (plans["plan_regret"][row] == t * 10 + game).all()
                assert (plans["plan_buttons"][row] == game).all()
                assert (plans["plan_spin"][row] == t % 100).all()


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
    assert buffer.sample_plans(100, 1.0) is None, "none of them is labelled yet"
    late = [(t, game) for t, game in sorted(marked) if t % 2]
    buffer.add_labels(named(*map(list, zip(*late, strict=True)), now=29))
    assert whose(buffer.sample_plans(2000, 1.0)) == set(late)
    for t in range(30, 47):
        buffer.add(quiet(t, []))
    assert near.sum() == 5, "what is overwritten is no longer near a death"


def whose(batch: PlanBatch | None) -> set[tuple[int, int]]:
    """Step and game that the labels of a batch name."""
    assert batch is not None
    spin, buttons = batch.plans.spin[:, 0].tolist(), batch.plans.buttons[:, 0].tolist()
    return set(zip(spin, buttons, strict=True))


def test_a_batch_has_the_share_near_deaths_and_is_uniform_else() -> None:
    buffer = make_buffer()
    for t in range(LENGTH):
        buffer.add(quiet(t, []))
        buffer.mark_deaths(np.full(GAMES, t == 7), 2)
    every = [(t, game) for t in range(LENGTH - 1) for game in range(GAMES)]
    labelled = [each for each in every if sum(each) % 4 == 0]
    buffer.add_labels(named(*map(list, zip(*labelled, strict=True)), now=LENGTH - 1))
    batch = buffer.sample_plans(4000, 0.25)
    assert batch is not None
    assert len(batch.codes) == len(batch.zap_legal) == len(batch.plans.regret) == 4000
    near = {each for each in labelled if each[0] in (6, 7)}
    assert whose(batch.part(0, 1000)) == near
    assert whose(batch.part(1000, 4000)) == set(labelled)
    _, counts = np.unique(batch.plans.regret[1000:, 0], return_counts=True)
    assert counts.max() < 1.5 * counts.mean()


def test_without_labels_nothing_is_drawn() -> None:
    buffer = make_buffer()
    for t in range(LENGTH):
        buffer.add(quiet(t, []))
    assert buffer.sample_plans(500, 0.0) is None


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
        one, two = buffer.sample_plans(64, 0.3), other.sample_plans(64, 0.3)
        assert one is not None
        assert two is not None
        np.testing.assert_array_equal(one.codes, two.codes)
        for mine, theirs in zip(one.plans, two.plans, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_rows_without_labels_take_no_more_memory() -> None:
    plain, with_plans = make_buffer(plans=False), make_buffer()
    assert with_plans.row_bytes - plain.row_bytes == 4 * PLANS + 1
    assert not plain.plan_columns

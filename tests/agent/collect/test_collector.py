"""Who drives, what is stored, and what the figures say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fake_games import FakeGames, FakeTeacher
from numpy.typing import NDArray

from tempest_agent.agent.collect.collector import Collector
from tempest_agent.agent.collect.drivers import Drivers, ladder, teacher_free_games
from tempest_agent.agent.collect.local_source import LocalSource
from tempest_agent.agent.replay.buffer import ReplayBuffer
from tempest_agent.agent.replay.rows import AGENT, EXPERT, EXPLORATION
from tempest_agent.config import ExplorationConfig, TeacherConfig
from tempest_agent.envs.machine.inputs import SPINNER_MAX

GAMES = 32


def drivers(**settings: Any) -> Drivers:
    teacher = {k: v for k, v in settings.items() if k in TeacherConfig.__dataclass_fields__}
    rest = {k: v for k, v in settings.items() if k not in teacher}
    return Drivers(GAMES, TeacherConfig(**teacher), ExplorationConfig(**rest), 0)


def run(these: Drivers, steps: int, ratio: float, floor: float = 0.0) -> NDArray[np.uint8]:
    return np.array([these.choose(ratio, floor) for _ in range(steps)])


def test_the_ladder_goes_from_curious_to_greedy() -> None:
    rates = ladder(4, 0.3, 0.0003)
    np.testing.assert_allclose(rates, [0.3, 0.03, 0.003, 0.0003])
    np.testing.assert_allclose(ladder(1, 0.3, 0.001), [0.001])


@pytest.mark.parametrize(("games", "free"), [(1, 1), (2, 1), (8, 1), (9, 2), (128, 16)])
def test_one_game_in_eight_is_free(games: int, free: int) -> None:
    assert teacher_free_games(games, 0.125) == free


def test_the_teacher_never_drives_the_free_games() -> None:
    these = drivers(segment_min=1, segment_max=5)
    who = run(these, 300, ratio=1.0)
    assert these.teacher_free.sum() == GAMES // 8
    assert not (who[:, these.teacher_free] == EXPERT).any()
    assert (who[:, ~these.teacher_free] == EXPERT).all()


@pytest.mark.parametrize("ratio", [0.0, 0.3, 0.9])
def test_the_teachers_share_is_the_asked_one(ratio: float) -> None:
    these = drivers(segment_min=5, segment_max=15, epsilon_max=0.0, epsilon_min=0.0)
    who = run(these, 3000, ratio)[:, ~these.teacher_free]
    assert np.mean(who == EXPERT) == pytest.approx(ratio, abs=0.04)


def test_the_driver_stays_for_a_whole_segment() -> None:
    these = drivers(segment_min=20, segment_max=40, epsilon_max=0.0, epsilon_min=0.0)
    who = run(these, 2000, 0.5)[:, ~these.teacher_free]
    for column in who.T:
        changes = np.flatnonzero(np.diff((column == EXPERT).astype(int)))
        assert np.diff(changes).min() >= 20


def test_exploration_follows_the_ladder_and_its_floor() -> None:
    these = drivers(epsilon_max=0.4, epsilon_min=0.01, hold_max=1)
    who = run(these, 4000, 0.0)
    np.testing.assert_allclose(np.mean(who == EXPLORATION, axis=0), these.rates, atol=0.04)
    everyone = run(drivers(hold_max=1), 50, 0.0, floor=1.0)
    assert (everyone == EXPLORATION).all()


def test_random_actions_reach_both_ends_of_the_spinner_and_go_no_further() -> None:
    these = drivers(epsilon_max=1.0, epsilon_min=1.0, hold_max=1)
    held = np.array([(these.choose(0.0, 0.0), these.held_spin)[1] for _ in range(300)])
    assert (held.min(), held.max()) == (-SPINNER_MAX, SPINNER_MAX)
    assert set(np.unique(held)) == set(range(-SPINNER_MAX, SPINNER_MAX + 1))


def test_a_random_action_is_held_for_one_to_three_decisions() -> None:
    these = drivers(epsilon_max=0.02, epsilon_min=0.02, hold_max=3)
    runs: list[int] = []
    length, held = np.zeros(GAMES, int), these.held_spin
    for _ in range(3000):
        explores = these.choose(0.0, 0.0) == EXPLORATION
        same = explores & (length > 0) & (these.held_spin == held)
        ended = (length > 0) & ~same
        runs += length[ended].tolist()
        length = np.where(same, length + 1, explores.astype(int))
        held = these.held_spin
    # Two random actions in a row with the same knob counts are rare but look like one.
    counts = np.bincount(runs, minlength=4)
    assert counts[1:4].min() > 0.25 * len(runs)
    assert counts[4:].sum() < 0.02 * len(runs)


@pytest.mark.parametrize(("rate", "share"), [(0.3, 0.4615), (0.05, 0.0952), (1.0, 1.0)])
def test_a_rate_is_the_chance_to_begin_a_random_action(rate: float, share: float) -> None:
    """Held for 2 of 1 to 3 decisions on average, it makes p h / (p h + 1 - p) of them random."""
    who = run(drivers(epsilon_max=rate, epsilon_min=rate, hold_max=3), 8000, 0.0)
    assert np.mean(who == EXPLORATION) == pytest.approx(share, abs=0.01)


def collector(teacher: bool = True, **settings: Any) -> Collector:
    games = FakeGames(GAMES, 1)
    replay = ReplayBuffer(GAMES * 50, GAMES, 6, n_steps=3, gamma=0.9)

    def act(
        codes: NDArray[np.int8], zap_legal: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int8], NDArray[np.uint8]]:
        return np.full(GAMES, 7, np.int8), np.full(GAMES, 3, np.uint8)

    source = LocalSource(games, act, FakeTeacher() if teacher else None, drivers(**settings))
    return Collector(source, replay)


def test_rows_hold_the_executed_action_and_who_made_it() -> None:
    play = collector(segment_min=3, segment_max=9)
    seen = np.zeros(3, int)
    for t in range(40):
        codes, legal = play.source.games.observe().copy(), play.source.games.zap_legal().copy()
        label_spin, label_buttons = FakeTeacher().act(codes)
        play.collect(0.5, 0.1)
        replay, driver = play.replay, (play.replay.flags[t] >> 4) & 3
        np.testing.assert_array_equal(replay.codes[t], codes)
        np.testing.assert_array_equal(replay.label_spin[t], label_spin)
        expert, agent, random = driver == EXPERT, driver == AGENT, driver == EXPLORATION
        np.testing.assert_array_equal(replay.spin[t][expert], label_spin[expert])
        np.testing.assert_array_equal(replay.buttons[t][expert], label_buttons[expert])
        assert (replay.spin[t][agent] == 7).all()
        # The agent always asks for fire and zap; where that is illegal only fire was executed.
        np.testing.assert_array_equal(replay.buttons[t][agent], np.where(legal, 3, 1)[agent])
        assert (replay.buttons[t][random & ~legal] < 2).all()
        seen += np.bincount(driver, minlength=3)
    assert seen.min() > 0
    figures = play.read()
    own = ((play.replay.flags[:40] >> 4) & 3) == AGENT
    assert (figures["moves"], figures["fires"]) == (1.0, 1.0)
    assert figures["zaps"] == pytest.approx((play.replay.buttons[:40][own] == 3).mean())
    for i, name in enumerate(("agent", "exploration", "expert")):
        assert figures[f"share_{name}"] == pytest.approx(seen[i] / seen.sum())


def test_rewards_are_counted_for_the_driver_that_earned_them() -> None:
    play = collector(segment_min=3, segment_max=9)
    for _ in range(40):
        play.collect(0.5, 0.0)
    driver, reward = (play.replay.flags[:40] >> 4) & 3, play.replay.reward[:40]
    figures = play.read()
    for who, name in ((AGENT, "agent"), (EXPERT, "expert")):
        assert figures[f"reward_{name}"] == pytest.approx(float(reward[driver == who].mean()))
    assert figures["reward_expert"] > 0.95
    assert play.read()["share_agent"] == 0.0


def test_without_a_teacher_nothing_is_labelled_and_nobody_else_drives() -> None:
    play = collector(teacher=False)
    for _ in range(20):
        play.collect(0.9, 0.0)
    flags = play.replay.flags[:20]
    assert not (((flags >> 4) & 3) == EXPERT).any()
    assert not (flags & 64).any()


def test_only_finished_teacher_free_games_count_as_the_students_score() -> None:
    play = collector()
    assert play.history.teacher_free_score is None
    expected: list[int] = []
    for _ in range(60):
        step_scores: list[NDArray[np.int64]] = []
        original = play.source.games.step

        def spy(spin: Any, buttons: Any, original: Any = original, out: Any = step_scores) -> Any:
            step = original(spin, buttons)
            out.append(step.score[step.game_over & play.source.drivers.teacher_free])
            return step

        play.source.games.step = spy  # type: ignore[method-assign]
        play.collect(0.9, 0.0)
        play.source.games.step = original  # type: ignore[method-assign]
        expected += step_scores[0].tolist()
    assert play.history.teacher_free_scores == expected[-50:]
    assert play.history.teacher_free_score == pytest.approx(np.mean(expected[-50:]))


def test_episode_starts_are_flagged() -> None:
    play = collector()
    for _ in range(30):
        play.collect(0.5, 0.1)
    flags = play.replay.flags[:30]
    starts, ends = (flags & 4) > 0, (flags & 3) > 0
    assert starts[0].all()
    np.testing.assert_array_equal(starts[1:], ends[:-1])


def test_state_round_trip() -> None:
    first, second = collector(), collector()
    for _ in range(20):
        first.collect(0.5, 0.1)
    second.load_state_dict(first.state_dict())
    second.replay.load(first.replay.arrays(), first.replay.state_dict())
    for _ in range(20):
        first.collect(0.5, 0.1)
        second.collect(0.5, 0.1)
    np.testing.assert_array_equal(first.replay.codes, second.replay.codes)
    np.testing.assert_array_equal(first.replay.flags, second.replay.flags)

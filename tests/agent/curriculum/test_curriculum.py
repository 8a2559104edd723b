"""The teacher's share and schedules by phase; both resume exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fake_games import SMALL, FakeGames, FakeTeacher
from replay_rows import FEATURES, make_rows

from tempest_agent.agent.collect.game_history import GameHistory
from tempest_agent.agent.curriculum.curriculum import Curriculum
from tempest_agent.agent.curriculum.expert_share import (
    BY_FRAMES,
    BY_PERFORMANCE,
    RAISED,
    ExpertShare,
)
from tempest_agent.agent.curriculum.schedules import Schedules
from tempest_agent.agent.replay.buffer import ReplayBuffer
from tempest_agent.agent.replay.device_buffer import DeviceReplay
from tempest_agent.config import ConfigError, TeacherConfig, load_config
from tempest_agent.training.trainer import Trainer

# --- the teacher's share ------------------------------------------------------------------------


def performance(**settings: Any) -> ExpertShare:
    """From 0.9 to 0.1; the floor is reached at half of the teacher's 1,000 points."""
    return ExpertShare(
        TeacherConfig(
            expert_ratio_start=0.9, expert_ratio_floor=0.1, expert_ratio_schedule="performance",
            expert_ratio_goal=0.5, expert_ratio_drop=0.2, expert_ratio_rise=0.3,
            expert_ratio_rise_steps=1000, **settings,
        )
    )  # fmt: skip


def test_by_frames_performance_changes_nothing() -> None:
    share = ExpertShare(TeacherConfig())
    share.observe(0, 1e9, 100, 1.0)
    assert (share(0.7), share.reason(0.7)) == (0.7, BY_FRAMES)


def test_the_share_falls_with_the_score_and_never_back() -> None:
    share = performance()
    assert (share(0.9), share.reason(0.9)) == (0.9, BY_FRAMES)
    share.observe(0, 400.0, 19, 1000.0)
    assert share(0.9) == 0.9  # Too few games to go by.
    share.observe(0, 250.0, 20, 1000.0)
    assert share(0.9) == pytest.approx(0.5)  # Half of the way for half of the goal.
    assert share.reason(0.9) == BY_PERFORMANCE
    share.observe(10, 240.0, 21, 1000.0)
    assert share(0.9) == pytest.approx(0.5)
    # The line over the decisions is an upper bound.
    assert (share(0.3), share.reason(0.3)) == (0.3, BY_FRAMES)
    share.observe(20, 5000.0, 22, 1000.0)
    assert share(0.9) == pytest.approx(0.1)


def test_it_rises_for_a_while_when_play_gets_worse() -> None:
    share = performance()
    share.observe(0, 500.0, 30, 1000.0)
    share.observe(100, 401.0, 31, 1000.0)
    assert not share.raised  # Not yet a fifth below the best.
    share.observe(200, 399.0, 32, 1000.0)
    assert share(0.9) == pytest.approx(0.4)
    assert share(0.05) == pytest.approx(0.35)
    assert share.reason(0.05) == RAISED
    share.observe(300, 449.0, 33, 1000.0)
    assert share.raised  # A tenth below the best is not recovered.
    share.observe(400, 451.0, 34, 1000.0)
    assert share(0.9) == pytest.approx(0.1)
    # The next one has to wait for 1,000 decisions.
    share.observe(1399, 300.0, 35, 1000.0)
    assert not share.raised
    share.observe(1400, 300.0, 36, 1000.0)
    assert (share.raised, share.rises) == (True, 2)


def test_a_rise_ends_by_itself_and_the_lower_score_is_the_new_best() -> None:
    share = performance()
    share.observe(0, 500.0, 30, 1000.0)
    share.observe(100, 100.0, 31, 1000.0)
    share.observe(1099, 100.0, 32, 1000.0)
    assert share.raised
    share.observe(1100, 100.0, 33, 1000.0)
    assert not share.raised
    for step in range(1200, 9000, 100):
        share.observe(step, 95.0, 34, 1000.0)
        assert not share.raised
    share.observe(9000, 79.0, 35, 1000.0)
    assert share.raised


def test_negative_scores_are_compared_like_any_others() -> None:
    share = performance()
    share.observe(0, -1500.0, 30, -500.0)
    # The goal is twice the teacher's score, -1000, and half of the way to it is made.
    assert share(0.9) == pytest.approx(0.5)
    share.observe(100, -1790.0, 31, -500.0)
    assert not share.raised  # Not yet a fifth below the best.
    share.observe(200, -1810.0, 32, -500.0)
    assert share.raised
    share.observe(300, -1640.0, 33, -500.0)
    assert not share.raised
    for score, teacher in ((-1000.0, -500.0), (0.0, -500.0), (3.0, 0.0)):
        reached = performance()
        reached.observe(0, score, 30, teacher)
        assert reached(0.9) == pytest.approx(0.1)
    missed = performance()
    missed.observe(0, -3.0, 30, 0.0)
    missed.observe(10, -3.0, 31, 1000.0)
    assert missed(0.9) == pytest.approx(0.9)


def test_a_rise_never_exceeds_the_share_at_the_start() -> None:
    share = performance()
    share.observe(0, 100.0, 30, 1000.0)
    share.observe(10, 10.0, 31, 1000.0)
    assert share.raised
    assert share(0.85) == 0.9


# --- schedules ----------------------------------------------------------------------------------


def curriculum(*overrides: str) -> Curriculum:
    config = load_config(None, overrides)
    return Curriculum(config, Schedules.of(config))


def test_n_steps_and_epsilon_go_by_their_own_decisions() -> None:
    these = curriculum(
        "learner.n_steps=3", "learner.n_steps_end=7", "learner.n_steps_steps=1000",
        "exploration.epsilon_start=0.5", "exploration.epsilon_floor=0.1",
        "exploration.epsilon_steps=100",
    )  # fmt: skip
    assert [these.n_steps(step) for step in (0, 124, 126, 500, 1000, 9999)] == [3, 3, 4, 5, 7, 7]
    assert [these.epsilon(step) for step in (0, 50, 100, 9999)] == pytest.approx(
        [0.5, 0.3, 0.1, 0.1]
    )
    plain = curriculum()
    assert [plain.n_steps(step) for step in (0, 10**6, 10**8)] == [5, 5, 5]
    assert plain.epsilon(10**6) == 0.0


def test_a_replay_whose_returns_get_shorter_is_one_of_shorter_returns() -> None:
    random = np.random.default_rng(0)
    settings: dict[str, Any] = {"gamma": 0.9, "seed": 5}
    wanted = ReplayBuffer(51, 3, FEATURES, n_steps=2, **settings)
    others = [
        ReplayBuffer(51, 3, FEATURES, n_steps=4, **settings),
        DeviceReplay(51, 3, FEATURES, n_steps=4, device=torch.device("cpu"), **settings),
    ]
    for t in range(17):
        rows = make_rows(t, 3, random)
        for replay in (wanted, *others):
            replay.add(rows)
    for replay in others:
        replay.set_n_steps(2)
        batch, expected = replay.sample(40), wanted.sample(40)
        wanted.random = np.random.default_rng(5)
        np.testing.assert_array_equal(np.asarray(batch.horizons), expected.horizons)
        np.testing.assert_allclose(np.asarray(batch.returns), expected.returns, rtol=1e-6)
        np.testing.assert_allclose(np.asarray(batch.discounts), expected.discounts, rtol=1e-6)


def test_schedules_that_go_by_the_teachers_share() -> None:
    these = curriculum(
        "run.phases=teacher", "run.steps=2000", "learner.learning_rate=1.0",
        "learner.learning_rate_floor=0.5", "learner.n_steps=1", "learner.n_steps_end=5",
        "exploration.epsilon_start=1.0", "exploration.epsilon_floor=0.2",
        "teacher.expert_ratio_start=0.9", "teacher.expert_ratio_floor=0.1",
        "teacher.expert_ratio_steps=1000",
    )  # fmt: skip

    history = GameHistory(np.array([False, True]))
    rows = []
    for step in range(0, 2001, 250):
        these.observe(step, history, 1.0)
        rows.append((these.progress(step), these.epsilon(step), these.n_steps(step),
                     these.learning_rate(step)))  # fmt: skip
    np.testing.assert_allclose(
        rows,
        [(0.0, 1.0, 1, 1.0), (0.25, 0.8, 2, 1.0), (0.5, 0.6, 3, 1.0), (0.75, 0.4, 4, 1.0),
         (1.0, 0.2, 5, 1.0), (1.0, 0.2, 5, 0.875), (1.0, 0.2, 5, 0.75), (1.0, 0.2, 5, 0.625),
         (1.0, 0.2, 5, 0.5)],
    )  # fmt: skip
    again = curriculum("run.phases=teacher", "run.steps=2000", "learner.learning_rate=1.0",
                       "learner.learning_rate_floor=0.5")  # fmt: skip
    again.load_state_dict(these.state_dict())
    assert again.learning_rate(1500) == these.learning_rate(1500)


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["exploration.epsilon_floor=0.6", "exploration.epsilon_start=0.5"], "lower the first"),
        (["learner.n_steps_end=90", "replay.capacity=10240"], "n_steps=90"),
        (["teacher.expert_ratio_schedule=performace"], "did you mean 'performance'"),
    ],
)
def test_mistakes_are_named(overrides: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        load_config(None, overrides)


# --- exact resume -------------------------------------------------------------------------------


def same_weights(one: Trainer, other: Trainer) -> bool:
    pairs = zip(
        one.loop.learner.online.parameters(),
        other.loop.learner.online.parameters(),
        strict=True,
    )
    return all(torch.equal(a, b) for a, b in pairs)


def test_share_and_phases_resume_exactly(tmp_path: Path) -> None:
    config = load_config(
        None,
        [*SMALL, "run.steps=2400", "run.phases=teacher", "teacher.expert_ratio_steps=20000",
         "teacher.expert_ratio_schedule=performance", "teacher.expert_ratio_goal=0.8",
         "teacher.expert_ratio_drop=0.02", "teacher.expert_ratio_rise_steps=300",
         "learner.gamma=0.5", "learner.n_steps_end=9", "exploration.epsilon_floor=0.01"],
    )  # fmt: skip
    lines: dict[str, list[dict[str, float]]] = {"whole": [], "parts": []}
    whole = Trainer(
        config, tmp_path / "whole", games=FakeGames(16, 0), teacher=FakeTeacher(),
        on_metrics=lines["whole"].append,
    )  # fmt: skip
    whole.run()
    first = Trainer(config, tmp_path / "parts", games=FakeGames(16, 0), teacher=FakeTeacher())

    def until_half(line: dict[str, float]) -> None:
        lines["parts"].append(line)
        if line["steps"] == 1200:
            first.request_stop()

    first.loop.on_metrics = until_half
    first.run()
    second = Trainer.resume(
        tmp_path / "parts", games=lambda _: FakeGames(16, 0), teacher=FakeTeacher(),
        on_metrics=lines["parts"].append,
    )  # fmt: skip
    second.run()
    assert same_weights(whole, second)
    share = whole.loop.curriculum.share
    assert share.state_dict() == second.loop.curriculum.share.state_dict()
    assert share.rises > 0
    assert share.lowest < 0.9
    for one, other in zip(lines["whole"], lines["parts"], strict=True):
        assert {k: v for k, v in one.items() if not k.endswith("per_second")} == {
            k: v for k, v in other.items() if not k.endswith("per_second")
        }
    assert len({line["n_steps"] for line in lines["whole"]}) > 1
    reasons = {line["expert_ratio_reason"] for line in lines["whole"]}
    assert BY_PERFORMANCE in reasons

"""The stability guard: each detector and each remedy against a hand-made case, and whole runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fake_games import SMALL, FakeGames, FakeTeacher

from tempest_agent.config import Config, GuardConfig, load_config
from tempest_agent.stability.guard import EXHAUSTED, OVER, REMEDY, SYMPTOM, UNDONE, Event, Guard
from tempest_agent.stability.metric_history import MetricHistory, RunFacts
from tempest_agent.stability.remedies import Remedies
from tempest_agent.stability.symptoms import SYMPTOMS, detect
from tempest_agent.training.trainer import Trainer

HEALTHY = {
    "steps": 0.0, "updates": 1.0, "games": 1000.0, "skipped_updates": 0.0, "loss": 1.0,
    "q_mean": 10.0, "q_max": 30.0, "q_min": -10.0, "target_max": 31.0, "return_bound": 1000.0,
    "target_clip_share": 0.0, "grad_norm": 12.0, "grad_norm_max": 60.0, "clip_ratio": 0.8,
    "moves": 0.5, "spinner_spread": 0.4, "reward_agent": 0.1, "share_agent": 0.9,
    "reward_expert": 0.15, "share_expert": 0.05, "teacher_free_score": 50_000.0,
    "target_age": 150.0, "target_age_max": 300.0,
}  # fmt: skip
FACTS = RunFacts(gamma=0.99, max_grad_norm=10.0, target_age=300.0, free_share=0.125)
Change = float | Callable[[int], float]


def lines(count: int, **changes: Change) -> list[dict[str, float]]:
    """``count`` lines that are healthy but for ``changes`` (values, or functions of the line)."""
    made = []
    for i in range(count):
        line = HEALTHY | {"steps": 1000.0 * (i + 1), "updates": 1000.0 * (i + 1)}
        for name, change in changes.items():
            line[name] = change(i) if callable(change) else change
        made.append(line)
    return made


def seen(rows: Iterable[dict[str, float]], **facts: float) -> dict[str, str]:
    """What the end of ``rows`` shows, by name, in a run with other ``facts``."""
    guard = GuardConfig()
    history = MetricHistory(guard.window, FACTS.free_share)
    for row in rows:
        history.add(row)
    return {name: evidence for name, evidence in detect(history, FACTS._replace(**facts), guard)}


def test_healthy_lines_show_nothing() -> None:
    assert seen(lines(1)) == seen(lines(30)) == {}
    assert seen([{"steps": 1.0}]) == {}
    growth = lines(
        30, q_max=lambda i: 2.0 + i, q_mean=lambda i: 0.5 * i, loss=lambda i: 3.0 - i / 9
    )
    assert all(seen(growth[:n]) == {} for n in range(1, 31))


@pytest.mark.parametrize(
    ("name", "history", "words"),
    [
        ("not_finite", lines(1, loss=math.nan), "loss=nan"),
        ("not_finite", lines(2, skipped_updates=lambda i: 4000.0 * i), "4000 of 5000 updates"),
        ("beyond_bound", lines(1, q_max=1999.0), "q_max=2e+03 is beyond 1e+03"),
        ("beyond_bound", lines(1, target_max=1600.0), "no return can exceed"),
        ("beyond_bound", lines(1, q_min=-1600.0), "q_min=-1.6e+03"),
        # 0.15 a decision for ever is worth 15.
        ("overestimation", lines(1, q_mean=60.0), "4.0 times 15"),
        ("growing_values", lines(12, q_max=lambda i: 30.0 if i < 9 else 120.0), "30 to 120, 8.0"),
        (
            "degrading_play",
            lines(12, teacher_free_score=lambda i: 9e4 - 6e3 * i, loss=lambda i: 2.0 - 0.1 * i),
            "fell from 90,000 to 33,000 while the loss fell from 1.85 to 1.05",
        ),
        (
            "degrading_play",
            lines(12, reward_agent=lambda i: 0.1 if i < 6 else 0.03, loss=lambda i: 1.0 + i),
            "reward per decision fell from 0.1 to 0.03 while the loss rose",
        ),
        (
            "unreached_rewards",
            lines(
                12,
                q_max=lambda i: 1e3 * i,
                q_min=0.0,
                return_bound=1e8,
                reward_agent=lambda i: 1e5 if i < 6 else 3e4,
                loss=lambda i: 1.0 + i,
            ),
            "from 1e+05 to 3e+04 while the loss rose from 2.5 to 10.5, and the largest |Q| is "
            "1.1e+04, the best mean reward 1e+05",
        ),
        ("swinging_gradients", lines(1, grad_norm_max=600.0), "50 times the mean 12"),
        (
            "swinging_gradients",
            lines(6, grad_norm=lambda i: 10.0 ** min(i, 6 - i)),
            "between 10 and 1e+03",
        ),
        (
            "clipped_gradients",
            lines(4, clip_ratio=lambda i: 0.8 if i < 3 else 0.01),
            "leaves 1.00% of the gradient (mean norm 12), not 80.00%",
        ),
        (
            "other_rewards",
            lines(
                6,
                reward_agent=lambda i: -0.1 * 1000 ** (i > 4),
                reward_expert=0.0,
                return_bound=lambda i: 1000.0 * 1000 ** (i > 4),
            ),
            "from 0.1 to 100, and the largest grew 1,000 times",
        ),
        ("dead_spinner", lines(1, moves=0.01), "1.0% of its decisions"),
        ("dead_spinner", lines(1, spinner_spread=0.001), "spread 0.001"),
        ("stalled_target", lines(1, target_age_max=1600.0), "1,600 updates old"),
        ("stalled_target", lines(12, updates=500.0), "no update in 12 lines"),
        ("clamped_targets", lines(1, target_clip_share=0.01), "1.00% of the targets"),
        ("no_gradient", lines(1, grad_norm=0.0), "gradient is 0"),
    ],
)
def test_each_symptom_is_seen_with_its_evidence(
    name: str, history: list[dict[str, float]], words: str
) -> None:
    found = seen(history)
    assert words in found[name]
    assert set(found) == {name}


@pytest.mark.parametrize(
    ("settings", "pull"),
    [
        # 4 button pairs times 9 knots, weight 4, temperature 1: log(1 + 4 * 36 / 0.01).
        ([], 9.575),
        (["learner.imitation_temperature=0.5", "network.spinner_knots=5"], 4.840),
        (["learner.imitation=none"], 0.0),
        (["learner.imitation_weight=0"], 0.0),
        (["teacher.name=none"], 0.0),
        (["teacher.name=none", "replay.demonstrations=x-v0"], 9.575),
    ],
)
def test_what_labels_do_to_values_is_known(settings: list[str], pull: float) -> None:
    assert RunFacts.of(load_config(None, settings)).label_pull == pytest.approx(pull, abs=1e-3)


def test_what_labels_do_to_values_is_no_symptom() -> None:
    """With rewards of at most 0.1: by hand, limits of 1.5, 3 x 1 and 5 x 1 and a pull of 2."""
    tiny = {"return_bound": 1.0, "reward_agent": 0.01, "reward_expert": 0.01, "target_max": 1.0}

    def found(pull: float, **figures: Change) -> set[str]:
        healthy: dict[str, Any] = {"q_max": 1.0, "q_min": 0.0, "q_mean": 0.5}
        return set(seen(lines(12, **tiny | healthy | figures), label_pull=pull))

    assert found(0.0) == set()
    for figures, symptom in (
        ({"q_max": 3.4}, "beyond_bound"),
        ({"q_min": -3.4}, "beyond_bound"),
        ({"q_mean": 4.9}, "overestimation"),
        ({"q_max": lambda i: 1.0 if i < 9 else 6.9}, "growing_values"),
    ):
        assert symptom in found(0.0, **figures)
        assert symptom not in found(2.0, **figures)
        assert symptom in found(1.5, **figures)
    # No label moves a target.
    assert found(100.0, target_max=1.6) == {"beyond_bound"}


SIGNS_AND_SCALES = [
    (offset, scale) for scale in (1e-6, 1.0, 1e6) for offset in (-30.0, -1.0, 0.0, 1.0, 30.0)
]


def played(levels: Iterable[float], offset: float, scale: float) -> list[dict[str, float]]:
    """Lines of a run whose mean rewards are ``scale * (level + offset)``, give or take a tenth.

    Games last 100 decisions and scatter by 20; values and gradients follow the rewards.
    """
    random = np.random.default_rng(5)
    made: list[dict[str, float]] = []
    value = size = largest = 0.0
    for i, level in enumerate(levels):
        noise = np.array([0.1, 0.03]) * random.normal(size=2)
        reward, scored = scale * (level + offset + noise)
        largest = max(largest, 3.0 * abs(reward))
        value += 0.2 * (100.0 * reward - value)
        size = max(size, abs(value))
        made.append(
            lines(i + 1)[-1]
            | {"reward_agent": reward, "reward_expert": 0.0, "share_expert": 0.0}
            | {"teacher_free_score": 100.0 * scored, "teacher_free_score_spread": 20.0 * scale}
            | {"return_bound": 100.0 * largest, "q_mean": value, "target_max": 2.0 * abs(value)}
            | {"q_max": max(2.0 * value, 0.1), "q_min": min(2.0 * value, -0.1)}
            | {"grad_norm": 0.1 + 0.2 * size, "grad_norm_max": 0.2 + size}
            | {"clip_ratio": min(1.0, 10.0 / (0.1 + 0.2 * size))}
        )
    return made


@pytest.mark.parametrize(("offset", "scale"), SIGNS_AND_SCALES)
def test_a_run_that_learns_shows_nothing_at_any_sign_and_scale(offset: float, scale: float) -> None:
    for levels in ([min(1.0, i / 20) for i in range(40)], [0.5] * 40, [0.0] * 40):
        history = played(levels, offset, scale)
        assert all(seen(history[:n]) == {} for n in range(1, 41))


@pytest.mark.parametrize(("offset", "scale"), SIGNS_AND_SCALES)
def test_play_that_gets_lost_is_seen_at_any_sign_and_scale(offset: float, scale: float) -> None:
    levels = [min(1.0, i / 20) if i < 30 else 0.2 for i in range(40)]
    history = played(levels, offset, scale)
    assert [n for n in range(1, 41) if "degrading_play" in seen(history[:n])][:1] == [33]


@pytest.mark.parametrize(("offset", "scale"), SIGNS_AND_SCALES)
def test_values_that_run_away_are_seen_at_any_sign_and_scale(offset: float, scale: float) -> None:
    history = played([1.0] * 12, offset + 1.0, scale)
    for sign in (-1.0, 1.0):
        away = history[-1] | {"q_mean": sign * max(1e5 * scale, 2.0)}
        away |= {"q_max": max(away["q_mean"], 0.0), "q_min": min(away["q_mean"], 0.0)}
        assert {"beyond_bound", "overestimation", "growing_values"} <= set(
            seen([*history[:-1], away])
        )


def test_a_fall_counts_against_how_far_single_games_scatter() -> None:
    """Twenty lucky games among many that bring nothing are no level to fall from."""
    lucky: dict[str, Change] = {
        "teacher_free_score": lambda i: 0.2 if i < 2 else 0.02,
        "teacher_free_score_spread": lambda i: 0.4 if i < 2 else 0.14,
    }
    assert seen(lines(12, **lucky)) == {}
    sure: dict[str, Change] = {**lucky, "teacher_free_score_spread": 0.01}
    assert "degrading_play" in seen(lines(8, **sure))


def test_the_spinner_has_some_updates_to_learn_in() -> None:
    still: dict[str, Change] = {"moves": 0.0, "spinner_spread": 0.001}
    assert seen(lines(1, updates=400.0, **still)) == {}
    assert set(seen(lines(1, updates=600.0, **still))) == {"dead_spinner"}
    # In other environments one turn may be right everywhere.
    other = [{k: v for k, v in line.items() if k != "moves"} for line in lines(3, **still)]
    assert seen(other) == {}


def test_norms_that_only_rise_or_fall_or_are_small_do_not_swing() -> None:
    for norms in (
        lambda i: 10.0**i,
        lambda i: 10.0 ** (6 - i),
        lambda i: 5.0 if i % 3 == 0 else 1e-5,
    ):
        assert seen(lines(6, grad_norm=norms, grad_norm_max=9.0)) == {}
    # The clipping may take off the same share for ever.
    assert seen(lines(12, clip_ratio=0.02)) == {}


def test_rewards_on_another_scale_are_no_success() -> None:
    """What is rare at first and then often, or first large once, is what learning looks like."""
    often: dict[str, Change] = {"reward_expert": 0.0, "reward_agent": lambda i: 1e-4 * 3.0**i}
    assert "other_rewards" not in seen(lines(8, **often))
    once: dict[str, Change] = {"return_bound": lambda i: 10.0 if i < 5 else 1e4}
    assert seen(lines(8, q_max=5.0, target_max=5.0, q_min=0.0, q_mean=2.0, **once)) == {}


def test_a_target_that_never_moves_in_the_whole_run_is_seen() -> None:
    never: dict[str, Change] = {
        name: lambda i: 1000.0 * (i + 1) for name in ("target_age", "target_age_max")
    }
    facts = RunFacts.of(load_config(None, ["learner.target_update_interval=1_000_000"]))
    assert facts.updates == pytest.approx((3_000_000 - 10_000) / 128)
    found = seen(lines(1, **never), target_age=facts.target_age, updates=facts.updates)
    assert found == {
        "stalled_target": "the target network is to be 1,000,000 updates old, and the whole run "
        "makes about 23,359"
    }
    # Not yet, in a run that is longer.
    assert seen(lines(5, **never), target_age=10_000.0, updates=50_000.0) == {}


def test_bins_that_are_wider_than_all_returns_are_seen() -> None:
    facts = RunFacts.of(load_config(None, ["learner.loss=c51", "learner.target_clip=100"]))
    assert facts.bin_width == pytest.approx(4.0)
    tiny = lines(1, return_bound=3.0, q_max=2.0, q_min=0.0, target_max=2.0, q_mean=1.0)
    assert "4 wide, and no return exceeds 3" in seen(tiny, bin_width=4.0)["coarse_bins"]
    assert seen(lines(1), bin_width=4.0) == {}
    assert RunFacts.of(load_config(None)).bin_width == 0.0


def test_early_scores_of_few_games_are_no_evidence() -> None:
    falls = {"teacher_free_score": lambda i: 9e4 - 6e3 * i, "games": 100.0}
    assert seen(lines(12, **falls)) == {}


def test_a_driver_of_few_decisions_says_nothing_about_the_value_of_play() -> None:
    assert "overestimation" in seen(lines(1, q_mean=60.0, reward_expert=9.0, share_expert=0.01))


def remedies(**changes: Any) -> Remedies:
    return Remedies(GuardConfig(**changes), 100.0, has_teacher=True)


def test_the_clamp_follows_the_rewards_and_is_undone() -> None:
    made = remedies()
    assert made.apply("clamp", 0.0) is None
    assert made.apply("clamp", 30.0) is None  # 5 x 30 is above the clamp there is.
    assert made.apply("clamp", 12.0) == "targets are clamped to 60"
    assert made.apply("clamp", 12.0) is None
    assert made.target_clip == 60.0
    assert made.undo() == "clamp back to 100"
    assert (made.target_clip, made.active, made.undo()) == (100.0, [], None)


def test_the_learning_rate_is_halved_down_to_its_bound() -> None:
    made = remedies(min_learning_rate=0.25)
    done = [made.apply("learning_rate", 1.0) for _ in range(3)]
    assert (done[2], made.learning_rate) == (None, 0.25)
    made.undo()
    assert made.learning_rate == 0.5


def test_larger_updates_are_rarer() -> None:
    made = remedies(max_accumulation=4)
    assert [made.updates(1) for _ in range(3)] == [1, 1, 1]
    made.apply("accumulation", 1.0)
    assert [made.updates(1) for _ in range(4)] == [0, 1, 0, 1]
    made.apply("accumulation", 1.0)
    assert [made.updates(3) for _ in range(4)] == [0, 1, 1, 1]
    assert made.apply("accumulation", 1.0) is None
    made.undo()
    assert made.accumulation == 2


def test_the_teacher_drives_more_where_there_is_one() -> None:
    made = remedies(expert_ratio=0.4)
    assert made.apply("expert_ratio", 1.0) == "the teacher drives at least 40% for a while"
    assert (made.expert_ratio, made.apply("expert_ratio", 1.0)) == (0.4, None)
    assert Remedies(GuardConfig(), 100.0, has_teacher=False).apply("expert_ratio", 1.0) is None


def test_going_back_is_counted_and_slows_down() -> None:
    made = remedies(max_rollbacks=2)
    assert made.apply("rollback", 1.0) is None  # Nowhere to go back to.
    made.restore = lambda: 4_000
    assert made.apply("rollback", 1.0) == (
        "rolled back to the networks of step 4,000, learning rate times 0.5"
    )
    made.apply("rollback", 1.0)
    assert (made.rollbacks, made.learning_rate) == (2, 0.25)
    assert made.apply("rollback", 1.0) is None


def guard_with(*overrides: str) -> Guard:
    return Guard(load_config(None, overrides), has_teacher=True)


def kinds(events: Iterable[Event]) -> list[tuple[int, str, str]]:
    return [(event.step // 1000, event.kind, event.remedy) for event in events]


def test_remedies_come_one_by_one_and_go_when_all_is_well() -> None:
    guard = guard_with("guard.patience=2", "guard.recovery=3")
    history = lines(7, q_mean=60.0) + lines(30)[7:]
    events = [event for line in history for event in guard.observe(line)]
    assert kinds(events) == [
        (1, SYMPTOM, ""),
        (2, REMEDY, "clamp"),
        (4, REMEDY, "learning_rate"),
        (6, REMEDY, "accumulation"),
        (8, OVER, ""),
        (10, UNDONE, "accumulation"),
        (13, UNDONE, "learning_rate"),
        (16, UNDONE, "clamp"),
    ]
    assert "q_mean=60" in str(events[0])
    assert guard.remedies.active == []


def test_a_remedy_that_is_needed_again_stays_longer() -> None:
    guard = guard_with("guard.patience=1", "guard.recovery=2")
    ill = [True] * 2 + [False] * 2 + [True] * 5 + [False] * 5
    events = [
        event
        for line, sick in zip(lines(14), ill, strict=True)
        for event in guard.observe(line | ({"moves": 0.0} if sick else {}))
    ]
    assert kinds(events) == [
        (1, SYMPTOM, ""),
        (1, REMEDY, "expert_ratio"),
        (2, EXHAUSTED, ""),
        (3, OVER, ""),
        (4, UNDONE, "expert_ratio"),
        (5, SYMPTOM, ""),
        (5, REMEDY, "expert_ratio"),
        (6, EXHAUSTED, ""),
        (10, OVER, ""),
        (13, UNDONE, "expert_ratio"),
    ]


def test_the_teachers_larger_share_ends_in_any_case() -> None:
    guard = guard_with("guard.patience=1", "guard.expert_lines=3")
    events = [event for line in lines(4, moves=0.0) for event in guard.observe(line)]
    assert (4, UNDONE, "expert_ratio") in kinds(events)


def test_a_guard_that_is_off_only_tells() -> None:
    guard = guard_with("guard.enabled=false")
    events = [event for line in lines(20, q_mean=60.0) for event in guard.observe(line)]
    assert kinds(events) == [(1, SYMPTOM, "")]
    assert guard.figures() == {}


def test_every_ladder_names_remedies_that_exist() -> None:
    for spec in SYMPTOMS.values():
        for name in spec.remedies:
            remedies().apply(name, 1.0)


def test_the_state_goes_on_exactly() -> None:
    history = lines(9, q_mean=60.0) + lines(40, moves=lambda i: float(i % 5 > 0))[9:]
    whole, first, second = (guard_with("guard.patience=2", "guard.recovery=3") for _ in range(3))
    expected = [whole.observe(line) for line in history]
    events = [first.observe(line) for line in history[:20]]
    second.load_state_dict(first.state_dict())
    events += [second.observe(line) for line in history[20:]]
    assert events == expected
    assert second.figures() == whole.figures()


UNSTABLE = (
    *SMALL, "run.steps=3200", "learner.gamma=0.99", "learner.learning_rate=0.5", "teacher.score=0",
    "learner.learning_rate_schedule=constant", "learner.loss=squared", "network.layer_norm=false",
    "learner.max_grad_norm=1e9", "learner.target_clip=1e9", "learner.target_update_interval=1",
    "learner.imitation=none", "run.log_interval=160", "guard.patience=1",
)  # fmt: skip


def train(config: Config, folder: Path, stop_at: int = 0) -> tuple[Trainer, list[Event]]:
    events: list[Event] = []
    trainer = Trainer(config, folder, games=FakeGames(16, 0), teacher=FakeTeacher())
    trainer.loop.on_guard = events.append
    if stop_at:
        trainer.loop.on_metrics = lambda line: (
            trainer.request_stop() if line["steps"] >= stop_at else None
        )
    trainer.run()
    return trainer, events


def weights(trainer: Trainer) -> torch.Tensor:
    return torch.cat([p.flatten() for p in trainer.loop.learner.online.parameters()])


def test_a_healthy_run_is_the_same_with_and_without_a_guard(tmp_path: Path) -> None:
    ends = []
    for enabled in ("true", "false"):
        config = load_config(None, [*SMALL, "run.steps=3200", f"guard.enabled={enabled}"])
        trainer, events = train(config, tmp_path / enabled)
        assert [event for event in events if event.kind == REMEDY] == []
        ends.append(weights(trainer))
    assert torch.equal(*ends)
    assert (tmp_path / "true/checkpoints/good.pt").is_file()


def test_an_unstable_run_is_caught_and_resumes_exactly(tmp_path: Path) -> None:
    one, events = train(load_config(None, UNSTABLE), tmp_path / "one")
    done = [event.remedy for event in events if event.kind == REMEDY]
    assert {"learning_rate", "accumulation"} <= set(done)
    assert one.loop.learner.optimizer.param_groups[0]["lr"] < 0.5
    line = one.loop.last_metrics
    assert line["guard_learning_rate"] == one.loop.guard.remedies.learning_rate < 1.0
    assert line["learning_rate"] == pytest.approx(0.5 * line["guard_learning_rate"], rel=1.0)
    stopped, before = train(load_config(None, UNSTABLE), tmp_path / "two", stop_at=1700)
    assert stopped.last_checkpoint is not None
    resumed = Trainer.resume(
        stopped.last_checkpoint, games=lambda c: FakeGames(16, 7), teacher=FakeTeacher()
    )
    resumed.loop.on_guard = before.append
    resumed.run()
    assert before == events
    assert torch.equal(weights(one), weights(resumed))


def test_networks_go_back_but_games_and_counters_do_not(tmp_path: Path) -> None:
    config = load_config(None, [*SMALL, "run.steps=1600"])
    trainer, _ = train(config, tmp_path)
    good = trainer.loop.guard.good_step
    assert good == 1600
    before, updates = weights(trainer).clone(), trainer.loop.learner.updates
    with torch.no_grad():
        for parameter in trainer.loop.learner.online.parameters():
            parameter.fill_(math.nan)
    assert trainer.loop.guard.remedies.apply("rollback", 1.0) is not None
    assert torch.equal(weights(trainer), before)
    assert (trainer.steps, trainer.loop.learner.updates) == (1600, updates)
    # A file of another future is not taken.
    trainer.loop.guard.good_step = 800
    assert trainer.loop.guard.remedies.apply("rollback", 1.0) is None

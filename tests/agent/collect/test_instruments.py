"""Every logged figure: known to the catalogue, and equal to a calculation by hand."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from fake_games import SMALL, FakeGames, FakeTeacher
from hybrid_bandit import LAYOUT, random_batch
from inline_executor import InlineExecutor
from places import ROOT

from tempest_agent.actors.remote_games import RemoteGames
from tempest_agent.agent.collect import game_history
from tempest_agent.agent.collect import throughput as rates_module
from tempest_agent.agent.collect.game_history import GameHistory, least_squares_slope
from tempest_agent.agent.collect.play_counts import PlayCounts
from tempest_agent.agent.collect.throughput import Throughput
from tempest_agent.agent.games.interface import Step
from tempest_agent.agent.games.tempest_games import TempestGames
from tempest_agent.agent.learner.learner import Learner
from tempest_agent.agent.learner.metrics import Metrics
from tempest_agent.agent.learner.target_network import Followers
from tempest_agent.agent.replay.rows import AGENT, EXPERT, EXPLORATION
from tempest_agent.config import GameConfig, apply_overrides, load_config
from tempest_agent.envs.game_state.death_cause import DEATH_CAUSES
from tempest_agent.evaluation.checkpoint_games import EVALUATED
from tempest_agent.runs import metrics_catalogue
from tempest_agent.runs.metrics_table import metrics_table
from tempest_agent.training.trainer import Trainer

CPU = torch.device("cpu")


# --- the catalogue ------------------------------------------------------------------------------


OF_PLANS = ("plan_loss", "plan_regret", "plan_agreement")
"""Logged by runs with ``teacher.labels=plans``, of which ``test_plan_labels`` has one."""


def test_the_page_is_written_from_the_catalogue() -> None:
    page = ROOT / "docs" / "metrics.md"
    assert page.read_text() == metrics_catalogue.page(), (
        "run: python -m tempest_agent.runs.metrics_catalogue > docs/metrics.md"
    )


def test_every_figure_has_one_sentence_and_a_healthy_range() -> None:
    names = [figure.name for figure in metrics_catalogue.METRICS]
    assert len(set(names)) == len(names)
    for figure in metrics_catalogue.METRICS:
        assert figure.meaning[0].isupper(), figure.name
        assert figure.meaning.endswith("."), figure.name
        assert len(figure.healthy) > 3, figure.name


def test_what_is_logged_is_what_is_documented(tmp_path: Path) -> None:
    config = load_config(
        "smoke",
        ["run.device=cpu", "learner.precision=float32", "run.steps=4000", "run.save_replay=false",
         "game.max_ticks=150", "game.frame_skip=2"],
    )  # fmt: skip
    lines: list[dict[str, float]] = []
    Trainer(config, tmp_path, on_metrics=lines.append).run()
    config = apply_overrides(
        config,
        ["run.steps=1000", "actors.count=2", "network.encoder=lanes", "network.value_head=lanes",
         "network.spinner_knots=63", "network.policy_head=true", "network.acts=policy"],
    )  # fmt: skip
    games = RemoteGames(config, InlineExecutor)
    Trainer(config, tmp_path / "actors", on_metrics=lines.append, games=games).run()
    with_actors = lines.pop()
    logged = {name for line in [*lines, with_actors] for name in line}
    assert logged | {*EVALUATED, *OF_PLANS} == set(metrics_catalogue.BY_NAME)
    assert lines[-1]["frames"] > 1.9 * lines[-1]["steps"]
    assert 1.0 <= lines[-1]["level_mean"] <= lines[-1]["level_max"] <= 26.0


# --- play ---------------------------------------------------------------------------------------


def step_of(games: int, **columns: Any) -> Step:
    """A decision in which nothing happens, with ``columns`` on top."""
    no = np.zeros(games, np.bool_)
    still = {
        "reward": np.zeros(games, np.float32), "terminated": no, "truncated": no, "game_over": no,
        "score": np.zeros(games, np.int64), "spin": np.zeros(games, np.int8),
        "buttons": np.zeros(games, np.uint8), "final_codes": np.zeros((games, 1), np.int8),
        "final_zap_legal": no,
    }  # fmt: skip
    return Step(**{**still, **columns})


def test_agreement_is_counted_for_each_head() -> None:
    counts = PlayCounts()
    who = np.array([AGENT, AGENT, AGENT, AGENT, EXPERT, EXPLORATION], np.uint8)
    spin = np.array([0, 4, 5, -31, 9, 9], np.int8)
    label = np.array([0, 0, 0, -28, 9, 9], np.int8)
    buttons = np.array([1, 1, 0, 2, 1, 1], np.uint8)
    counts.compare(who, spin, buttons, label, np.array([1, 0, 0, 2, 1, 1], np.uint8))
    figures = counts.read()
    # Turns within 4 counts: games 0, 1, 3.  Same buttons: 0, 2, 3.  Only the agent's own count.
    assert figures["agreement_spinner"] == 3 / 4
    assert figures["agreement_buttons"] == 3 / 4
    assert figures["agreement"] == 2 / 4
    assert "agreement" not in counts.read()


def test_deaths_are_those_of_the_agent_by_their_cause() -> None:
    counts = PlayCounts()
    who = np.array([AGENT, AGENT, AGENT, EXPERT], np.uint8)
    for causes in ([-1, 0, 4, 1], [-1, 0, -1, -1]):
        counts.add(who, step_of(4, death_cause=np.array(causes, np.int8)))
    figures = counts.read()
    # Six decisions of the agent: two grabs and a spike; the pulsar killed the teacher.
    assert DEATH_CAUSES[0] == "grab"
    assert figures["deaths_grab"] == pytest.approx(1000 * 2 / 6)
    assert figures["deaths_spike"] == pytest.approx(1000 * 1 / 6)
    assert figures["deaths_pulsar"] == 0.0
    assert figures["deaths"] == pytest.approx(1000 * 3 / 6)


def test_counts_of_an_interval_go_on_after_a_resume() -> None:
    first, second = PlayCounts(), PlayCounts()
    who = np.array([AGENT, EXPERT], np.uint8)
    step = step_of(2, reward=np.array([1, 3], np.float32), spin=np.array([5, 0], np.int8))
    first.add(who, step)
    second.load_state_dict(first.state_dict())
    for counts in (first, second):
        counts.add(who, step)
    assert second.read() == first.read()


def test_returns_belong_to_the_drivers_by_their_share_of_a_game() -> None:
    history = GameHistory(np.array([False, True]))
    ticks = np.array([10, 30])
    for who, reward in (([EXPERT, AGENT], [1, 2]), ([EXPERT, AGENT], [1, 2])):
        step = step_of(2, reward=np.array(reward, np.float32), ticks=ticks)
        history.add(np.array(who, np.uint8), step)
    assert "return_agent" not in history.figures()
    for who in ([AGENT, EXPLORATION], [AGENT, AGENT]):
        step = step_of(2, reward=np.array([3, 0], np.float32), ticks=ticks)
        history.add(np.array(who, np.uint8), step)
    over = step_of(
        2, game_over=np.array([True, True]), ticks=ticks, score=np.array([900, 400]),
        level=np.array([7, 3]),
    )  # fmt: skip
    history.add(np.array([EXPERT, AGENT], np.uint8), over)
    figures = history.figures()
    # Game 0: return 8, expert 3/5, agent 2/5.  Game 1: return 4, agent 4/5, exploration 1/5.
    assert figures["return_expert"] == pytest.approx(8.0)
    assert figures["return_exploration"] == pytest.approx(4.0)
    assert figures["return_agent"] == pytest.approx((8 * 2 + 4 * 4) / 6)
    assert (figures["frames"], figures["games"]) == (5 * 40, 2)
    # Only game 1 is free of the teacher.
    assert (figures["teacher_free_score"], figures["level_mean"]) == (400.0, 3.0)


def finish(
    history: GameHistory, score: int, frames: int, level: int = 1, reward: float = 0
) -> None:
    """One game of one decision, ``frames`` long."""
    over = step_of(
        1, game_over=np.array([True]), ticks=np.array([frames]), score=np.array([score]),
        level=np.array([level]), reward=np.array([reward], np.float32),
    )  # fmt: skip
    history.add(np.array([AGENT], np.uint8), over)


def test_averages_and_slopes_over_the_last_one_and_five_million_frames() -> None:
    history = GameHistory(np.array([True]))
    # Games end at frames 400,000, 800,000, ... 6,000,000, with scores 100, 200, ... 1,500.
    for number in range(1, 16):
        finish(history, 100 * number, 400_000, level=number, reward=2.0 * number)
    figures = history.figures()
    assert figures["teacher_free_score"] == pytest.approx(800)
    # After frame 5,000,000: those of 5.2, 5.6 and 6.0 million; after 1,000,000: from 1.2 on.
    assert figures["teacher_free_score_1m"] == pytest.approx(1400)
    assert figures["teacher_free_score_5m"] == pytest.approx(np.mean(range(300, 1501, 100)))
    # 100 points every 0.4 million frames.
    assert figures["teacher_free_slope_1m"] == pytest.approx(250)
    assert figures["teacher_free_slope_5m"] == pytest.approx(250)
    assert figures["return_slope"] == pytest.approx(5.0)
    assert (figures["level_mean"], figures["level_max"]) == (8.0, 15.0)


def test_the_last_fifty_games_count_and_old_ones_are_forgotten() -> None:
    history = GameHistory(np.array([True]))
    for number in range(200):
        finish(history, number, 200_000)
    assert history.teacher_free_scores == list(range(150, 200))
    assert len(history.state_dict()["free_games"]) == 50
    # Five games a million frames, the one at the edge not included.
    assert history.figures()["teacher_free_score_1m"] == pytest.approx(np.mean(range(195, 200)))
    other = GameHistory(np.array([True]))
    other.load_state_dict(history.state_dict())
    for each in (history, other):
        finish(each, 1000, 300_000)
    assert other.figures() == history.figures()


def test_no_more_games_are_kept_than_a_checkpoint_has_room_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(game_history, "MOST_GAMES", 60)
    history = GameHistory(np.array([True]))
    for number in range(100):
        finish(history, number, 10)
    assert [score for _, score, _ in history.state_dict()["free_games"]] == list(range(40, 100))


def test_slopes() -> None:
    random = np.random.default_rng(0)
    x, y = random.random(20), random.random(20)
    assert least_squares_slope(x, y) == pytest.approx(np.polyfit(x, y, 1)[0])
    assert least_squares_slope([1, 2], [1, 2]) is None
    assert least_squares_slope([1, 1, 1], [1, 2, 3]) is None


def test_frames_and_levels_are_the_games_own() -> None:
    games = TempestGames(4, GameConfig(start_levels=(1, 9), max_ticks=300), 3)
    games.reset()
    levels = games.levels()
    assert set(levels) <= {1, 9}
    frames = np.zeros(4, np.int64)
    fire = np.ones(4, np.uint8)
    cause: list[int] = []
    while True:
        step = games.step(np.full(4, 9, np.int8), fire)
        assert step.ticks is not None
        assert step.level is not None
        assert step.death_cause is not None
        frames += step.ticks
        cause += step.death_cause[step.death_cause >= 0].tolist()
        if step.truncated.any():
            break
    # The limit is of ticks, those that were skipped included.
    np.testing.assert_array_equal(frames[step.truncated], 300)
    assert (step.level >= levels).all()
    assert set(cause) <= set(range(len(DEATH_CAUSES)))


# --- updates ------------------------------------------------------------------------------------


def learner_with(*overrides: str) -> Learner:
    torch.manual_seed(0)
    config = load_config(None, ["network.hidden=[8]", "learner.precision=float32", *overrides])
    return Learner(LAYOUT, config, CPU)


def test_the_clip_ratio_is_the_norm_after_over_the_norm_before() -> None:
    learner = learner_with("learner.max_grad_norm=0.05")
    random = np.random.default_rng(0)
    ratios = []
    for _ in range(4):
        learner.update(random_batch(random, rows=16), 1e-3, 0.0)
        after = torch.cat([p.grad.flatten() for p in learner.online.parameters()])  # type: ignore[union-attr]
        ratios.append((after.norm() / learner.grad_norm).item())
    figures = learner.metrics.read()
    assert min(ratios) < 0.9
    assert figures["clip_ratio"] == pytest.approx(np.mean(ratios), rel=1e-4)
    assert figures["clip_share"] == np.mean(np.array(ratios) < 0.9999)
    gentle = learner_with("learner.max_grad_norm=1000")
    gentle.update(random_batch(random, rows=16), 1e-3, 0.0)
    figures = gentle.metrics.read()
    assert (figures["clip_ratio"], figures["clip_share"]) == (1.0, 0.0)


def test_the_spread_of_the_continuous_head() -> None:
    learner = learner_with()
    batch = random_batch(np.random.default_rng(0), rows=16)
    with torch.no_grad():
        heads = learner.online(torch.from_numpy(batch.codes).float() / 127)
        proposals = learner.online.proposals(heads.latent)
        assert proposals is not None
    learner.update(batch, 1e-3, 0.0)
    expected = proposals.numpy().std(axis=0).mean()
    assert expected > 0.001
    assert learner.metrics.read()["spinner_spread"] == pytest.approx(expected, rel=1e-4)
    with torch.no_grad():
        learner.online.spinner_head.weight.zero_()
    learner.update(batch, 1e-3, 0.0)
    assert learner.metrics.read()["spinner_spread"] == pytest.approx(0.0, abs=1e-6)


def test_clamped_targets_are_counted() -> None:
    learner = learner_with("learner.target_clip=0.3", "learner.gradient_accumulation_steps=2")
    random = np.random.default_rng(0)
    hits, rows = 0.0, 0
    for _ in range(3):
        learner.update(random_batch(random, rows=32), 1e-3, 0.0)
        rows += 32
    figures = learner.metrics.read()
    hits = figures["target_clip_hits"]
    assert 0 < hits < rows
    assert hits == pytest.approx(figures["target_clip_share"] * rows)


def test_the_age_of_a_target_that_is_copied_whole() -> None:
    learner = learner_with("learner.target_update_interval=3", "learner.tau=1")
    random = np.random.default_rng(0)
    for _ in range(5):
        learner.update(random_batch(random, rows=8), 1e-3, 0.0)
    figures = learner.metrics.read()
    # After the updates 1 to 5: 1, 2, 0 (moved), 1, 2.
    assert figures["target_age"] == pytest.approx(6 / 5)
    assert figures["target_age_max"] == 2.0


def test_the_age_of_a_target_that_follows_slowly() -> None:
    followers = Followers(torch.nn.Linear(1, 1), tau=0.1, interval=2, ema_decay=0.9)
    weights, ages = [1.0], [0.0]  # Shares of the target's weights and how old they are.
    for update in range(1, 31):
        followers.move_average(followers.average_share(update))
        followers.move_target(update)
        ages = [age + 1 for age in ages]
        if update % 2 == 0:
            weights, ages = [0.9 * w for w in weights] + [0.1], [*ages, 0.0]
    assert followers.target_age == pytest.approx(np.dot(weights, ages))


def test_running_figures_travel_in_the_checkpoint() -> None:
    first, second = Metrics(), Metrics()
    for metrics in (first, second):
        metrics.mean("mean", torch.tensor(3.0), torch.tensor(2.0))
        metrics.total("total", torch.tensor(4.0))
        metrics.highest("high", torch.tensor(1.0))
        metrics.lowest("low", torch.tensor(-1.0))
    third = Metrics()
    third.load_state_dict(first.state_dict(), CPU)
    for metrics in (second, third):
        metrics.mean("mean", torch.tensor(1.0), 2.0)
        metrics.total("total", torch.tensor(0.5))
        metrics.highest("high", torch.tensor(0.0))
        metrics.lowest("low", torch.tensor(-2.0))
    assert third.read() == second.read() == {"mean": 1.0, "total": 4.5, "high": 1.0, "low": -2.0}
    assert third.read() == {}


def test_speeds_are_those_since_the_line_before(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(rates_module, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    rates = Throughput(batch_size=32)
    rates.restart(1000, 1500, 10)
    now[0] = 104.0
    assert rates.read(1400, 2300, 30) == {
        "env_steps_per_second": 100.0, "frames_per_second": 200.0,
        "updates_per_second": 5.0, "samples_per_second": 160.0,
    }  # fmt: skip
    now[0] = 105.0
    assert rates.read(1500, 2500, 31)["frames_per_second"] == 200.0


def test_a_line_after_a_resume_is_that_of_the_whole_run(tmp_path: Path) -> None:
    config = load_config(None, [*SMALL, "run.steps=1600", "run.log_interval=800"])
    lines: dict[str, list[dict[str, float]]] = {"whole": [], "parts": []}
    Trainer(
        config, tmp_path / "whole", games=FakeGames(16, 0), teacher=FakeTeacher(),
        on_metrics=lines["whole"].append,
    ).run()  # fmt: skip
    stopped = load_config(
        None, [*SMALL, "run.steps=1600", "run.log_interval=800", "run.checkpoint_interval=1200"]
    )
    first = Trainer(
        stopped, tmp_path / "parts", games=FakeGames(16, 0), teacher=FakeTeacher(),
        on_metrics=lines["parts"].append, on_checkpoint=lambda _: first.request_stop(),
    )  # fmt: skip
    first.run()
    Trainer.resume(
        tmp_path / "parts", games=lambda _: FakeGames(16, 0), teacher=FakeTeacher(),
        on_metrics=lines["parts"].append,
    ).run()  # fmt: skip
    for one, other in zip(lines["whole"], lines["parts"], strict=True):
        assert one.keys() == other.keys()
        for name, value in one.items():
            if not name.endswith("per_second"):
                assert other[name] == value, name
    assert lines["whole"][-1]["replay_fill"] == pytest.approx(1600 / 8000)


# --- the terminal -------------------------------------------------------------------------------


def test_the_table_has_every_figure_in_its_group() -> None:
    table = metrics_table({"steps": 345233.0, "loss": 0.25, "q_max": 1234.56, "new": 1.5})
    rows = [line.strip("| ").split("|") for line in table.splitlines()[1:-1]]
    cells = [[cell.strip() for cell in row] for row in rows]
    assert cells == [
        ["others/"], ["new", "1.5"], ["progress/"], ["steps", "345233"],
        ["values/"], ["loss", "0.25"], ["q_max", "1235"],
    ]  # fmt: skip

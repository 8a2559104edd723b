"""The arcade's games as the student sees them, and a short exact run on them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from tempest_agent.agent.checkpoints.policy import load_policy
from tempest_agent.agent.games.tempest_games import TempestGames, TempestTeacher, game_settings
from tempest_agent.agent.replay.rows import TERMINATED, TRUNCATED
from tempest_agent.config import Config, GameConfig, load_config
from tempest_agent.envs.engine.batch import GameBatch
from tempest_agent.experts import make_teacher
from tempest_agent.training.trainer import Trainer

GAMES = 8


def play(game: GameConfig, steps: int, zap_share: float = 0.5) -> dict[str, np.ndarray]:
    """Random play; every field of every step, stacked."""
    games = TempestGames(GAMES, game, 3)
    games.reset()
    random = np.random.default_rng(0)
    rows: dict[str, list[np.ndarray]] = {}
    for _ in range(steps):
        spin = random.integers(-31, 32, GAMES).astype(np.int8)
        buttons = (1 + 2 * (random.random(GAMES) < zap_share)).astype(np.uint8)
        rows.setdefault("asked", []).append(buttons)
        rows.setdefault("legal", []).append(games.zap_legal().copy())
        for name, value in games.step(spin, buttons)._asdict().items():
            rows.setdefault(name, []).append(value.copy())
    return {name: np.array(values) for name, values in rows.items()}


def test_reward_is_points_less_the_penalty_and_lives_end_returns() -> None:
    game = GameConfig(frame_skip=1, death_penalty=10.0, reward_scale=0.01, lives=2)
    rows = play(game, 2500)
    batch = GameBatch(GAMES, game_settings(game))
    assert rows["game_over"].any()
    over = rows["game_over"]
    # Scores only grow within a game, and their growth is the reward without the penalty.
    before = np.vstack([np.zeros((1, GAMES), np.int64), np.where(over, 0, rows["score"])[:-1]])
    gained = (rows["score"] - before) * 0.01
    penalty = gained - rows["reward"]
    deaths = rows["terminated"]
    np.testing.assert_allclose(penalty[~deaths], 0.0, atol=1e-4)
    np.testing.assert_allclose(penalty[deaths], 10.0, atol=1e-4)
    assert deaths.sum() > over.sum()
    assert batch.num_games == GAMES


def test_without_it_only_the_end_of_the_game_ends_the_return() -> None:
    rows = play(GameConfig(frame_skip=1, life_loss_terminal=False, lives=2), 2500)
    np.testing.assert_array_equal(rows["terminated"], rows["game_over"] & ~rows["truncated"])


def test_the_executed_buttons_have_no_illegal_zap() -> None:
    rows = play(GameConfig(frame_skip=1), 600)
    executed = rows["buttons"]
    assert not (executed[~rows["legal"]] & 2).any()
    asked = (rows["asked"] & 2 > 0) & rows["legal"]
    assert asked.any()
    assert (executed[asked] & 2).all()


def test_a_cut_game_shows_its_own_last_observation() -> None:
    game = GameConfig(frame_skip=1, max_ticks=100)
    games = TempestGames(GAMES, game, 3)
    games.reset()
    alone = GameBatch(GAMES, dataclasses.replace(game_settings(game), max_ticks=None))
    alone.reset(seeds=np.random.SeedSequence(3))
    spin, fire = np.full(GAMES, 5, np.int8), np.ones(GAMES, np.uint8)
    for _ in range(100):
        step = games.step(spin, fire)
        alone.step(spin, fire)
        cut = step.truncated & ~step.terminated
        if cut.any():
            np.testing.assert_array_equal(step.final_codes[cut], alone.codes[cut])
            assert (games.observe()[cut] != alone.codes[cut]).any()
            return
    raise AssertionError("no game was cut at 100 ticks")


@pytest.mark.parametrize("delay", [0, 2])
def test_state_round_trip(delay: int) -> None:
    game = GameConfig(frame_skip=2, input_delay=(delay,))
    first, second = TempestGames(GAMES, game, 1), TempestGames(GAMES, game, 2)
    first.reset()
    second.reset()
    random = np.random.default_rng(0)

    def act() -> tuple[np.ndarray, np.ndarray]:
        return random.integers(-31, 32, GAMES).astype(np.int8), np.ones(GAMES, np.uint8)

    for _ in range(50):
        first.step(*act())
    second.load_state_dict(first.state_dict())
    for _ in range(50):
        spin, buttons = act()
        one, two = first.step(spin, buttons), second.step(spin, buttons)
        np.testing.assert_array_equal(one.reward, two.reward)
        np.testing.assert_array_equal(first.observe(), second.observe())


def test_the_teacher_plays_far_better_than_chance_at_both_skips() -> None:
    for skip in (1, 2):
        game = GameConfig(frame_skip=skip, max_ticks=4000)
        games = TempestGames(GAMES, game, 1)
        games.reset()
        teacher = TempestTeacher(make_teacher("expert"), skip)
        scores = np.zeros(GAMES)
        running = np.ones(GAMES, bool)
        while running.any():
            step = games.step(*teacher.act(games.images()))
            scores[running] = step.score[running]
            running &= ~step.game_over
        assert scores.mean() > 15_000


def small(*overrides: str) -> Config:
    return load_config("smoke", ["run.device=cpu", "learner.precision=float32", *overrides])


SHORT_GAMES = ("run.steps=2400", "game.max_ticks=150", "game.frame_skip=2")


def test_a_run_on_the_arcades_games_resumes_exactly(tmp_path: Path) -> None:
    whole = Trainer(small(*SHORT_GAMES), tmp_path / "whole")
    whole.run()
    flags = whole.loop.replay.flags
    assert (flags & TERMINATED).any()
    assert (flags & TRUNCATED).any()
    assert whole.loop.replay.final_observations

    first = Trainer(small(*SHORT_GAMES), tmp_path / "parts")
    first.loop.on_metrics = lambda _: first.request_stop()
    assert first.run()["steps"] == 1008
    second = Trainer.resume(tmp_path / "parts")
    second.run()
    one, two = (t.loop.learner.online.state_dict() for t in (whole, second))
    for name, value in one.items():
        assert torch.equal(value, two[name]), name
    np.testing.assert_array_equal(whole.loop.replay.codes, second.loop.replay.codes)


def test_the_teachers_score_is_measured_when_none_is_given(tmp_path: Path) -> None:
    config = small(
        "run.steps=64", "teacher.score=0", "teacher.score_games=2", "game.max_ticks=2000"
    )
    trainer = Trainer(config, tmp_path)
    trainer.run()
    assert trainer.loop.teacher_score > 5_000


def test_a_policy_plays_by_codes(tmp_path: Path) -> None:
    config = small("run.steps=640", "game.frame_skip=2")
    result = Trainer(config, tmp_path).run()
    policy = load_policy(result["checkpoint"])
    assert (policy.frame_skip, policy.step, len(policy.sha256)) == (2, 640, 64)
    games = TempestGames(GAMES, config.game, 5)
    games.reset()
    spin, buttons = policy.act(games.observe(), np.zeros(GAMES, np.bool_))
    assert (spin.dtype, buttons.dtype) == (np.int8, np.uint8)
    assert (np.abs(spin.astype(int)) <= 31).all()
    assert (buttons < 2).all()

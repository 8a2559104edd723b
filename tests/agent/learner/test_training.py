"""Whole runs on a small problem whose best action is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from fake_games import SMALL, FakeGames, FakeTeacher
from stable_baselines3.common.callbacks import BaseCallback, CheckpointCallback
from stable_baselines3.common.evaluation import evaluate_policy

from tempest_agent.agent.checkpoints.policy import load_policy
from tempest_agent.agent.dqn.games_vec_env import GamesVecEnv
from tempest_agent.agent.dqn.hybrid_dqn import HybridDQN
from tempest_agent.config import Config, load_config
from tempest_agent.errors import UserError
from tempest_agent.training.trainer import Trainer


def small(*overrides: str) -> Config:
    return load_config(None, [*SMALL, *overrides])


def greedy_reward(path: Path) -> float:
    """Mean reward of the stored policy; 1 is perfect, about 0.3 is random."""
    policy, games = load_policy(path), FakeGames(200, seed=99)
    rewards = []
    for _ in range(5):
        rewards.append(games.step(*policy.act(games.observe(), games.zap_legal())).reward)
    return float(np.mean(rewards))


@pytest.mark.parametrize("spinner_head", ["functional", "knots"])
def test_values_alone_find_the_best_action(tmp_path: Path, spinner_head: str) -> None:
    config = small(
        "run.steps=4800", "teacher.expert_ratio_start=0", "teacher.expert_ratio_floor=0",
        f"network.spinner_head={spinner_head}", "exploration.epsilon_max=1",
        "exploration.epsilon_min=0.3", "exploration.hold_max=1",
    )  # fmt: skip
    result = Trainer(config, tmp_path, games=FakeGames(16, 0)).run()
    assert greedy_reward(Path(result["checkpoint"])) > 0.85


@pytest.mark.parametrize(
    ("spinner_head", "length"),
    [
        ("functional", ("run.steps=2400", "learner.learning_rate=1e-2")),
        ("regression", ("run.steps=8000",)),
    ],
)
def test_a_teacher_is_copied_before_values_are_known(
    tmp_path: Path, spinner_head: str, length: tuple[str, ...]
) -> None:
    config = small(
        *length, "teacher.score=1e9", "learner.imitation_weight=2",
        f"network.spinner_head={spinner_head}", "teacher.expert_ratio_floor=0.5",
        # A heavy imitation lifts values above the 1 that this game can give; the guard would act.
        "guard.enabled=false",
    )  # fmt: skip
    trainer = Trainer(config, tmp_path, games=FakeGames(16, 0), teacher=FakeTeacher())
    result = trainer.run()
    assert greedy_reward(Path(result["checkpoint"])) > 0.75


@pytest.mark.parametrize(
    "override",
    [
        "replay.prioritised=true",
        "learner.gradient_accumulation_steps=3",
        "learner.loss=squared",
        "network.dueling=false",
        "learner.precision=bfloat16",
        "learner.tau=0.01",
        "learner.trace=cut",
        "learner.train_freq=2",
    ],
)
def test_every_variant_learns(tmp_path: Path, override: str) -> None:
    config = small("run.steps=1600", override, "run.save_replay=false")
    trainer = Trainer(config, tmp_path, games=FakeGames(16, 0), teacher=FakeTeacher())
    result = trainer.run()
    assert greedy_reward(Path(result["checkpoint"])) > 0.75


def test_a_line_of_metrics_has_every_figure(tmp_path: Path) -> None:
    lines: list[dict[str, float]] = []
    config = small("run.steps=1600")
    Trainer(
        config, tmp_path, games=FakeGames(16, 0), teacher=FakeTeacher(), on_metrics=lines.append
    ).run()
    assert [line["steps"] for line in lines] == [400 * i for i in range(1, 5)]
    for name in (
        "loss", "loss_agent", "loss_expert", "q_mean", "q_min", "q_max", "q_agent", "target_mean",
        "target_max", "target_clip_share", "return_bound", "grad_norm", "grad_norm_max",
        "effective_n", "epsilon", "expert_ratio", "learning_rate", "reward_agent", "reward_expert",
        "share_agent", "teacher_free_score", "updates_per_second", "samples_per_second",
        "imitation_gate", "imitation_loss", "spinner_loss", "agreement", "skipped_updates",
    ):  # fmt: skip
        assert name in lines[-1], name
    assert all(np.isfinite(value) for line in lines for value in line.values())
    shares = [lines[-1][f"share_{name}"] for name in ("agent", "exploration", "expert")]
    assert sum(shares) == pytest.approx(1.0)
    assert lines[-1]["return_bound"] == pytest.approx(1.0, abs=0.01)


def test_stable_baselines_tools_work_on_it(tmp_path: Path) -> None:
    config = small("run.steps=3200")
    env = GamesVecEnv(FakeGames(16, 0))
    model = HybridDQN("MlpQPolicy", env, config=config, teacher=FakeTeacher())
    assert model.get_env() is env
    seen: list[int] = []
    saver = CheckpointCallback(50, str(tmp_path), name_prefix="sb3")

    class Counter(BaseCallback):
        def _on_step(self) -> bool:
            seen.append(self.num_timesteps)
            return True

    model.learn(800, [saver, Counter()])
    assert model.num_timesteps == 800
    assert len(seen) == 50
    assert load_policy(tmp_path / "sb3_800_steps.zip").step == 800
    model.learn(160)
    newest = model.loop.replay.flags[50 - 1]
    assert ((newest & 3) > 0).all()
    assert ((model.loop.replay.flags[50] & 4) > 0).all()
    mean, _ = evaluate_policy(model, GamesVecEnv(FakeGames(4, 1)), n_eval_episodes=20)
    assert isinstance(mean, float)
    assert mean > 0.0
    action, _ = model.predict(np.zeros(6, np.float32))
    assert action.shape == (3,)
    assert env.action_space.contains(action)


def test_other_environments_are_refused() -> None:
    with pytest.raises(UserError, match="discrete and a continuous action"):
        HybridDQN("MlpQPolicy", "CartPole-v1")


def test_an_unknown_teacher_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"expret.*did you mean 'expert'"):
        Trainer(small("teacher.name=expret"), tmp_path)


def test_a_missing_gpu_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UserError, match="'cuda' is not available"):
        Trainer(small("run.device=cuda"), tmp_path, games=FakeGames(16, 0))

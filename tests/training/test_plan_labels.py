"""Short runs that learn from the values of all plans: resumed, and played by an actor."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_games import FakeGames
from remote_runs import SYNCHRONOUS, Run, arcade, inline

from tempest_agent.agent.collect.plan_labeller import make_labeller
from tempest_agent.agent.replay.rows import HAS_PLANS
from tempest_agent.config import Config, ConfigError, load_config
from tempest_agent.errors import UserError
from tempest_agent.runs.metrics_catalogue import BY_NAME
from tempest_agent.training.trainer import Trainer

PLANS = (
    "teacher.labels=plans", "teacher.label_share=0.1", "network.policy_head=true",
    "network.acts=policy", "network.encoder=lanes", "network.value_head=lanes",
    "network.spinner_knots=63", "network.hidden=[16]", "network.lane_width=8",
    "game.frame_skip=1", "game.start_levels=[33]", "run.steps=640",
    "replay.learning_starts=100", "learner.batch_size=16", "learner.plan_batch_size=16",
    "run.log_interval=160",
)  # fmt: skip


def settings(actors: int = 0, *more: str) -> Config:
    return arcade(actors, *PLANS, *more)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run in one process, without a stop."""
    return Run(Trainer(settings(), tmp_path_factory.mktemp("whole")))


def test_plans_are_learned_from(whole: Run) -> None:
    assert (whole.replay.flags & HAS_PLANS).sum() >= 0.05 * whole.replay.flags.size
    last = whole.lines[-1]
    assert last["plan_loss"] > 0.0
    assert last["plan_regret"] > 0.0
    assert 0.0 <= last["plan_agreement"] <= 1.0
    assert "imitation_loss" not in last
    assert {name for line in whole.lines for name in line} <= set(BY_NAME)


def test_a_run_goes_on_exactly_with_labels_under_way(whole: Run, tmp_path: Path) -> None:
    first = Trainer(settings(), tmp_path)
    first.loop.on_metrics = lambda line: line["steps"] >= 320 and first.request_stop()
    first.run()
    assert first.steps == 320
    second = Trainer.resume(tmp_path)
    assert second.loop.collector.state_dict()["labels"]["asked"].any()
    rest = Run(second)
    rest.lines = whole.lines[: len(whole.lines) - len(rest.lines)] + rest.lines
    rest.assert_equals(whole)


def test_a_synchronous_actor_labels_the_same_states(whole: Run, tmp_path: Path) -> None:
    Run(inline(settings(1, SYNCHRONOUS), tmp_path)).assert_equals(whole)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("network.policy_head=false", "network.policy_head=true"),
        ("game.frame_skip=2", "game.frame_skip=2"),
        ("replay.storage=device", "replay.storage=host"),
    ],
)
def test_what_plans_do_not_go_with_is_said(override: str, words: str) -> None:
    acts = ("network.acts=values",) if "policy_head" in override else ()
    with pytest.raises(ConfigError, match=words):
        settings(0, *acts, override)


def test_other_games_have_no_plans() -> None:
    config = load_config(None, ["teacher.labels=plans", *PLANS[2:7]])
    with pytest.raises(UserError, match="other games"):
        make_labeller(config, FakeGames(2, 0), 1)

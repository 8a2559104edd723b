"""The guard on environments of others: quiet where all is well, loud where it is not."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import pytest
import torch
from places import DATA
from stable_baselines3.common.vec_env import DummyVecEnv
from target_game import TargetGame

from tempest_agent import HybridDQN
from tempest_agent.agent.dqn.sb3_arguments import base_config
from tempest_agent.config import from_dict
from tempest_agent.stability.guard import SYMPTOM, Event, Guard

RECORDED = DATA / "foreign_runs.json"
RUNS: dict[str, list[dict[str, float]]] = json.loads(RECORDED.read_text(encoding="utf-8"))
"""Lines of metrics of runs of 24,000 decisions by one environment, with the defaults and two layers
of 64: a pendulum with a gear (rewards from -16 to 0; it learns to stand), and ``target_game`` with
a reward of 1 for every decision and with none, which explored for longer than the defaults do."""


@pytest.mark.parametrize("name", RUNS)
def test_a_recorded_run_that_went_well_shows_nothing(name: str) -> None:
    config = from_dict({"run": {"num_envs": 1, "steps": 24_000}}, base_config(None))
    guard = Guard(config, has_teacher=False)
    assert [event for line in RUNS[name] for event in guard.observe(line)] == []
    assert RUNS[name][-1]["steps"] == 24_000


class Rewards(gym.Wrapper[Any, Any, Any, Any]):
    """``TargetGame`` with other rewards, which know the number of the decision."""

    def __init__(self, change: Callable[[float, int], float]) -> None:
        super().__init__(TargetGame())
        self.change, self.decisions = change, 0

    def step(self, action: Any) -> Any:
        observation, reward, *rest = super().step(action)
        self.decisions += 1
        return observation, self.change(float(reward), self.decisions), *rest


def trained(
    change: Callable[[float, int], float],
    settings: dict[str, dict[str, Any]] | None = None,
    spoil: Callable[[HybridDQN], None] | None = None,
) -> tuple[HybridDQN, list[Event]]:
    """A run of 1,600 decisions in 8 environments, spoiled in its middle; what its guard said."""
    torch.set_num_threads(1)
    tree: dict[str, dict[str, Any]] = {"run": {"log_interval": 100}, "learner": {"batch_size": 32}}
    for section, values in (settings or {}).items():
        tree[section] = {**tree.get(section, {}), **values}
    model = HybridDQN(
        "MlpQPolicy", DummyVecEnv([lambda: Rewards(change)] * 8), config=tree, device="cpu", seed=1,
        learning_starts=160, policy_kwargs={"net_arch": [32]},
    )  # fmt: skip
    events: list[Event] = []
    model.loop.on_guard = events.append
    model.learn(800 if spoil else 1_600)
    if spoil:
        spoil(model)
        model.learn(800, reset_num_timesteps=False)
    return model, events


HEALTHY: dict[str, Callable[[float, int], float]] = {
    "negative": lambda reward, _: reward - 3.0,
    "tiny": lambda reward, _: 1e-6 * reward,
    "huge": lambda reward, _: 1e6 * reward,
    "none": lambda *_: 0.0,
}


UNITS = {"negative": 1.0, "tiny": 1e-6, "huge": 1e6, "none": 1.0}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_run_is_left_alone(name: str) -> None:
    model, events = trained(HEALTHY[name])
    assert model.learner.unit == pytest.approx(UNITS[name])
    assert events == []
    assert model.learner.updates > 170
    assert model.loop.guard.remedies.active == []


def symptoms(events: list[Event]) -> set[str]:
    return {event.symptom for event in events if event.kind == SYMPTOM}


def spoil_weights(model: HybridDQN) -> None:
    with torch.no_grad():
        model.learner.online.value_head.weight.fill_(math.nan)


def run_away(model: HybridDQN) -> None:
    """Leave values that no rewards of the run explain, and that hold each other up."""
    with torch.no_grad():
        for network in (model.learner.online, model.learner.followers.target):
            network.value_head.weight.mul_(1e6)
            network.value_head.bias.mul_(1e6)


@pytest.mark.parametrize("scale", [-1.0, 1e-6, 1e4])
def test_values_that_run_away_are_told_and_treated(scale: float) -> None:
    model, events = trained(lambda reward, _: scale * reward, spoil=run_away)
    assert {"beyond_bound", "overestimation", "growing_values"} & symptoms(events)
    assert model.loop.guard.remedies.active


def test_rewards_that_grow_a_thousandfold_are_told() -> None:
    def change(reward: float, decision: int) -> float:
        return reward * (1000.0 if decision > 100 else 1.0)

    assert "other_rewards" in symptoms(trained(change)[1])


def test_a_target_that_never_moves_is_told() -> None:
    never = {"target_update_interval": 1_000_000, "gradient_steps": 3, "batch_size": 8}
    _, events = trained(HEALTHY["none"], {"learner": never})
    assert symptoms(events) == {"stalled_target"}
    assert "1,000,000 updates old, and the whole run makes about 540" in events[0].detail


def test_numbers_that_are_none_are_told_at_once() -> None:
    model, events = trained(HEALTHY["negative"], spoil=spoil_weights)
    assert "not_finite" in symptoms(events)
    assert "learning_rate" in model.loop.guard.remedies.active

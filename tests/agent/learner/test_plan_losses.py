"""What plans teach a policy, against a plain calculation row by row."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from tempest_agent.agent.games.tempest_games import TEMPEST_LAYOUT
from tempest_agent.agent.learner.metrics import Metrics
from tempest_agent.agent.learner.policy_losses import PlanLosses
from tempest_agent.agent.replay.plans import NO_PLAN, PLANS, Plans
from tempest_agent.config import load_config

ROWS = 40
SIZE = TEMPEST_LAYOUT.lane_features
CONFIG = load_config(
    None,
    [
        "learner.plan_temperature=30", "learner.plan_weight=2", "learner.regret_weight=3",
        "learner.imitation_width=0.1",
    ],
)  # fmt: skip


def states(random: np.random.Generator) -> tuple[torch.Tensor, list[int], list[int | None]]:
    """Observations with nothing but a place in the lane and the end of an open well."""
    seen = torch.zeros(ROWS, TEMPEST_LAYOUT.num_features)
    places, gaps = [], []
    for row in range(ROWS):
        place, gap = int(random.integers(16)), int(random.choice([0, 1, 2, 8, 14, 15]))
        seen[row, TEMPEST_LAYOUT.lane_position] = (2 * place - 15) * 8 / 127
        seen[row, TEMPEST_LAYOUT.lane_exists : 16 * SIZE : SIZE] = 1.0
        if gap:
            seen[row, TEMPEST_LAYOUT.lane_exists + gap * SIZE] = 0.0
        places.append(place)
        gaps.append(gap or None)
    return seen, places, gaps


def random_plans(random: np.random.Generator) -> Plans:
    shape = ROWS, PLANS
    regret = random.integers(0, 300, shape).astype(np.int32)
    regret[np.arange(ROWS), random.integers(0, PLANS, ROWS)] = 0
    regret[random.random(shape) < 0.6] = NO_PLAN
    spin = random.integers(-31, 32, shape).astype(np.int8)
    buttons = random.integers(0, 4, shape).astype(np.uint8)
    return Plans(spin, buttons, regret)


def lane_of(place: int, count: int, gap: int | None) -> int:
    """Lane that a turn ends in, relative to the one where it starts."""
    lane = (place - count) // 16
    if gap is not None:
        lane = max(gap - 15, min(gap - 1, lane))
    return lane


def slow_loss(
    logits: NDArray[np.float64],
    plans: list[tuple[int, int, int]],
    place: int,
    gap: int | None,
    zap: bool,
) -> tuple[float, float] | None:
    """Cross entropy and expected regret in one state; None without a legal plan."""
    plans = [plan for plan in plans if zap or plan[1] < 2]
    if not plans:
        return None
    least = min(regret for _, _, regret in plans)
    plans = [(count, pair, regret - least) for count, pair, regret in plans]
    pairs = 4 if zap else 2
    chances = np.exp(logits[:pairs] - logits[:pairs].max())
    chances /= chances.sum()
    weights = [math.exp(-regret / 30) for _, _, regret in plans]
    entropy = expected = 0.0
    for (count, pair, _), weight in zip(plans, weights, strict=True):
        alike = {
            other: math.exp(-0.5 * ((other - count) / 3.1) ** 2)
            for other in range(-31, 32)
            if (place - other) // 16 == (place - count) // 16
        }
        for other, share in alike.items():
            part = weight / sum(weights) * share / sum(alike.values())
            entropy -= part * math.log(chances[pair, other + 31])
    if len(plans) > 1:
        for pair in range(pairs):
            for count in range(-31, 32):
                lane = lane_of(place, count, gap)
                landing = [
                    regret
                    for other, its, regret in plans
                    if lane_of(place, other, gap) == lane and its // 2 == pair // 2
                ]
                regret = min(landing) if landing else max(regret for _, _, regret in plans)
                expected += chances[pair, count + 31] * regret
    return entropy, expected


def test_the_losses_are_those_of_a_plain_loop() -> None:
    random = np.random.default_rng(2)
    seen, places, gaps = states(random)
    plans, zap = random_plans(random), random.random(ROWS) < 0.5
    policy = torch.from_numpy(random.normal(size=(ROWS, 4, 63))).requires_grad_()
    metrics = Metrics()
    losses = PlanLosses(CONFIG, TEMPEST_LAYOUT, torch.device("cpu"))
    legal = torch.from_numpy(zap)
    wanted = losses.wanted(plans, seen, legal)
    loss = losses.loss(policy, wanted, legal, metrics)
    found = []
    for row in range(ROWS):
        mine = [
            (int(plans.spin[row, i]), int(plans.buttons[row, i]), int(plans.regret[row, i]))
            for i in range(PLANS)
            if plans.regret[row, i] != NO_PLAN
        ]
        logits = policy[row].detach().numpy()
        found.append(slow_loss(logits, mine, places[row], gaps[row], bool(zap[row])))
    known = [each for each in found if each is not None]
    assert 20 < len(known) < ROWS
    total = sum(2 * entropy + 3 * expected / 100 for entropy, expected in known)
    assert float(loss.detach()) == pytest.approx(total / ROWS, rel=1e-4)
    read = metrics.read()
    assert read["plan_loss"] == pytest.approx(np.mean([each[0] for each in known]), rel=1e-4)
    assert read["plan_regret"] == pytest.approx(np.mean([each[1] for each in known]), rel=1e-4)
    loss.backward()
    assert policy.grad is not None
    assert not policy.grad[~zap, 2:].any()


def test_a_policy_that_does_the_best_agrees_and_regrets_nothing() -> None:
    random = np.random.default_rng(3)
    seen, _, _ = states(random)
    plans, zap = random_plans(random), np.ones(ROWS, np.bool_)
    regret = np.where(plans.regret == NO_PLAN, NO_PLAN, plans.regret + 1)
    best = random.integers(0, PLANS, ROWS)
    regret[np.arange(ROWS), best] = 0
    plans = plans._replace(regret=regret.astype(np.int32))
    policy = torch.zeros(ROWS, 4, 63)
    for row, plan in enumerate(best):
        policy[row, int(plans.buttons[row, plan]), int(plans.spin[row, plan]) + 31] = 99.0
    losses = PlanLosses(CONFIG, TEMPEST_LAYOUT, torch.device("cpu"))
    metrics, legal = Metrics(), torch.from_numpy(zap)
    losses.loss(policy, losses.wanted(plans, seen, legal), legal, metrics)
    read = metrics.read()
    assert read["plan_agreement"] == 1.0
    assert read["plan_regret"] == pytest.approx(0.0, abs=1e-3)

"""Every kind of value and of spinner head on a hybrid-action problem whose answer is known."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from hybrid_bandit import LAYOUT, greedy_reward, random_batch, states, train, two_peaks
from torch import Tensor

from tempest_agent.agent.inference.greedy import choose, features
from tempest_agent.agent.learner.learner import Learner
from tempest_agent.agent.networks.actions import pair_mask
from tempest_agent.agent.networks.value_distributions import (
    COSINES,
    FractionLayer,
    make_distribution,
    project,
)
from tempest_agent.config import load_config

CPU = torch.device("cpu")
SMALL = (
    "network.hidden=[64]", "learner.precision=float32", "learner.target_clip=2",
    "learner.value_bins=21", "learner.quantile_samples=8", "learner.target_update_interval=20",
    "learner.imitation=none",
)  # fmt: skip


def learner_of(*overrides: str) -> Learner:
    torch.manual_seed(0)
    return Learner(LAYOUT, load_config(None, [*SMALL, *overrides]), CPU)


def best_values(learner: Learner, first_stage: bool) -> float:
    """Mean value of the best action."""
    codes = states(np.random.default_rng(2), 300, np.full(300, not first_stage))
    with torch.no_grad():
        heads = learner.online(features(codes, LAYOUT, CPU))
        choice = choose(learner.online, heads, torch.ones(300, 4, dtype=torch.bool))
    return choice.value.mean().item()


VARIANTS = [
    ("learner.loss=huber",),
    ("learner.loss=squared", "network.dueling=false"),
    ("learner.loss=c51",),
    ("learner.loss=iqn",),
    ("learner.loss=iqn", "network.dueling=false"),
    ("network.spinner_interpolation=quadratic", "network.spinner_knots=7"),
    ("learner.loss=c51", "network.spinner_interpolation=quadratic"),
    ("network.spinner_head=knots",),
    ("network.layer_norm=false",),
    ("learner.double_q=false",),
]


@pytest.mark.parametrize("overrides", VARIANTS, ids=" ".join)
def test_the_best_action_and_its_value_are_found(overrides: tuple[str, ...]) -> None:
    learner = learner_of(*overrides)
    before = greedy_reward(learner)
    train(learner, 200, rate=8e-3, rows=128)
    assert before < 0.5
    assert greedy_reward(learner) > 0.8
    # Values come up slowly; what the second stage is worth must be part of the first.
    last, first = best_values(learner, first_stage=False), best_values(learner, first_stage=True)
    assert last == pytest.approx(1.0, abs=0.3)
    assert first == pytest.approx(last * 1.5, abs=0.2)


def test_regression_stays_between_two_peaks_and_the_default_does_not() -> None:
    rewards = {}
    for head in ("functional", "regression"):
        learner = learner_of(f"network.spinner_head={head}")
        train(learner, 200, two_peaks, rows=128)
        rewards[head] = greedy_reward(learner, two_peaks)
    assert rewards["functional"] > 0.85
    assert rewards["regression"] < 0.2


def test_with_parabolas_the_continuous_head_finds_more_than_any_knot() -> None:
    """Best places lie between five knots: only a proposal can get there."""
    rewards = {}
    for head in ("functional", "knots"):
        learner = learner_of(
            f"network.spinner_head={head}", "network.spinner_interpolation=quadratic",
            "network.spinner_knots=5", "learner.spinner_weight=1",
        )  # fmt: skip
        train(learner, 200, rate=8e-3, rows=128)
        rewards[head] = greedy_reward(learner)
    assert rewards["functional"] > rewards["knots"] + 0.01


def test_proposals_are_candidates_of_targets_too() -> None:
    learner = learner_of("network.spinner_interpolation=quadratic", "network.spinner_knots=5")
    train(learner, 100)
    observation = features(
        states(np.random.default_rng(2), 200, np.ones(200, np.bool_)), LAYOUT, CPU
    )
    with torch.no_grad():
        heads = learner.online(observation)
        choice = choose(learner.online, heads, pair_mask(torch.ones(200, dtype=torch.bool)))
    knots = heads.values.flatten(1).max(dim=1).values
    assert (choice.value >= knots).all()
    assert (choice.value > knots + 1e-4).float().mean() > 0.1


# --- parts by hand ------------------------------------------------------------------------------


def tensor(*values: float) -> Tensor:
    return torch.tensor(values)


def test_c51_projects_onto_its_bins_by_hand() -> None:
    config = load_config(
        None, ["learner.loss=c51", "learner.target_clip=2", "learner.value_bins=5"]
    )
    bins = make_distribution(config.learner)
    points = torch.tensor([[-2.0, 0.25, 2.0], [9.0, -9.0, 1.0]])
    weights = torch.tensor([[0.5, 0.3, 0.2], [0.25, 0.25, 0.5]])
    got = project(points, weights, 2.0, 5)
    torch.testing.assert_close(
        got, torch.tensor([[0.5, 0.0, 0.225, 0.075, 0.2], [0.25, 0.0, 0.0, 0.5, 0.25]])
    )
    torch.testing.assert_close(bins.mean(got.clamp(min=1e-12).log())[0], tensor(-0.525)[0])


def test_quantile_loss_equals_a_slow_loop() -> None:
    config = load_config(None, ["learner.loss=iqn", "learner.quantile_samples=3"])
    quantiles = make_distribution(config.learner)
    random = torch.Generator().manual_seed(0)
    detail, points = (3 * torch.randn(4, n, generator=random) for n in (3, 5))
    weights = torch.softmax(torch.randn(4, 5, generator=random), dim=1)
    fractions = torch.rand(4, 3, generator=random)
    expected = torch.zeros(4)
    for row in range(4):
        for i in range(3):
            for j in range(5):
                error = float(points[row, j] - detail[row, i])
                huber = 0.5 * error**2 if abs(error) < 1 else abs(error) - 0.5
                tau = float(fractions[row, i])
                lean = tau if error >= 0 else 1 - tau
                expected[row] += float(weights[row, j]) * lean * huber / 3
    torch.testing.assert_close(quantiles.loss(detail, points, weights, fractions), expected)


def test_iqn_learns_the_quantiles_of_a_random_reward() -> None:
    learner = learner_of("learner.loss=iqn", "learner.quantile_samples=16", "network.hidden=[32]")
    random = np.random.default_rng(0)
    batch = random_batch(random, 128)._replace(discounts=np.zeros(128, np.float32))
    for update in range(300):
        rewards = random.uniform(-1, 1, 128).astype(np.float32)
        rate = 4e-3 if update < 200 else 5e-4
        learner.update(batch._replace(returns=rewards), rate, 0.0)
    with torch.no_grad():
        detail = learner.online(features(batch.codes, LAYOUT, CPU)).detail
    own = detail[torch.arange(128), torch.from_numpy(batch.buttons).long()].mean(dim=(0, 1))
    # Huber's quantiles are drawn inwards; their order, symmetry and spread must be there.
    assert (own.diff() > 0).all()
    assert own[0].item() < -0.5
    assert own[-1].item() > 0.5
    assert own.mean().item() == pytest.approx(0.0, abs=0.1)


def test_two_runs_of_every_kind_are_equal_bit_for_bit() -> None:
    for overrides in (("learner.loss=iqn",), ("learner.loss=c51",)):
        runs = []
        for _ in range(2):
            learner = learner_of(*overrides)
            train(learner, 5)
            runs.append(copy.deepcopy(learner.online.state_dict()))
        for name, value in runs[0].items():
            assert torch.equal(value, runs[1][name])


def test_fractions_are_described_by_cosines_and_multiplied_in() -> None:
    """The layer of implicit quantiles: latent * relu(W cos(i pi tau) + b), i from 1."""
    torch.manual_seed(0)
    layer = FractionLayer(5, 2)
    latent, fractions = torch.randn(3, 5), torch.rand(3, 4)
    waves = np.cos(np.pi * np.arange(1, COSINES + 1) * fractions.numpy()[..., None])
    weight, bias = (p.detach().numpy() for p in (layer.linear.weight, layer.linear.bias))
    wanted = latent.numpy()[:, None] * np.maximum(waves @ weight.T + bias, 0)
    np.testing.assert_allclose(layer(latent, fractions).detach(), wanted, atol=1e-5)
    # Without fractions, the middles of equal parts.
    middles = torch.tensor([[0.25, 0.75]]).expand(3, 2)
    torch.testing.assert_close(layer(latent), layer(latent, middles))

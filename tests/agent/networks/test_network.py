"""Encoders, sizes, parabolas between knots, and learning-rate schedules."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hybrid_bandit import LAYOUT, random_batch

from tempest_agent.agent.curriculum.schedules import Ramp, Schedules
from tempest_agent.agent.inference.deterministic_network import DeterministicNetwork
from tempest_agent.agent.inference.greedy import choose
from tempest_agent.agent.learner.learner import Learner
from tempest_agent.agent.networks.actions import pair_mask, to_counts
from tempest_agent.agent.networks.encoders import LanesEncoder
from tempest_agent.agent.networks.interpolation import interpolate
from tempest_agent.agent.networks.layout import Layout
from tempest_agent.agent.networks.network_size import size_of
from tempest_agent.agent.networks.q_network import QNetwork
from tempest_agent.config import LearnerConfig, NetworkConfig, load_config
from tempest_agent.envs.machine.memory import LANES

TAIL = LANES * 2
LANES_LAYOUT = Layout(LANES * 4 + 3 + TAIL, lane_features=4, forecast_features=2)


def lanes_observation(rows: int = 5) -> torch.Tensor:
    torch.manual_seed(0)
    observation = torch.rand(rows, LANES_LAYOUT.num_features)
    exists = (torch.rand(rows, LANES) < 0.9).float()
    observation[:, : LANES * 4].view(rows, LANES, 4)[..., 0] = exists
    return observation


@pytest.mark.parametrize("turn", [1, 5, 15])
@pytest.mark.parametrize("layer_norm", [True, False])
def test_the_lane_encoder_turns_with_the_well(turn: int, layer_norm: bool) -> None:
    encoder = LanesEncoder(LANES_LAYOUT, lane_width=6, width=8, layer_norm=layer_norm)
    observation = lanes_observation()
    turned = observation.clone()
    lanes = observation[:, : LANES * 4].view(-1, LANES, 4)
    turned[:, : LANES * 4] = lanes.roll(turn, dims=1).flatten(1)
    turned[:, -TAIL:] = observation[:, -TAIL:].view(-1, LANES, 2).roll(turn, dims=1).flatten(1)
    with torch.no_grad():
        torch.testing.assert_close(encoder.lanes(turned), encoder.lanes(observation).roll(turn, 1))
        assert not torch.allclose(encoder(turned), encoder(observation))


@pytest.mark.parametrize("of_tail", [True, False])
def test_a_lane_sees_two_neighbours_and_nothing_passes_a_missing_lane(of_tail: bool) -> None:
    encoder = LanesEncoder(LANES_LAYOUT, lane_width=6, width=8)
    observation = lanes_observation(1)
    lanes = observation[:, : LANES * 4].view(1, LANES, 4)
    lanes[..., 0] = 1.0
    lanes[0, 10, 0] = 0.0
    other = observation.clone()
    if of_tail:
        other[:, -TAIL:].view(1, LANES, 2)[0, 9] += 1.0
    else:
        other[:, : LANES * 4].view(1, LANES, 4)[0, 9, 1:] += 1.0
    with torch.no_grad():
        changed = (encoder.lanes(other) != encoder.lanes(observation)).any(dim=2)[0]
    assert np.flatnonzero(changed.numpy()).tolist() == [7, 8, 9]


def test_size_of_a_network_by_hand() -> None:
    settings = NetworkConfig(hidden=(8, 5), spinner_knots=3)
    size = size_of(QNetwork(Layout(10), settings), 10)
    # Weights and biases, gain and shift of each layer, then 4 * 3 + 1 values.
    assert size.parameters == (10 * 8 + 3 * 8) + (8 * 5 + 3 * 5) + (5 * 13 + 13) + (5 * 4 + 4)
    # The spinner head is a pass of its own.
    assert size.flops == 2 * (10 * 8 + 8 * 5 + 5 * 13)
    assert str(size).startswith(f"{size.parameters} parameters, {size.flops} FLOPs")
    assert size_of(QNetwork(LANES_LAYOUT, NetworkConfig(encoder="lanes")), 99).flops > 10_000


@pytest.mark.parametrize(
    ("settings", "learner"),
    [
        (NetworkConfig(hidden=(8,)), LearnerConfig(loss="c51", value_bins=11)),
        (NetworkConfig(hidden=(8,)), LearnerConfig(loss="iqn")),
        (NetworkConfig(hidden=(8,), layer_norm=False), LearnerConfig(loss="c51")),
        (NetworkConfig(encoder="lanes", hidden=(8,)), LearnerConfig(loss="iqn")),
    ],
)
def test_values_are_the_means_of_what_the_heads_say(
    settings: NetworkConfig, learner: LearnerConfig
) -> None:
    network = QNetwork(LANES_LAYOUT, settings, learner).eval()
    with torch.no_grad():
        heads = network(lanes_observation())
    assert heads.values.shape == (5, 4, 9)
    assert heads.detail is not None
    assert heads.detail.shape == (5, 4, 9, network.distribution.numbers)
    for pair in range(4):
        for knot, place in enumerate(np.linspace(-1, 1, 9)):
            numbers = network.numbers_at(
                heads, torch.full((5,), pair), torch.full((5,), float(place))
            )
            torch.testing.assert_close(numbers, heads.detail[:, pair, knot], atol=1e-5, rtol=1e-4)
        everywhere = torch.full((5, 4), 0.4)
        own = network.numbers_at(heads, torch.full((5,), pair), everywhere[:, pair])
        torch.testing.assert_close(
            network.values_at(heads, everywhere)[:, pair], network.distribution.mean(own)
        )


# --- parabolas ----------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [3, 4, 9])
def test_a_parabola_is_met_exactly(count: int) -> None:
    def parabola(place: torch.Tensor) -> torch.Tensor:
        return 2.0 - place + 3.0 * place.square()

    axis = torch.linspace(-1, 1, count, dtype=torch.float64)
    position = torch.linspace(-1, 1, 101, dtype=torch.float64)
    got = interpolate(parabola(axis).expand(101, count), position, "quadratic")
    torch.testing.assert_close(got, parabola(position))


def test_parabolas_pass_through_the_knots_without_a_kink() -> None:
    torch.manual_seed(0)
    values = torch.randn(9, dtype=torch.float64)
    axis = torch.linspace(-1, 1, 9, dtype=torch.float64)
    torch.testing.assert_close(interpolate(values.expand(9, 9), axis, "quadratic"), values)
    step = 1e-5

    def slope(place: torch.Tensor) -> torch.Tensor:
        many = values.expand(place.numel(), 9)
        rise = interpolate(many, place + step, "quadratic") - interpolate(many, place, "quadratic")
        return rise / step

    inner = axis[1:-1]
    torch.testing.assert_close(slope(inner), slope(inner - step), atol=1e-2, rtol=1e-3)


def test_the_gradient_to_the_position_is_the_slope() -> None:
    torch.manual_seed(0)
    values = torch.randn(20, 5, dtype=torch.float64)
    position = (2 * torch.rand(20, dtype=torch.float64) - 1).requires_grad_()
    assert torch.autograd.gradcheck(lambda p: interpolate(values, p, "quadratic"), position)


@pytest.mark.parametrize(
    "overrides", [{"spinner_interpolation": "quadratic"}, {"layer_norm": False}]
)
@pytest.mark.parametrize("knots", [3, 6])
def test_the_exact_player_knows_parabolas_and_plain_layers(overrides: dict, knots: int) -> None:  # type: ignore[type-arg]
    torch.manual_seed(0)
    network = QNetwork(Layout(50), NetworkConfig(hidden=(32,), spinner_knots=knots, **overrides))
    with torch.no_grad():
        network.spinner_head.weight.mul_(20)
    codes = np.random.default_rng(0).integers(-127, 128, (400, 50)).astype(np.int8)
    legal = np.arange(400) % 2 == 0
    spin, buttons = DeterministicNetwork(network).act(codes, legal)
    with torch.no_grad():
        answer = network(torch.from_numpy(codes).float() / 127)
    choice = choose(network, answer, pair_mask(torch.from_numpy(legal)))
    same = (buttons == choice.pair.numpy()) & (spin == to_counts(choice.position).numpy())
    assert same.mean() > 0.99
    places = np.round(np.linspace(-31, 31, knots)).astype(int)
    between = ~np.isin(spin, places)
    assert between.any() or "spinner_interpolation" not in overrides


# --- schedules ----------------------------------------------------------------------------------


def test_shapes_of_a_schedule() -> None:
    cosine = Ramp(1.0, 0.2, 100, 300, "cosine")
    assert [cosine(s) for s in (0, 100, 200, 300, 999)] == pytest.approx([1, 1, 0.6, 0.2, 0.2])
    assert cosine(150) == pytest.approx(0.2 + 0.8 * 0.5 * (1 + math.cos(math.pi / 4)))
    assert Ramp(1.0, 0.2, 100, 300, "constant")(10_000) == 1.0
    warm = Ramp(1.0, 0.0, 50, 150, "linear", 10)
    assert [warm(s) for s in (0, 4, 9, 50, 100)] == pytest.approx([0.1, 0.5, 1.0, 1.0, 0.5])


def test_the_rate_of_the_optimiser_is_the_schedules() -> None:
    config = load_config(
        None,
        ["run.steps=1000", "learner.learning_rate_schedule=cosine", "network.hidden=[8]",
         "learner.learning_rate_warm_up=100", "learner.learning_rate_hold=0.1"],
    )  # fmt: skip
    schedule = Schedules.of(config).learning_rate
    assert (schedule.shape, schedule.warm_up, schedule.first) == ("cosine", 100, 100)
    assert Schedules.from_dict(Schedules.of(config).to_dict()) == Schedules.of(config)
    learner = Learner(LAYOUT, config, torch.device("cpu"))
    for step in (0, 500, 999):
        learner.update(random_batch(np.random.default_rng(0), 8), schedule(step), 0.0)
        assert learner.optimizer.param_groups[0]["lr"] == schedule(step)

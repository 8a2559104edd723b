"""Targets, losses, accumulation, target network and metrics against hand-computed numbers."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from replay_rows import make_batch
from stepping import SGD, Stepping
from torch import Tensor, nn

from tempest_agent.agent.curriculum.schedules import Ramp, Schedules
from tempest_agent.agent.inference.greedy import choose
from tempest_agent.agent.learner.adamw import AdamW
from tempest_agent.agent.learner.imitation import cross_entropy, gate, resemblance
from tempest_agent.agent.learner.learner import Learner
from tempest_agent.agent.learner.metrics import Metrics
from tempest_agent.agent.learner.target_network import Followers
from tempest_agent.agent.learner.targets import clamp_target, n_step_target
from tempest_agent.agent.learner.update_metrics import return_bound
from tempest_agent.agent.networks.actions import pair_mask, to_counts, to_unit
from tempest_agent.agent.networks.interpolation import interpolate, nearest_knot
from tempest_agent.agent.networks.layout import Layout
from tempest_agent.agent.networks.q_network import Heads, QNetwork
from tempest_agent.agent.networks.value_distributions import huber_loss, squared_loss
from tempest_agent.agent.replay.rows import AGENT, EXPERT
from tempest_agent.config import Config, NetworkConfig, load_config

pytestmark = pytest.mark.xdist_group("compiler")

CPU = torch.device("cpu")


def tensor(*values: float) -> Tensor:
    return torch.tensor(values)


def small(*overrides: str) -> Config:
    return load_config(None, ["network.hidden=[16]", "learner.precision=float32", *overrides])


# --- the spinner axis ---------------------------------------------------------------------------


def test_values_between_knots_lie_on_straight_lines() -> None:
    values = tensor(0.0, 10.0, 4.0).expand(5, 3)
    position = tensor(-1.0, -0.5, 0.0, 0.25, 1.0)
    torch.testing.assert_close(interpolate(values, position), tensor(0.0, 5.0, 10.0, 8.5, 4.0))


def test_gradient_to_the_position_is_the_slope_of_its_segment() -> None:
    position = tensor(-0.5, 0.5).requires_grad_()
    interpolate(tensor(0.0, 10.0, 4.0).expand(2, 3), position).sum().backward()  # type: ignore[no-untyped-call]
    assert position.grad is not None
    torch.testing.assert_close(position.grad, tensor(10.0, -6.0))


def test_positions_snap_to_the_nearest_knot() -> None:
    torch.testing.assert_close(nearest_knot(tensor(-0.9, 0.2, 0.3), 5), tensor(-1.0, 0.0, 0.5))


def test_counts_and_positions_are_each_others_inverse() -> None:
    counts = torch.arange(-31, 32, dtype=torch.int8)
    torch.testing.assert_close(to_counts(to_unit(counts)), counts)


# --- choosing and bootstrapping -----------------------------------------------------------------


def network_with(values: Tensor, proposals: Tensor, head: str = "functional") -> QNetwork:
    """A network of three knots whose proposals are ``proposals`` everywhere."""
    network = QNetwork(Layout(2), NetworkConfig(hidden=(4,), spinner_knots=3, spinner_head=head))
    with torch.no_grad():
        network.spinner_head.weight.zero_()
        network.spinner_head.bias.copy_(torch.atanh(proposals))
    return network


def heads(values: list[list[float]]) -> Heads:
    return Heads(torch.tensor([values]), torch.zeros(1, 4))


def test_the_best_legal_candidate_is_chosen() -> None:
    network = network_with(torch.zeros(1), tensor(0.5, 0.5, 0.5, 0.5))
    answer = heads([[0.0, 1.0, 2.0], [5.0, 0.0, 0.0], [9.0, 9.0, 9.0], [0.0, 0.0, 0.0]])
    allowed = choose(network, answer, torch.ones(1, 4, dtype=torch.bool))
    assert (allowed.pair.item(), allowed.value.item()) == (2, 9.0)
    assert allowed.position.item() == pytest.approx(0.5)  # the proposal wins among equals
    masked = choose(network, answer, pair_mask(torch.tensor([False])))
    assert (masked.pair.item(), masked.position.item(), masked.value.item()) == (1, -1.0, 5.0)


def test_without_a_continuous_head_only_knots_are_candidates() -> None:
    network = network_with(torch.zeros(1), tensor(0.5, 0.5, 0.5, 0.5), "knots")
    answer = heads([[0.0, 1.0, 2.0], [3.0, 3.0, 3.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    choice = choose(network, answer, torch.ones(1, 4, dtype=torch.bool))
    assert (choice.pair.item(), choice.position.item()) == (1, -1.0)


def test_regression_always_turns_as_proposed() -> None:
    network = network_with(torch.zeros(1), tensor(0.1, 0.2, 0.3, 0.4), "regression")
    answer = heads([[0.0], [3.0], [1.0], [2.0]])
    choice = choose(network, answer, torch.ones(1, 4, dtype=torch.bool))
    assert choice.pair.item() == 1
    assert choice.position.item() == pytest.approx(0.2)


def test_the_target_network_judges_the_online_networks_choice() -> None:
    network = network_with(torch.zeros(1), tensor(0.5, 0.5, 0.5, 0.5))
    judge = heads([[9.0, 9.0, 9.0], [0.0, 2.0, 4.0], [9.0] * 3, [9.0] * 3])
    assert network.numbers_at(judge, torch.tensor([1]), tensor(0.5)).item() == pytest.approx(3.0)


def test_termination_does_not_bootstrap_and_truncation_does() -> None:
    target = n_step_target(tensor(1.0, 1.0), tensor(0.0, 0.81), tensor(float("nan"), 10.0))
    torch.testing.assert_close(target, tensor(1.0, 9.1))


def test_clamped_targets_are_counted() -> None:
    target, below, above = clamp_target(tensor(-150.0, 50.0, 100.0, 101.0), 100.0)
    torch.testing.assert_close(target, tensor(-100.0, 50.0, 100.0, 100.0))
    assert below.tolist() == [1, 0, 0, 0]
    assert above.tolist() == [0, 0, 0, 1]


def test_no_return_exceeds_its_bound() -> None:
    assert return_bound(0.5, 0.99) == pytest.approx(50.0)
    rewards = np.full(5000, 0.5) * 0.99 ** np.arange(5000)
    assert rewards.sum() <= return_bound(0.5, 0.99)


# --- losses -------------------------------------------------------------------------------------


def test_value_losses_by_hand() -> None:
    predicted, target = tensor(0.0, 0.5, 3.0), tensor(0.0, 0.0, 0.0)
    torch.testing.assert_close(huber_loss(predicted, target), tensor(0.0, 0.125, 2.5))
    torch.testing.assert_close(squared_loss(predicted, target), tensor(0.0, 0.125, 4.5))


def test_resemblance_falls_with_the_spinner_distance() -> None:
    alike = resemblance(torch.tensor([3]), tensor(0.5), 3, width=0.5)[0]
    assert torch.equal(alike[:3], torch.zeros(3, 3))
    # 0 and 1 are equally near to 0.5 and are both right; -1 is three half-widths off.
    torch.testing.assert_close(alike[3], tensor(float(np.exp(-0.5 * (9 - 1))), 1.0, 1.0))


def test_cross_entropy_by_hand_sees_only_legal_pairs_and_no_state_value() -> None:
    values = torch.zeros(1, 4, 2)
    values[0, 1, 0] = 2.0
    alike = torch.zeros(1, 4, 2)
    alike[0, 1] = tensor(1.0, 0.5)
    legal = pair_mask(torch.tensor([False]))
    log_z = np.log(3 + np.exp(1.0))
    expected = -(2 / 3 * (1.0 - log_z) + 1 / 3 * (0.0 - log_z))
    for shift in (0.0, 50.0):
        loss = cross_entropy(values + shift, legal, alike, temperature=2.0)
        assert loss.item() == pytest.approx(expected, rel=1e-4)


def test_imitation_fades_as_the_student_catches_up() -> None:
    assert [gate(s, 200.0) for s in (None, 0.0, 50.0, 200.0, 500.0)] == [1, 1, 0.75, 0, 0]
    held = [gate(s, 200.0, floor=0.7) for s in (None, 50.0, 100.0, 200.0)]
    assert held == [1, 0.75, 0.7, 0.7]


# --- accumulation -------------------------------------------------------------------------------


def gradient(parts: list[int]) -> tuple[nn.Linear, Stepping, bool]:
    """One update of the same ten rows, cut into micro-batches of the given sizes."""
    torch.manual_seed(0)
    layer = nn.Linear(3, 1)
    rows, wanted = torch.randn(10, 3), torch.randn(10)
    stepping = Stepping(layer, SGD(layer.parameters(), lr=0.1), 0.5, "float32")
    losses, first = [], 0
    for size in parts:
        piece = slice(first, first + size)
        errors = layer(rows[piece]).squeeze(1) - wanted[piece]
        losses.append((errors.square().mean(), size / 10))
        first += size
    return layer, stepping, stepping.update(*losses)


def test_a_partial_last_micro_batch_counts_by_its_size() -> None:
    whole, _, _ = gradient([10])
    for parts in ([5, 5], [4, 4, 2], [1] * 10):
        split, _, stepped = gradient(parts)
        assert stepped
        torch.testing.assert_close(split.weight, whole.weight)
        torch.testing.assert_close(split.bias, whole.bias)


def test_the_norm_is_that_before_clipping_and_the_step_is_clipped() -> None:
    layer, stepping, _ = gradient([10])
    torch.manual_seed(0)
    before = nn.Linear(3, 1)
    moved = torch.cat([(a - b).flatten() for a, b in zip(
        before.parameters(), layer.parameters(), strict=True)])  # fmt: skip
    assert stepping.norm.item() > 0.5
    assert moved.norm().item() == pytest.approx(0.1 * 0.5, rel=1e-3)


@pytest.mark.parametrize("precision", ["float32", "float16"])
def test_an_infinite_gradient_skips_the_step_and_is_counted(precision: str) -> None:
    layer = nn.Linear(2, 1)
    before = copy.deepcopy(layer.state_dict())
    optimizer = AdamW(layer.parameters(), lr=0.1, fused=True)
    stepping = Stepping(layer, optimizer, 10.0, precision)
    scale = stepping.precision.scaler.get_scale()
    assert not stepping.update((layer(torch.ones(1, 2)).sum() * float("inf"), 1.0))
    assert stepping.precision.skipped == 1
    for name, value in layer.state_dict().items():
        assert torch.equal(value, before[name])
    if precision == "float16":
        assert stepping.precision.scaler.get_scale() == scale / 2
    assert stepping.update((layer(torch.ones(1, 2)).sum(), 1.0))
    assert not torch.equal(layer.weight, before["weight"])


def test_a_skipped_update_moves_no_follower() -> None:
    learner = Learner(Layout(3), small(), CPU)
    batch = make_batch(4, Layout(3))
    batch = batch._replace(returns=np.array([np.inf, 0, 0, 0], np.float32))
    batch = batch._replace(weights=np.full(4, np.inf, np.float32))
    average = copy.deepcopy(learner.followers.average.state_dict())
    learner.update(batch, 1e-3, 0.0)
    assert (learner.updates, learner.precision.skipped) == (0, 1)
    for name, value in learner.followers.average.state_dict().items():
        assert torch.equal(value, average[name])


def test_micro_batches_give_the_same_update() -> None:
    states = []
    for count in (1, 3):
        torch.manual_seed(0)
        config = small(f"learner.gradient_accumulation_steps={count}", "learner.batch_size=8")
        learner = Learner(Layout(3), config, CPU)
        batch = make_batch(8, Layout(3))._replace(labelled=np.ones(8, np.bool_))
        errors = learner.update(batch, 1e-3, 1.0)
        states.append((errors, learner.grad_norm))
    np.testing.assert_allclose(states[0][0], states[1][0], rtol=1e-5)
    torch.testing.assert_close(states[0][1], states[1][1])


# --- followers and schedules --------------------------------------------------------------------


def move(followers: Followers[nn.Linear], update: int) -> None:
    followers.move_average(followers.average_share(update))
    followers.move_target(update)


def test_target_is_copied_on_time_and_the_average_trails() -> None:
    online = nn.Linear(1, 1, bias=False)
    followers = Followers(online, tau=1.0, interval=3, ema_decay=0.5)
    start = online.weight.item()
    expected = start
    for update in range(1, 7):
        with torch.no_grad():
            online.weight.fill_(float(update))
        move(followers, update)
        decay = min(0.5, (1 + update) / (10 + update))
        expected = decay * expected + (1 - decay) * update
        assert followers.average.weight.item() == pytest.approx(expected)
        last_copy = update - update % 3
        assert followers.target.weight.item() == (float(last_copy) if last_copy else start)


def test_soft_updates_take_a_share() -> None:
    online = nn.Linear(1, 1, bias=False)
    followers = Followers(online, tau=0.25, interval=1, ema_decay=0.9)
    start = online.weight.item()
    with torch.no_grad():
        online.weight.fill_(2.0)
    move(followers, 1)
    assert followers.target.weight.item() == pytest.approx(0.75 * start + 0.25 * 2.0)


def test_schedules_are_functions_of_the_decisions_played() -> None:
    line = Ramp(1.0, 0.2, 100, 200)
    assert [line(s) for s in (0, 100, 150, 200, 999)] == pytest.approx([1.0, 1.0, 0.6, 0.2, 0.2])
    config = small("run.steps=1000", "learner.learning_rate_hold=0.5")
    schedules = Schedules.of(config)
    assert schedules.learning_rate == Ramp(5e-4, 2.5e-5, 500, 1000)
    assert Schedules.from_dict(schedules.to_dict()) == schedules


# --- one whole update ---------------------------------------------------------------------------


def test_metrics_of_an_update_equal_a_calculation_by_hand() -> None:
    layout = Layout(5)
    torch.manual_seed(1)
    learner = Learner(layout, small("learner.target_clip=0.8"), CPU)
    batch = make_batch(12, layout)
    online = copy.deepcopy(learner.online)
    errors = learner.update(batch, 1e-3, 0.0)
    figures = learner.metrics.read()

    def observe(codes: np.ndarray[tuple[int, int], np.dtype[np.int8]]) -> Tensor:
        return torch.from_numpy(codes).float() / 127

    with torch.no_grad():
        values = online(observe(batch.codes)).values
        following = online(observe(batch.next_codes)).values
        predicted, targets = [], []
        for i in range(12):
            where = tensor(batch.spin[i] / 31)
            pair = int(batch.buttons[i])
            predicted.append(interpolate(values[i, pair : pair + 1], where).item())
            legal = 4 if batch.next_zap_legal[i] else 2
            # Online and target network are still the same, so the best value is the bootstrap.
            best = following[i, :legal].max().item()
            targets.append(batch.returns[i] + batch.discounts[i] * best)
    clamped = np.clip(targets, -0.8, 0.8)
    each = np.array([huber_loss(tensor(p), tensor(c)).item() for p, c in zip(
        predicted, clamped, strict=True)])  # fmt: skip
    np.testing.assert_allclose(errors, np.abs(np.array(predicted) - clamped), rtol=1e-4, atol=1e-6)
    assert figures["loss"] == pytest.approx(each.mean(), rel=1e-4)
    assert figures["loss_agent"] == pytest.approx(each[batch.driver == AGENT].mean(), rel=1e-4)
    assert figures["loss_expert"] == pytest.approx(each[batch.driver == EXPERT].mean(), rel=1e-4)
    assert figures["q_mean"] == pytest.approx(np.mean(predicted), rel=1e-4)
    assert figures["q_max"] == pytest.approx(max(predicted), rel=1e-4)
    assert figures["q_min"] == pytest.approx(min(predicted), rel=1e-4)
    own = np.array(predicted)[batch.driver == AGENT]
    assert figures["q_agent"] == pytest.approx(own.mean(), rel=1e-4)
    assert figures["target_mean"] == pytest.approx(np.mean(targets), rel=1e-4)
    assert figures["target_max"] == pytest.approx(np.abs(targets).max(), rel=1e-4)
    hits = np.count_nonzero(np.abs(targets) > 0.8)
    assert 0 < hits < 12
    assert figures["target_clip_share"] == pytest.approx(hits / 12)
    below = np.count_nonzero(np.array(targets) < -0.8)
    assert 0 < below < hits
    assert figures["target_clip_low_share"] == pytest.approx(below / 12)
    assert figures["target_clip_high_share"] == pytest.approx((hits - below) / 12)
    assert figures["effective_n"] == pytest.approx(batch.horizons.mean())
    assert figures["grad_norm"] == pytest.approx(learner.grad_norm.item())
    assert figures["grad_norm"] > 0
    parts = [figures[f"grad_norm_{part}"] for part in ("encoder", "value", "spinner")]
    assert min(parts) > 0
    assert np.linalg.norm(parts) == pytest.approx(figures["grad_norm"], rel=1e-5)
    assert learner.metrics.read() == {}


def test_running_figures_of_two_updates() -> None:
    metrics = Metrics()
    for total, count in ((3.0, 2.0), (5.0, 2.0)):
        metrics.mean("mean", tensor(total).sum(), count)
        metrics.highest("high", tensor(total).sum())
        metrics.lowest("low", tensor(total).sum())
    metrics.mean("nothing", torch.zeros(()), torch.zeros(()))
    assert metrics.read() == {"mean": 2.0, "high": 5.0, "low": 3.0}


def test_labels_that_are_illegal_teach_nothing() -> None:
    learner = Learner(Layout(5), small("learner.spinner_weight=0"), CPU)
    batch = make_batch(6, Layout(5))._replace(
        labelled=np.ones(6, np.bool_),
        label_buttons=np.full(6, 3, np.uint8),
        zap_legal=np.zeros(6, np.bool_),
    )
    learner.update(batch, 1e-3, 1.0)
    assert "imitation_loss" not in learner.metrics.read()


def test_imitation_raises_the_teachers_action() -> None:
    torch.manual_seed(0)
    layout = Layout(5)
    learner = Learner(layout, small("learner.imitation_weight=1"), CPU)
    batch = make_batch(32, layout)._replace(labelled=np.ones(32, np.bool_))
    for _ in range(300):
        learner.update(batch, 3e-3, 1.0)
    spin, buttons = learner.act(batch.codes, batch.zap_legal)
    assert np.mean(buttons == batch.label_buttons) > 0.9
    near = np.abs(spin.astype(int) - batch.label_spin) <= 5
    assert np.mean(near) > 0.8


# --- networks -----------------------------------------------------------------------------------


@pytest.mark.parametrize("encoder", ["mlp", "lanes"])
@pytest.mark.parametrize("dueling", [True, False])
def test_shapes_and_the_mean_advantage(encoder: str, dueling: bool) -> None:
    layout = Layout(16 * 4 + 3, lane_features=4, lane_exists=0)
    settings = NetworkConfig(
        encoder=encoder, hidden=(8,), lane_width=6, dueling=dueling, spinner_knots=5
    )
    network = QNetwork(layout, settings)
    answer = network(torch.rand(7, layout.num_features))
    assert answer.values.shape == (7, 4, 5)
    proposals = network.proposals(answer.latent)
    assert proposals is not None
    assert proposals.shape == (7, 4)
    assert proposals.abs().max() <= 1


def test_lanes_that_do_not_exist_do_not_matter() -> None:
    layout = Layout(16 * 4, lane_features=4, lane_exists=0)
    network = QNetwork(layout, NetworkConfig(encoder="lanes", hidden=(8,), lane_width=6))
    lanes = torch.rand(1, 16, 4)
    lanes[0, :, 0] = 1.0
    lanes[0, 9, 0] = 0.0
    other = lanes.clone()
    other[0, 9, 1:] = 5.0
    with torch.no_grad():
        assert torch.equal(network(lanes.flatten(1)).values, network(other.flatten(1)).values)


def test_proposals_do_not_shape_the_encoding() -> None:
    network = QNetwork(Layout(3), NetworkConfig(hidden=(8,)))
    proposals = network.proposals(network(torch.rand(2, 3)).latent)
    assert proposals is not None
    proposals.sum().backward()  # type: ignore[no-untyped-call]
    assert all(p.grad is None for p in network.encoder.parameters())
    assert network.spinner_head.weight.grad is not None

"""The fixed-order network: equal to plain float32 bit by bit, and to torch in what it decides."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from tempest_agent.agent.inference.deterministic_arithmetic import (
    cosines,
    dense,
    normalise,
    softmax_means,
    squash,
)
from tempest_agent.agent.inference.deterministic_network import (
    DeterministicLanes,
    DeterministicNetwork,
)
from tempest_agent.agent.inference.greedy import choose
from tempest_agent.agent.networks.actions import pair_mask, to_counts
from tempest_agent.agent.networks.layout import Layout
from tempest_agent.agent.networks.q_network import QNetwork
from tempest_agent.config import LearnerConfig, NetworkConfig
from tempest_agent.envs.machine.memory import LANES

FLAT = Layout(100)
RING = Layout(LANES * 5 + 20 + LANES * 3, lane_features=5, forecast_features=3)


def sparse_codes(rows: int, features: int, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    codes = random.integers(-127, 128, (rows, features))
    return (codes * (random.random((rows, features)) < 0.2)).astype(np.int8)


def make_network(encoder: str = "mlp", loss: str = "huber", **settings: object) -> QNetwork:
    torch.manual_seed(0)
    config = NetworkConfig(encoder=encoder, hidden=(64, 32), lane_width=16, **settings)  # type: ignore[arg-type]
    learner = LearnerConfig(loss=loss, value_bins=21, quantile_samples=8)
    network = QNetwork(RING if encoder == "lanes" else FLAT, config, learner).eval()
    with torch.no_grad():
        # Untrained heads say nearly the same of all actions.
        network.spinner_head.weight.mul_(20)
        network.value_head.weight.mul_(30)
    return network


def test_sums_are_plain_float32_without_fused_steps() -> None:
    random = np.random.default_rng(0)
    inputs = random.normal(size=(5, 40)).astype(np.float32)
    inputs[random.random(inputs.shape) < 0.5] = 0
    weights = random.normal(size=(40, 33)).astype(np.float32)
    bias = random.normal(size=33).astype(np.float32)
    out = np.empty((5, 33), np.float32)
    dense(inputs, weights, bias, out)
    expected = np.tile(bias, (5, 1))
    for row in range(5):
        for i in range(40):
            if inputs[row, i]:
                expected[row] = expected[row] + inputs[row, i] * weights[i]
    np.testing.assert_array_equal(out, expected)


def test_normalisation_is_torchs() -> None:
    values = np.random.default_rng(0).normal(3, 2, (4, 50)).astype(np.float32)
    layer = torch.nn.LayerNorm(50)
    with torch.no_grad():
        layer.weight.uniform_(-1, 1)
        layer.bias.uniform_(-1, 1)
        expected = torch.relu(layer(torch.from_numpy(values.copy())))
        normalise(values, layer.weight.numpy(), layer.bias.numpy(), layer.eps)
    np.testing.assert_allclose(values, expected.numpy(), atol=1e-5)


def test_own_functions_are_those_of_the_mathematical_library() -> None:
    raw = np.array([[0.0, 1e-4, -0.3, 1.0, -2.5, 19.0, -800.0]], np.float32)
    out = np.empty(raw.shape)
    squash(raw, out)
    expected = [math.tanh(x) for x in raw[0].tolist()]
    np.testing.assert_allclose(out[0], expected, rtol=0, atol=3e-16)
    logits = np.random.default_rng(0).normal(0, 30, (50, 7))
    logits[0] = (0, -745, -708, -707.9, -2000, -1e300, 0)
    means = np.empty(50)
    softmax_means(logits, means)
    chance = np.exp(logits - logits.max(axis=1, keepdims=True))
    wanted = chance @ np.linspace(-1, 1, 7) / chance.sum(axis=1)
    np.testing.assert_allclose(means, wanted, rtol=1e-14, atol=1e-15)
    quarters = np.arange(-100, 4000)
    np.testing.assert_allclose(
        cosines(quarters, 37), [math.cos(math.pi / 2 * q / 37) for q in quarters], atol=1e-13
    )


def agreement(network: QNetwork, features: int) -> tuple[float, np.ndarray, np.ndarray]:
    """Share of rows decided as by torch, and the exact decisions."""
    codes = sparse_codes(500, features)
    codes[:, : 5 * LANES : 5] = np.abs(codes[:, : 5 * LANES : 5])
    legal = np.arange(500) % 2 == 0
    spin, buttons = DeterministicNetwork(network).act(codes, legal)
    with torch.no_grad():
        answer = network(torch.from_numpy(codes).float() / 127)
        choice = choose(network, answer, pair_mask(torch.from_numpy(legal)))
    same = (buttons == choice.pair.numpy()) & (spin == to_counts(choice.position).numpy())
    assert (buttons[~legal] < 2).all()
    return float(same.mean()), spin, buttons


@pytest.mark.parametrize("encoder", ["mlp", "lanes"])
@pytest.mark.parametrize("head", ["functional", "knots", "regression"])
@pytest.mark.parametrize("dueling", [True, False])
def test_decisions_are_those_of_the_network(encoder: str, head: str, dueling: bool) -> None:
    network = make_network(encoder, spinner_head=head, dueling=dueling)
    same, _, buttons = agreement(network, 100)
    # Two actions that are worth the same to the last bits may be told apart differently.
    assert same > 0.99
    assert len(np.unique(buttons)) >= 3


@pytest.mark.parametrize("loss", ["c51", "iqn"])
@pytest.mark.parametrize("encoder", ["mlp", "lanes"])
@pytest.mark.parametrize("dueling", [True, False])
@pytest.mark.parametrize("line", ["linear", "quadratic"])
def test_distributions_decide_as_the_network_does(
    loss: str, encoder: str, dueling: bool, line: str
) -> None:
    network = make_network(encoder, loss, dueling=dueling, spinner_interpolation=line)
    same, spin, buttons = agreement(network, 100)
    assert same > 0.99
    assert len(np.unique(buttons)) >= 3
    assert len(np.unique(spin)) >= 3


def test_the_ring_is_closed_and_missing_lanes_say_nothing() -> None:
    """The same first layer, written down lane by lane in float32."""
    network = make_network("lanes", layer_norm=False)
    player = DeterministicNetwork(network)
    codes = sparse_codes(6, 100)
    codes[:, : 5 * LANES : 5] = np.arange(LANES) % 5 > 0
    changed = codes.copy()
    changed[:, 1:5] += 1
    changed[:, 26:30] += 1  # Lanes 0 and 5 do not exist.
    legal = np.ones(6, np.bool_)
    for one, other in zip(player.act(codes, legal), player.act(changed, legal), strict=True):
        np.testing.assert_array_equal(one, other)
    observation = codes.astype(np.float32) / np.float32(127)
    lanes = observation[:, : 5 * LANES].reshape(6, LANES, 5)
    exists = lanes[:, :, 0] > 0
    mix = network.encoder.first.mix  # type: ignore[union-attr]
    weight, bias = (t.detach().numpy() for t in (mix.weight, mix.bias))
    expected = np.zeros((6, LANES, 16), np.float32)
    for row in range(6):
        for lane in np.flatnonzero(exists[row]):
            total = bias.copy()
            for side in range(3):
                beside = (lane + side - 1) % LANES
                for i in range(5):
                    if exists[row, beside]:
                        total += weight[:, side * 5 + i] * lanes[row, beside, i]
            expected[row, lane] = np.maximum(total, 0)
    encoder = DeterministicLanes(network.encoder)  # type: ignore[arg-type]
    np.testing.assert_array_equal(encoder.lanes(observation, layers=1), expected)


@pytest.mark.parametrize(
    ("encoder", "loss"), [("mlp", "huber"), ("lanes", "huber"), ("lanes", "c51"), ("mlp", "iqn")]
)
def test_a_decision_does_not_depend_on_the_batch(encoder: str, loss: str) -> None:
    player = DeterministicNetwork(make_network(encoder, loss))
    codes, legal = sparse_codes(97, 100), np.ones(97, np.bool_)
    together = player.act(codes, legal)
    for row in range(97):
        alone = player.act(codes[row : row + 1], legal[row : row + 1])
        assert (alone[0][0], alone[1][0]) == (together[0][row], together[1][row])


KERNELS = """
import hashlib, numpy as np
from tempest_agent.agent.inference.deterministic_arithmetic import (
    dense, normalise, softmax_means, squash,
)
random = np.random.default_rng(0)
normal = lambda *shape: random.normal(size=shape).astype(np.float32)
hidden, means, squashed = np.empty((40, 61), np.float32), np.empty(40), np.empty((40, 61))
dense(normal(40, 33), normal(33, 61), normal(61), hidden)
normalise(hidden, normal(61), normal(61), 1e-5)
softmax_means(hidden.astype(np.float64) * 9, means)
squash(hidden, squashed)
digest = hashlib.sha256(hidden.tobytes() + means.tobytes() + squashed.tobytes())
print(digest.hexdigest())
"""


def test_another_processor_gives_the_same_bits() -> None:
    """Compiled for the plainest processor of this kind: no wide vectors, no fused steps."""
    digests = set()
    for processor in ("", "generic"):
        environment = os.environ | ({"NUMBA_CPU_NAME": processor} if processor else {})
        environment |= {"NUMBA_CPU_FEATURES": ""} if processor else {}
        done = subprocess.run(
            [sys.executable, "-c", KERNELS], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        digests.add(done.stdout)
    assert len(digests) == 1

"""The fixed-order network: equal to plain float32 bit by bit, and to torch in what it decides."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tempest_agent.agent.actions import pair_mask, to_counts
from tempest_agent.agent.exact import ExactMlp, dense, normalise
from tempest_agent.agent.networks import Layout, QNetwork
from tempest_agent.agent.targets import choose
from tempest_agent.config import NetworkConfig


def sparse_codes(rows: int, features: int, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    codes = random.integers(-127, 128, (rows, features))
    return (codes * (random.random((rows, features)) < 0.2)).astype(np.int8)


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


@pytest.mark.parametrize("head", ["functional", "knots", "regression"])
@pytest.mark.parametrize("dueling", [True, False])
def test_decisions_are_those_of_the_network(head: str, dueling: bool) -> None:
    torch.manual_seed(0)
    settings = NetworkConfig(hidden=(64, 32), spinner_head=head, dueling=dueling)
    network = QNetwork(Layout(100), settings)
    with torch.no_grad():
        network.spinner_head.weight.mul_(20)
    codes = sparse_codes(500, 100)
    legal = np.arange(500) % 2 == 0
    spin, buttons = ExactMlp(network).act(codes, legal)
    with torch.no_grad():
        answer = network(torch.from_numpy(codes).float() / 127)
    choice = choose(network, answer, pair_mask(torch.from_numpy(legal)))
    same = (buttons == choice.pair.numpy()) & (spin == to_counts(choice.position).numpy())
    # Two actions that are worth the same to the last bits may be told apart differently.
    assert same.mean() > 0.99
    assert (buttons[~legal] < 2).all()
    assert len(np.unique(buttons)) >= 3


def test_a_decision_does_not_depend_on_the_batch() -> None:
    torch.manual_seed(0)
    player = ExactMlp(QNetwork(Layout(100), NetworkConfig(hidden=(64, 32))))
    codes, legal = sparse_codes(97, 100), np.ones(97, np.bool_)
    together = player.act(codes, legal)
    for row in range(97):
        alone = player.act(codes[row : row + 1], legal[row : row + 1])
        assert (alone[0][0], alone[1][0]) == (together[0][row], together[1][row])


def test_other_encoders_are_refused() -> None:
    layout = Layout(16 * 4, lane_features=4)
    with pytest.raises(TypeError, match="LanesEncoder"):
        ExactMlp(QNetwork(layout, NetworkConfig(encoder="lanes", hidden=(8,), lane_width=4)))

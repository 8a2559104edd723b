"""The student with a fixed order of additions, so that its play is the same everywhere.

A matrix library adds up in an order that depends on the processor and on the size of the batch,
and the last bit of a value decides between two nearly equal actions: over millions of steps games
diverge.  Here every sum is taken input by input in plain float32 (and float64 for means, variances
and everything after the last layer), see ``deterministic_arithmetic``.  Inputs that are 0, nine of
ten in an observation and about half after each ReLU, are skipped, which makes this faster than a
dense product on a CPU.

What cannot change which action is best is left out:

* with plain values the state value of the dueling head, which all actions share;
* with ``c51`` the scale of the bins: they are taken to lie between -1 and 1;
* with ``iqn`` the single quantiles.  At the even fractions of play a value is their mean, and as
  everything after ``FractionLayer`` is linear, the mean of its answers can go through once;
* the head that does not act: values where the policy chooses, the policy where values do.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tempest_agent.agent.networks.deadly_lanes import deadly_turns
from tempest_agent.agent.networks.encoders import LanesEncoder, MlpEncoder
from tempest_agent.agent.networks.landings import LANE_COUNTS, claw_place
from tempest_agent.agent.networks.lane_head import (
    HALVES,
    NODES,
    OFFSETS,
    LaneHead,
    lanes_in_reach,
)
from tempest_agent.agent.networks.layout import Layout
from tempest_agent.agent.networks.q_network import QNetwork
from tempest_agent.agent.networks.value_distributions import COSINES, FractionLayer
from tempest_agent.envs.machine.inputs import BUTTON_PAIRS, SPINNER_MAX, ZAP
from tempest_agent.envs.machine.memory import LANES

from .deterministic_arithmetic import (
    Doubles,
    Floats,
    between,
    cosines,
    dense,
    normalise,
    pick,
    softmax_means,
    squash,
    surround,
)


class _Layer:
    """Linear, LayerNorm (unless left out) and, where ``rectify``, ReLU."""

    def __init__(self, linear: nn.Linear, norm: nn.Module | None, rectify: bool = True) -> None:
        self.weights, self.bias = _floats(linear.weight.T), _floats(linear.bias)
        self.rectify = rectify
        self.norm: tuple[Floats, Floats, float] | None = None
        if isinstance(norm, nn.LayerNorm):
            self.norm = _floats(norm.weight), _floats(norm.bias), norm.eps

    def __call__(self, inputs: Floats) -> Floats:
        out = np.empty((len(inputs), len(self.bias)), np.float32)
        dense(inputs, self.weights, self.bias, out)
        if self.norm is not None:
            normalise(out, *self.norm)
        elif self.rectify:
            np.maximum(out, 0.0, out=out)
        return out


class _Mlp:
    """An MLP encoder in the fixed order."""

    def __init__(self, encoder: MlpEncoder) -> None:
        layers = list(encoder.layers)
        self._layers = [
            _Layer(layer, after)
            for layer, after in pairwise(layers)
            if isinstance(layer, nn.Linear)
        ]

    def __call__(self, hidden: Floats) -> Floats:
        for layer in self._layers:
            hidden = layer(hidden)
        return hidden


class DeterministicLanes:
    """A lanes encoder in the fixed order."""

    def __init__(self, encoder: LanesEncoder) -> None:
        self._layout = encoder.layout
        self._mixes = [_Layer(one.mix, one.norm) for one in (encoder.first, encoder.second)]
        self._dense = _Mlp(encoder.dense)

    def __call__(self, observation: Floats) -> Floats:
        return self.summary(self.lanes(observation, len(self._mixes)), observation)

    def summary(self, lanes: Floats, observation: Floats) -> Floats:
        """Return the encoding ``(N, H)`` of lanes ``(N, 16, W)`` and the globals."""
        layout = self._layout
        others = observation[:, LANES * layout.lane_features : layout.forecast_start]
        flat = lanes.reshape(len(observation), -1)
        return self._dense(np.concatenate((flat, others), axis=1))

    def lanes(self, observation: Floats, layers: int) -> Floats:
        """Return each lane's encoding ``(N, 16, W)`` after the first ``layers`` convolutions."""
        rows, layout = len(observation), self._layout
        inside = LANES * layout.lane_features
        lanes = observation[:, :inside].reshape(rows, LANES, layout.lane_features)
        exists = (lanes[:, :, layout.lane_exists] > 0).astype(np.float32)[:, :, None]
        if layout.forecast_features:
            tail = observation[:, layout.forecast_start :]
            lanes = np.concatenate((lanes, tail.reshape(rows, LANES, -1)), axis=2)
        lanes = lanes * exists
        for mix in self._mixes[:layers]:
            around = np.empty((rows * LANES, 3 * lanes.shape[2]), np.float32)
            surround(lanes, around)
            lanes = mix(around).reshape(rows, LANES, -1) * exists
        return lanes


class _LaneValues:
    """A lane head in the fixed order, up to a constant that all actions share.

    The policy's logits are such values too.
    """

    def __init__(self, head: LaneHead, encoder: DeterministicLanes, layout: Layout) -> None:
        self._encoder, self._layout = encoder, layout
        self._state = _Layer(head.state, head.state_norm)
        self._mix = _Layer(head.mix, head.mix_norm)
        self._nodes = _Layer(head.nodes, None, rectify=False)
        self._weights = head.weights.cpu().numpy()

    def __call__(self, observation: Floats) -> tuple[Floats, Doubles]:
        """Return the encoding ``(N, H)`` and the values ``(N, 4, K, 1)``."""
        rows, reach = len(observation), len(OFFSETS)
        lanes = self._encoder.lanes(observation, 2)
        latent = self._encoder.summary(lanes, observation)
        # Whole numbers, which are the same on every machine.
        claw = claw_place(torch.from_numpy(observation), self._layout)
        near = lanes_in_reach(torch.from_numpy(lanes), claw).numpy()
        state = np.repeat(self._state(latent)[:, None], reach, axis=1)
        which = np.broadcast_to(np.eye(reach, dtype=np.float32), (rows, reach, reach))
        inputs = np.concatenate((near, state, which), axis=2).reshape(rows * reach, -1)
        nodes = self._nodes(self._mix(inputs)).astype(np.float64)
        nodes = nodes.reshape(rows, reach, BUTTON_PAIRS, NODES).transpose(0, 2, 1, 3)
        nodes = nodes.reshape(rows, BUTTON_PAIRS, reach * NODES)
        weights = self._weights[(claw % LANE_COUNTS).numpy()].astype(np.float64)
        values = np.zeros((rows, BUTTON_PAIRS, weights.shape[2]))
        for node in range(reach * NODES):
            values += nodes[:, :, node, None] * weights[:, None, node]
        return latent, (values / HALVES)[..., None]


class DeterministicNetwork:
    """Greedy decisions of a network.

    Args:
        network: its weights are copied.
    """

    def __init__(self, network: QNetwork) -> None:
        encoder = network.encoder
        self._encoder = (
            DeterministicLanes(encoder) if isinstance(encoder, LanesEncoder) else _Mlp(encoder)
        )
        self._knots = network.num_knots
        self._quadratic = network.interpolation == "quadratic"
        # Quantiles go through the head one by one, so it gives one number of each action.
        self._numbers = network.distribution.head_numbers
        self._dueling = network.dueling
        self._values = _Layer(network.value_head, None, rectify=False)
        self._layout, self._avoids_deadly = network.layout, network.avoids_deadly
        self._lanes: _LaneValues | None = None
        head = network.policy_head if network.acts_by_policy else network.lane_head
        if head is not None and isinstance(self._encoder, DeterministicLanes):
            self._lanes = _LaneValues(head, self._encoder, network.layout)
        self._fractions: Floats | None = None
        if network.fraction_layer is not None:
            self._fractions = _mean_answer(network.fraction_layer)
        self._proposals: _Layer | None = None
        if network.proposes and not network.acts_by_policy:
            self._proposals = _Layer(network.spinner_head, None, rectify=False)

    def act(
        self, codes: NDArray[np.int8], zap_legal: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int8], NDArray[np.uint8]]:
        """Return knob counts int8 and buttons uint8, ``(N,)`` each, for codes int8 ``(N, F)``."""
        rows = len(codes)
        observation = codes.astype(np.float32) / np.float32(127.0)
        knots: Floats | Doubles
        if self._lanes is not None:
            latent, knots = self._lanes(observation)
        else:
            latent = self._encoder(observation)
            knots = self._at_knots(latent if self._fractions is None else latent * self._fractions)
        positions = np.zeros((rows, BUTTON_PAIRS))
        proposed = np.full((rows, BUTTON_PAIRS), -np.inf)
        values = self._means(knots.astype(np.float64))
        if self._proposals is not None:
            squash(self._proposals(latent), positions)
            numbers = np.empty((rows, BUTTON_PAIRS, self._numbers))
            between(knots, positions, self._quadratic, numbers)
            proposed = self._means(numbers)
            if self._knots == 1:
                values = values[:, :, :0]
        legal = np.ones((rows, BUTTON_PAIRS), np.bool_)
        legal[:, ZAP:] = zap_legal[:, None]
        avoided = self._avoided(observation, positions)
        buttons, position = np.zeros(rows, np.uint8), np.zeros(rows)
        pick(values, proposed, positions, legal, *avoided, buttons, position)
        return _counts(position), buttons

    def _avoided(
        self, observation: Floats, positions: Doubles
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which knots ``(N, K)`` and which proposals ``(N, P)`` end in a deadly lane."""
        if not self._avoids_deadly:
            shape = len(observation), self._knots
            return np.zeros(shape, np.bool_), np.zeros(positions.shape, np.bool_)
        # Comparisons and whole numbers, which are the same on every machine.
        deadly = deadly_turns(torch.from_numpy(observation), self._layout).numpy()
        axis = _counts(np.linspace(-1.0, 1.0, self._knots)).astype(np.int64) + SPINNER_MAX
        own = _counts(positions).astype(np.int64) + SPINNER_MAX
        return np.ascontiguousarray(deadly[:, axis]), np.take_along_axis(deadly, own, axis=1)

    def _at_knots(self, hidden: Floats) -> Floats:
        """Return the numbers ``(N, 4, K, D)`` of the knots."""
        out = self._values(hidden)
        out = out.reshape(len(hidden), -1, self._numbers)
        if self._dueling:
            state, out = out[:, :1], out[:, 1:]
            if self._numbers > 1:
                # The mean over actions, one after the other.
                total = out[:, 0].copy()
                for action in range(1, out.shape[1]):
                    total += out[:, action]
                out = out + (state - (total / np.float32(out.shape[1]))[:, None])
        return np.ascontiguousarray(out).reshape(-1, BUTTON_PAIRS, self._knots, self._numbers)

    def _means(self, numbers: Doubles) -> Doubles:
        """Return values ``(...)`` of numbers ``(..., D)``, up to a constant all actions share."""
        if self._numbers == 1:
            return numbers[..., 0]
        out = np.empty(numbers.size // self._numbers)
        softmax_means(numbers.reshape(-1, self._numbers), out)
        return out.reshape(numbers.shape[:-1])


def _mean_answer(layer: FractionLayer) -> Floats:
    """Return the mean factor ``(H,)`` of ``layer`` on an encoding over its even fractions."""
    # The fraction (t + 1/2) / T with the wave w is the angle pi / 2 * w * (2 t + 1) / T.
    odd = 2 * np.arange(layer.count)[:, None] + 1
    described = cosines(odd * np.arange(1, COSINES + 1), layer.count)
    answers = _Layer(layer.linear, None)(described.astype(np.float32))
    total = np.zeros(answers.shape[1])
    for row in answers:
        total += row
    return (total / layer.count).astype(np.float32)


def _counts(position: Doubles) -> NDArray[np.int8]:
    """Return the nearest knob counts for positions in [-1, 1]."""
    return np.rint(position * SPINNER_MAX).astype(np.int8)


def _floats(tensor: Tensor) -> Floats:
    return np.ascontiguousarray(tensor.detach().cpu().numpy(), dtype=np.float32)

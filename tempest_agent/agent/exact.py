"""The MLP student run in one fixed order of additions, so its play is the same everywhere.

A matrix library adds up in an order that depends on the processor and on the size of the batch,
and the last bit of a value decides between two nearly equal actions: over millions of decisions
games come apart.  Here every sum is taken input by input in plain float32 (and float64 for means
and variances), which IEEE arithmetic makes equal on all machines and in any batch.  Inputs that
are 0, nine of ten in an observation and about half after each ReLU, are skipped, which makes this
faster than a dense product on a CPU.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from tempest_agent.envs.arcade.compiled import kernel, rule

from .actions import BUTTON_PAIRS, SPINNER_COUNTS
from .networks import MlpEncoder, QNetwork

Floats = NDArray[np.float32]


@kernel
def dense(inputs: Floats, weights: Floats, bias: Floats, out: Floats) -> None:
    """``out = bias + inputs @ weights``, row by row, input by input."""
    width = out.shape[1]
    used = np.empty(inputs.shape[1] + 4, np.int64)
    for row in range(inputs.shape[0]):
        count = 0
        for i in range(inputs.shape[1]):
            if inputs[row, i] != 0.0:
                used[count] = i
                count += 1
        total = out[row]
        for j in range(width):
            total[j] = bias[j]
        # Four inputs a pass save three of four trips of the sums to memory; their order stays.
        for at in range(0, count - 3, 4):
            a, b, c, d = used[at], used[at + 1], used[at + 2], used[at + 3]
            va, vb, vc, vd = inputs[row, a], inputs[row, b], inputs[row, c], inputs[row, d]
            wa, wb, wc, wd = weights[a], weights[b], weights[c], weights[d]
            for j in range(width):
                total[j] = (((total[j] + va * wa[j]) + vb * wb[j]) + vc * wc[j]) + vd * wd[j]
        for at in range(count - count % 4, count):
            va, wa = inputs[row, used[at]], weights[used[at]]
            for j in range(width):
                total[j] += va * wa[j]


@kernel
def normalise(values: Floats, gain: Floats, shift: Floats, epsilon: float) -> None:
    """LayerNorm and ReLU of every row, in place."""
    count = values.shape[1]
    for row in range(values.shape[0]):
        mean = 0.0
        for j in range(count):
            mean += values[row, j]
        mean /= count
        spread = 0.0
        for j in range(count):
            difference = values[row, j] - mean
            spread += difference * difference
        scale = 1.0 / np.sqrt(spread / count + epsilon)
        for j in range(count):
            value = (values[row, j] - mean) * scale * gain[j] + shift[j]
            values[row, j] = max(value, 0.0)


@rule
def _blended(values: Floats, first: int, knots: int, lower: int, weight: float) -> float:
    """``spinner.interpolate`` with parabolas, between the knots ``lower`` and ``lower + 1``."""
    b = np.float64(values[first + lower])
    c = np.float64(values[first + lower + 1])
    # Beyond each end the last parabola goes on by one knot.
    a, d = 3.0 * (b - c), 3.0 * (c - b)
    a = np.float64(values[first + lower - 1]) if lower > 0 else a + values[first + 2]
    d = (
        np.float64(values[first + lower + 2])
        if lower < knots - 2
        else d + values[first + lower - 1]
    )
    bend = 2.0 * a - 5.0 * b + 4.0 * c - d
    twist = 3.0 * (b - c) + d - a
    return b + 0.5 * weight * (c - a + weight * (bend + weight * twist))


@kernel
def pick(
    values: Floats,
    raw_proposals: Floats,
    proposes: bool,
    quadratic: bool,
    zap_legal: NDArray[np.bool_],
    spin: NDArray[np.int8],
    buttons: NDArray[np.uint8],
) -> None:
    """The best legal candidate of every row: proposals first, then knots (see ``targets``).

    ``values``: ``(N, 4 * K)``; a constant added to a row changes nothing.
    """
    knots = values.shape[1] // BUTTON_PAIRS
    for row in range(values.shape[0]):
        best = -np.inf
        position = 0.0
        for pair in range(BUTTON_PAIRS):
            if pair >= 2 and not zap_legal[row]:
                continue
            first = pair * knots
            if proposes:
                proposed = np.tanh(np.float64(raw_proposals[row, pair]))
                place = (proposed + 1.0) * 0.5 * (knots - 1)
                lower = min(int(place), max(knots - 2, 0))
                if quadratic and knots > 2:
                    value = _blended(values[row], first, knots, lower, place - lower)
                else:
                    value = np.float64(values[row, first + lower])
                    if knots > 1:
                        rise = values[row, first + lower + 1] - value
                        value += (place - lower) * rise
                if value > best:
                    best, position = value, proposed
                    buttons[row] = pair
            if knots > 1:
                for knot in range(knots):
                    value = np.float64(values[row, first + knot])
                    if value > best:
                        best, position = value, 2.0 * knot / (knots - 1) - 1.0
                        buttons[row] = pair
        spin[row] = np.int8(np.rint(position * SPINNER_COUNTS))


class ExactMlp:
    """Greedy decisions of a network whose encoder is an MLP.

    Args:
        network: its weights are copied.
    """

    def __init__(self, network: QNetwork) -> None:
        if not self.fits(network) or not isinstance(network.encoder, MlpEncoder):
            raise TypeError(
                f"{type(network.encoder).__name__} with {type(network.distribution).__name__} has "
                "no exact form; use MlpEncoder with plain values"
            )
        self._layers: list[tuple[Floats, Floats, tuple[Floats, Floats, float] | None]] = []
        layers = list(network.encoder.layers)
        for layer, after in pairwise(layers):
            if isinstance(layer, nn.Linear):
                norm = None
                if isinstance(after, nn.LayerNorm):
                    norm = _floats(after.weight), _floats(after.bias), after.eps
                self._layers.append((_floats(layer.weight.T), _floats(layer.bias), norm))
        # The state value is the same for all actions and cannot change the choice.
        first = int(network.dueling)
        weight, bias = network.value_head.weight[first:], network.value_head.bias[first:]
        self._values = _floats(weight.T), _floats(bias)
        self._proposals = _floats(network.spinner_head.weight.T), _floats(network.spinner_head.bias)
        self._proposes = network.proposes
        self._quadratic = network.interpolation == "quadratic"

    @staticmethod
    def fits(network: QNetwork) -> bool:
        """Whether ``network`` has an exact form."""
        return isinstance(network.encoder, MlpEncoder) and network.distribution.is_plain

    def act(
        self, codes: NDArray[np.int8], zap_legal: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int8], NDArray[np.uint8]]:
        """Knob counts int8 ``(N,)`` and buttons uint8 ``(N,)`` for codes int8 ``(N, F)``."""
        hidden = codes.astype(np.float32) / np.float32(127.0)
        for weights, bias, norm in self._layers:
            hidden = _dense(hidden, weights, bias)
            if norm is None:
                np.maximum(hidden, 0.0, out=hidden)
            else:
                normalise(hidden, *norm)
        spin = np.zeros(len(codes), np.int8)
        buttons = np.zeros(len(codes), np.uint8)
        pick(
            _dense(hidden, *self._values),
            _dense(hidden, *self._proposals),
            self._proposes,
            self._quadratic,
            zap_legal,
            spin,
            buttons,
        )
        return spin, buttons


def _dense(inputs: Floats, weights: Floats, bias: Floats) -> Floats:
    out = np.empty((len(inputs), len(bias)), np.float32)
    dense(inputs, weights, bias, out)
    return out


def _floats(tensor: Tensor) -> Floats:
    return np.ascontiguousarray(tensor.detach().cpu().numpy(), dtype=np.float32)

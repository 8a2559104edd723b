"""The gradient of the loss without autograd: plain values, straight lines between knots, a CPU.

Small networks take most of their time for small operations and for recording them.  Here the losses
and their gradient are one kernel, and the layers are torch's own operations, backwards too.
Results equal those of autograd to the last bit.  B rows, P values of the discrete action, K knots.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tempest_agent.envs.machine.compiled import int64, kernel, rule

from .encoders import MlpEncoder
from .q_network import QNetwork

Floats = NDArray[np.float32]

ZERO = np.float32(0.0)
HALF = np.float32(0.5)
ONE = np.float32(1.0)


class PlainGradient(NamedTuple):
    """Results of a micro-batch."""

    predicted: Tensor
    """``(B,)``."""
    each: Tensor
    """``(B,)``, losses."""
    proposals: Tensor | None
    """``(B, P)``."""
    climb: Tensor
    """``(B, P)``, values of the proposals in units of the values' spread."""


def applies_to(network: QNetwork, observation: Tensor) -> bool:
    """Check whether ``add_gradient`` supports ``network``."""
    encoder = network.encoder
    if not isinstance(encoder, MlpEncoder) or not encoder.layer_norm:
        return False
    linears = (*list(encoder.layers)[::3], network.value_head, network.spinner_head)
    return (
        observation.device.type == "cpu"
        and network.distribution.is_plain
        and network.interpolation == "linear"
        and network.num_knots > 1
        and all(_is_unchanged(layer, nn.Linear) for layer in linears)
        and all(_is_unchanged(layer, nn.LayerNorm) for layer in list(encoder.layers)[1::3])
    )


def _is_unchanged(layer: nn.Module, kind: type[nn.Module]) -> bool:
    """Return whether ``layer`` is exactly of ``kind``, without hooks."""
    hooks = layer._forward_hooks or layer._forward_pre_hooks or layer._backward_hooks
    return type(layer) is kind and not hooks


@torch.no_grad()
def add_gradient(
    network: QNetwork,
    observation: Tensor,
    rows: tuple[Tensor, Tensor, Tensor, Tensor],
    is_squared: bool,
    share: float,
    climb_weight: float,
) -> PlainGradient:
    """Add the gradient of a micro-batch's loss times ``share`` to the gradients of ``network``.

    Args:
        network: learns.
        observation: ``(B, F)``.
        rows: pair, position, target and weight, ``(B,)`` each.
        is_squared: whether the loss is the squared error, not Huber's.
        share: of the micro-batch in the update.
        climb_weight: weight of the proposals' loss.
    """
    head = network.value_head
    layers = _layers(network)
    latent = observation
    kept: list[tuple[Tensor, ...]] = []
    for linear, norm in layers:
        inputs, products = latent, torch.addmm(linear.bias, latent, linear.weight.t())
        normal, mean, scale = torch.native_layer_norm(
            products, norm.normalized_shape, norm.weight, norm.bias, norm.eps
        )
        latent = torch.relu(normal)
        kept.append((inputs, products, mean, scale, latent))
    values = network.plain_heads(latent).values
    proposals = network.proposals(latent)
    places = values.new_empty(len(values), 0) if proposals is None else proposals
    spread = values[:, 0, 0] if proposals is None else spread_of(values)
    each, climb = torch.empty(2, len(values)), torch.empty_like(places)
    to_values, to_places = torch.empty_like(values), torch.empty_like(places)
    cast(Any, loss_gradients)(
        *_arrays(values, *rows, places, spread), is_squared, share, climb_weight,
        *_arrays(each, to_values, climb, to_places),
    )  # fmt: skip
    to_head = to_values.flatten(1)
    if network.dueling:
        to_head = torch.empty(len(values), network.outputs)
        dueling_gradients(*_arrays(to_values.flatten(1), to_head))
    _add_to_linear(head, to_head, latent)
    if proposals is not None:
        incoming = torch.ops.aten.tanh_backward(to_places, proposals)
        _add_to_linear(network.spinner_head, incoming, latent)
    incoming = to_head.mm(head.weight)
    for (linear, norm), (inputs, products, mean, scale, out) in zip(
        reversed(layers), reversed(kept), strict=True
    ):
        incoming, to_gain, to_shift = torch.ops.aten.native_layer_norm_backward(
            torch.ops.aten.threshold_backward(incoming, out, 0), products,
            norm.normalized_shape, mean, scale, norm.weight, norm.bias, [True, True, True],
        )  # fmt: skip
        _add(norm.weight, to_gain)
        _add(norm.bias, to_shift)
        _add_to_linear(linear, incoming, inputs)
        if inputs is not observation:
            incoming = incoming.mm(linear.weight)
    return PlainGradient(each[0], each[1], proposals, climb)


def _layers(network: QNetwork) -> list[tuple[Any, Any]]:
    """Return each Linear of the encoder with its LayerNorm."""
    layers = list(cast(MlpEncoder, network.encoder).layers)
    return list(zip(layers[::3], layers[1::3], strict=True))


def _add_to_linear(linear: nn.Linear, incoming: Tensor, inputs: Tensor) -> None:
    _add(linear.weight, incoming.t().mm(inputs))
    _add(linear.bias, incoming.sum(dim=0))


def _add(weight: Tensor, gradient: Tensor) -> None:
    weight.grad = gradient if weight.grad is None else weight.grad.add_(gradient)


def spread_of(values: Tensor) -> Tensor:
    """Return the standard deviation of each state's values ``(B, P, K)``, at least 0.001, ``(B,)``.

    ``Tensor.std`` takes ten times as long on a CPU.
    """
    each = values.flatten(1)
    norm = torch.linalg.vector_norm(each - each.mean(dim=1, keepdim=True), dim=1)
    deviation: Tensor = norm / math.sqrt(each.shape[1] - 1)
    return deviation.clamp(min=1e-3)


def _arrays(*tensors: Tensor) -> list[NDArray[Any]]:
    return [tensor.detach().contiguous().numpy() for tensor in tensors]


@rule
def _place(position: Any, count: int) -> Any:
    """Return the knot of ``count`` below a position in [-1, 1], and the distance from it."""
    inside = -ONE if position < -ONE else ONE if position > ONE else position
    place = (inside + ONE) * (HALF * np.float32(count - 1))
    # NaN passes, behind the first knot.
    lower = min(int64(place), count - 2) if place > ZERO else 0
    return lower, place - np.float32(lower)


@kernel
def loss_gradients(
    values: Floats,
    pair: NDArray[np.int64],
    position: Floats,
    target: Floats,
    weight: Floats,
    proposals: Floats,
    spread: Floats,
    is_squared: bool,
    share: float,
    climb_weight: float,
    each: Floats,
    to_values: Floats,
    climb: Floats,
    to_proposals: Floats,
) -> None:
    """Write the losses of B rows, and the gradient of their mean.

    Args:
        values: ``(B, P, K)``.
        pair: ``(B,)``, the action, with ``position``.
        position: ``(B,)``.
        target: ``(B,)``.
        weight: ``(B,)``, of the rows.
        proposals: ``(B, P)``, positions that are to climb the values; ``(B, 0)`` if there are none.
        spread: ``(B,)``, unit of the values that are climbed.
        is_squared: whether the loss is the squared error, not Huber's.
        share: factor on the mean loss.
        climb_weight: weight of the proposals' loss.
        each: ``(2, B)``, predictions and losses; written, like all that follow.
        to_values: ``(B, P, K)``.
        climb: ``(B, P)``, values of the proposals in units of the spread.
        to_proposals: ``(B, P)``.
    """
    count, pairs, width = values.shape
    of_row = np.float32(share) / np.float32(count)
    of_proposal = -(np.float32(share) * np.float32(climb_weight)) / np.float32(count * pairs)
    to_values[:] = ZERO
    for i in range(count):
        row = values[i, pair[i]]
        lower, beyond = _place(position[i], width)
        predicted = row[lower] + beyond * (row[lower + 1] - row[lower])
        error = predicted - target[i]
        slope = error
        each[0, i], each[1, i] = predicted, HALF * error * error
        if not is_squared and abs(error) >= ONE:
            each[1, i] = abs(error) - HALF
            slope = -ONE if error < ZERO else ONE
        slope *= of_row * weight[i]
        upper = slope * beyond
        to_values[i, pair[i], lower] = slope - upper
        to_values[i, pair[i], lower + 1] = upper
        for p in range(proposals.shape[1]):
            row = values[i, p]
            lower, beyond = _place(proposals[i, p], width)
            rise = row[lower + 1] - row[lower]
            climb[i, p] = (row[lower] + beyond * rise) / spread[i]
            uphill = of_proposal / spread[i] * rise * (HALF * np.float32(width - 1))
            to_proposals[i, p] = uphill if abs(proposals[i, p]) <= ONE else ZERO


@kernel
def dueling_gradients(to_values: Floats, out: Floats) -> None:
    """Write the gradients to a state value and A advantages ``(B, 1 + A)``, given those to values.

    In each row of ``to_values`` all but two are 0, so that it does not matter how they are added.
    """
    count, width = to_values.shape
    for i in range(count):
        total = ZERO
        for j in range(width):
            total += to_values[i, j]
        out[i, 0] = total
        mean = total / np.float32(width)
        for j in range(width):
            out[i, j + 1] = to_values[i, j] - mean

"""Values that are numbers, with straight lines between knots, on a CPU: with few operations.

What ``targets``, ``bootstrap`` and ``objective`` do step by step for every kind of value is here
one kernel each (``plain_kernels``), and the gradient is found without recording what was done.
Small networks take most of their time for such small steps.  All numbers are the same to the last
bit.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, cast

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from . import fused_layers
from .actions import knots
from .plain_kernels import best_actions, bootstrap, dueling_gradients, loss_gradients
from .q_network import Heads, MlpEncoder, QNetwork


def applies_to(network: QNetwork, numbers: Tensor) -> bool:
    """Whether the kernels know the values of ``network``, ``numbers`` being some of its own."""
    # First, as no graph can hold a kernel.
    return (
        not torch.compiler.is_compiling()
        and network.distribution.is_plain
        and network.interpolation == "linear"
        and network.num_knots > 1
        and numbers.device.type == "cpu"
        and numbers.dtype == torch.float32
    )


def has_gradient(network: QNetwork, observation: Tensor) -> bool:
    """Whether ``add_gradient`` knows ``network``."""
    encoder = network.encoder
    return (
        applies_to(network, observation)
        and isinstance(encoder, MlpEncoder)
        and encoder.layer_norm
        and fused_layers.applies_to(observation, encoder.pairs())
        and fused_layers.is_plain(network.value_head, nn.Linear)
        and fused_layers.is_plain(network.spinner_head, nn.Linear)
    )


def best_action(heads: Heads, proposals: Tensor | None, legal: Tensor) -> tuple[Tensor, ...]:
    """What ``targets.choose`` is made of: the best legal pair, its position and its value."""
    count = len(heads.values)
    chosen = torch.empty(count, dtype=torch.int64), torch.empty(count), torch.empty(count)
    best_actions(*_candidates(heads, proposals, legal), *_arrays(*chosen))
    return chosen


def targets(
    network: QNetwork,
    heads: Heads,
    judge: Heads,
    legal: Tensor,
    returns: Tensor,
    discounts: Tensor,
    limit: float,
) -> Tensor:
    """Targets ``(B,)`` within ``limit`` and before, and which were below and above it, ``(4, B)``.

    ``heads`` of ``network`` choose, ``judge`` says what the choice is worth.
    """
    out = torch.empty(4, len(returns))
    candidates = _candidates(heads, network.proposals(heads.latent), legal)
    numbers = _arrays(judge.values, returns, discounts)
    cast(Any, bootstrap)(*candidates, *numbers, limit, out.numpy())
    return out


class Gradient(NamedTuple):
    """What there is to tell of a micro-batch."""

    predicted: Tensor
    """``(B,)``."""
    each: Tensor
    """``(B,)``, losses."""
    proposals: Tensor | None
    """``(B, P)``."""
    climb: Tensor
    """``(B, P)``, values of the proposals in units of the values' spread."""


@torch.no_grad()
def add_gradient(
    network: QNetwork,
    observation: Tensor,
    rows: tuple[Tensor, Tensor, Tensor, Tensor],
    is_squared: bool,
    share: float,
    climb_weight: float,
) -> Gradient:
    """Add the gradient of a micro-batch's loss times ``share`` to that of ``network``.

    Args:
        network: learns.
        observation: ``(B, F)``.
        rows: pair, position, target and weight, ``(B,)`` each.
        is_squared: whether the loss is the squared error, not Huber's.
        share: of the micro-batch in the update.
        climb_weight: what the loss of the proposals counts.
    """
    encoder, head = network.encoder, network.value_head
    assert isinstance(encoder, MlpEncoder)
    weights, epsilons = fused_layers.weights_of(encoder.pairs())
    latent, kept = fused_layers.forward_and_kept(observation, None, epsilons, weights)
    values = network.plain_heads(latent).values
    proposals = network.proposals(latent)
    places = _none_of(values) if proposals is None else proposals
    spread = values[:, 0, 0] if proposals is None else unit_of(values)
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
    _, found = fused_layers.backward(to_head.mm(head.weight), None, weights, kept, False)
    found += _of_linear(to_head, latent)
    weights += (head.weight, head.bias)
    if proposals is not None:
        found += _of_linear(torch.ops.aten.tanh_backward(to_places, proposals), latent)
        weights += (network.spinner_head.weight, network.spinner_head.bias)
    for weight, gradient in zip(weights, found, strict=True):
        weight.grad = gradient if weight.grad is None else weight.grad.add_(gradient)
    return Gradient(each[0], each[1], proposals, climb)


def unit_of(values: Tensor) -> Tensor:
    """Standard deviation of the values ``(B, P, K)`` of each state, 0.001 at least, ``(B,)``.

    ``Tensor.std`` takes ten times as long on a CPU.
    """
    each = values.flatten(1)
    norm = torch.linalg.vector_norm(each - each.mean(dim=1, keepdim=True), dim=1)
    deviation: Tensor = norm / math.sqrt(each.shape[1] - 1)
    return deviation.clamp(min=1e-3)


def _of_linear(incoming: Tensor, inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients to weight and bias of a Linear."""
    return incoming.t().mm(inputs), incoming.sum(dim=0)


def _candidates(heads: Heads, proposals: Tensor | None, legal: Tensor) -> list[NDArray[Any]]:
    values = heads.values
    places = _none_of(values) if proposals is None else proposals
    return _arrays(values, knots(values.shape[2]), places, legal)


def _none_of(values: Tensor) -> Tensor:
    return values.new_empty(len(values), 0)


def _arrays(*tensors: Tensor) -> list[NDArray[Any]]:
    return [tensor.detach().contiguous().numpy() for tensor in tensors]

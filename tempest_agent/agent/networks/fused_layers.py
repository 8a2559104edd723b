"""Linear, LayerNorm and ReLU fused, on one core.

The matrix products are torch's; everything between two of them is one pass over memory
(``layer_kernels``).  Results differ from those of the single operations in the last bits.  On a
GPU, in reduced precision, with several threads or ``torch.compile`` the single operations run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from .layer_kernels import beside, beside_gradients, gradients, rectified, rectified_and_kept

ALL_ALIVE = np.zeros(0, np.float32)


class _Weights(NamedTuple):
    """Weights of one layer: ``(N, M)`` of the product, then ``(N,)``."""

    product: Tensor
    bias: Tensor
    gain: Tensor
    shift: Tensor


Pairs = Sequence[tuple[nn.Module, nn.Module]]
"""Each Linear with its LayerNorm."""


def applies_to(inputs: Tensor, layers: Pairs) -> bool:
    """Return whether ``forward`` supports ``inputs`` and ``layers``."""
    return (
        on_one_core(inputs)
        and not torch.is_autocast_enabled("cpu")
        and all(
            is_plain(linear, nn.Linear) and is_plain(norm, nn.LayerNorm) for linear, norm in layers
        )
        and inputs.dtype == layers[0][0].weight.dtype == torch.float32
    )


def on_one_core(inputs: Tensor) -> bool:
    # First, as no graph can hold the number of threads.
    if torch.compiler.is_compiling():
        return False
    return inputs.device.type == "cpu" and torch.get_num_threads() == 1


def is_plain(layer: nn.Module, kind: type[nn.Module]) -> bool:
    """Return whether ``layer`` is exactly of ``kind``, without hooks."""
    heard = layer._forward_hooks or layer._forward_pre_hooks or layer._backward_hooks
    return type(layer) is kind and not heard


def forward(inputs: Tensor, layers: Pairs, alive: Tensor | None = None) -> Tensor:
    """Return inputs ``(R, M)`` after ``layers``, with gradients if enabled.

    ``alive``: ``(R,)`` float32, 0 for rows that every layer sets to zero.
    """
    weights, epsilons = weights_of(layers)
    if torch.is_grad_enabled():
        out: Tensor = _Layers.apply(inputs, alive, epsilons, *weights)  # type: ignore[no-untyped-call]
        return out
    mask = _mask(alive)
    for epsilon, (product, *others) in zip(epsilons, _by_layer(weights), strict=True):
        inputs = torch.mm(inputs, product.t())
        bias, gain, shift = _arrays(others)
        rectified(inputs.numpy(), bias, gain, shift, epsilon, mask)
    return inputs


def weights_of(layers: Pairs) -> tuple[list[Any], list[float]]:
    """Return the weights of ``layers``, four of each, and their LayerNorms' epsilons."""
    # Not as attributes: torch's lookup of these takes much longer.
    weights = [p for pair in layers for layer in pair for p in layer._parameters.values()]
    return weights, [cast(nn.LayerNorm, norm).eps for _, norm in layers]


def rectified_linear(
    inputs: Tensor, linear: nn.Module, norm: nn.Module, alive: Tensor | None = None
) -> Tensor:
    """Return ``relu(norm(linear(inputs)))`` over the last dimension, fused if supported.

    ``alive``: of the shape of the other dimensions, 0 where the result is set to 0, else 1.
    """
    if applies_to(inputs, [(linear, norm)]):
        rows = inputs.reshape(-1, inputs.shape[-1])
        mask = None if alive is None else alive.reshape(-1)
        return forward(rows, [(linear, norm)], mask).view(*inputs.shape[:-1], -1)
    out = torch.relu(norm(linear(inputs)))
    return out if alive is None else out * alive.unsqueeze(-1)


def with_neighbours(lanes: Tensor) -> Tensor:
    """Return each lane ``(B, L, C)`` between its neighbours on the ring, ``(B, L, 3 * C)``."""
    if on_one_core(lanes) and lanes.dtype in (torch.float32, torch.bfloat16):
        out: Tensor = _Neighbours.apply(lanes)  # type: ignore[no-untyped-call]
        return out
    return torch.cat((lanes.roll(1, 1), lanes, lanes.roll(-1, 1)), dim=-1)


def _by_layer(weights: Sequence[Tensor]) -> list[_Weights]:
    return [_Weights(*weights[i : i + 4]) for i in range(0, len(weights), 4)]


def _arrays(tensors: Iterable[Tensor]) -> list[Any]:
    return [tensor.detach().numpy() for tensor in tensors]


def _mask(alive: Tensor | None) -> Any:
    return ALL_ALIVE if alive is None else alive.numpy()


def forward_and_kept(
    inputs: Tensor, alive: Tensor | None, epsilons: Sequence[float], weights: Sequence[Tensor]
) -> tuple[Tensor, list[Tensor]]:
    """Return the result of ``forward`` without autograd, and what ``backward`` needs."""
    mask = _mask(alive)
    kept: list[Tensor] = []
    for epsilon, (product, *others) in zip(epsilons, _by_layer(weights), strict=True):
        standard = torch.mm(inputs, product.t())
        out, scales = torch.empty_like(standard), torch.empty(len(standard))
        bias, gain, shift = _arrays(others)
        rectified_and_kept(
            standard.numpy(), bias, gain, shift, epsilon, mask, scales.numpy(), out.numpy()
        )
        kept += (inputs, standard, scales)
        inputs = out
    return inputs, kept


def backward(
    incoming: Tensor,
    alive: Tensor | None,
    weights: Sequence[Tensor],
    kept: Sequence[Tensor],
    to_inputs: bool,
) -> tuple[Tensor | None, list[Tensor]]:
    """Return the gradients through ``forward_and_kept`` to its inputs (or None) and its weights."""
    layers = _by_layer(weights)
    mask = _mask(alive)
    found: list[Tensor] = []
    incoming = incoming.contiguous()
    # The first one belongs to the caller; later ones may be overwritten.
    outgoing = torch.empty_like(incoming)
    for i in reversed(range(len(layers))):
        inputs, standard, scales = kept[3 * i : 3 * i + 3]
        product, _, gain, shift = layers[i]
        sums = torch.empty(3, len(product))
        normal, scale, factor, offset = _arrays((standard, scales, gain, shift))
        gradients(
            incoming.numpy(), normal, scale, factor, offset, mask,
            outgoing.numpy(), sums.numpy(),
        )  # fmt: skip
        found = [torch.mm(outgoing.t(), inputs), *sums.unbind(), *found]
        if i or to_inputs:
            incoming = outgoing = torch.mm(outgoing, product)
    return incoming if to_inputs else None, found


class _Layers(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, alive: Tensor | None, epsilons: list[float], *weights: Tensor
    ) -> Tensor:
        out, kept = forward_and_kept(inputs, alive, epsilons, weights)
        ctx.alive = alive
        ctx.save_for_backward(*weights, *kept)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, incoming: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        count = 4 * (len(saved) // 7)
        weights, kept = saved[:count], saved[count:]
        to_inputs, found = backward(
            incoming, ctx.alive, weights, kept, bool(ctx.needs_input_grad[0])
        )
        return to_inputs, None, None, *found


class _Neighbours(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, lanes: Tensor) -> Tensor:
        rows, count, width = lanes.shape
        out = lanes.new_empty(rows, count, 3 * width)
        # A copy needs only the size of a number.
        form = torch.float32 if lanes.dtype == torch.float32 else torch.int16
        beside(lanes.contiguous().view(form).numpy(), out.view(form).numpy())
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, incoming: Tensor) -> Tensor:
        width = incoming.shape[2] // 3
        if incoming.dtype != torch.float32:
            after, own, before = incoming.reshape(*incoming.shape[:2], 3, width).unbind(2)
            total: Tensor = own + before.roll(1, 1) + after.roll(-1, 1)
            return total
        out = incoming.new_empty(*incoming.shape[:2], width)
        beside_gradients(incoming.contiguous().numpy(), out.numpy())
        return out

"""The value as a function of the spinner: knots, and lines or parabolas between them.

For each button pair the network gives values at K positions of the spinner.  The value anywhere
else is interpolated, so an action that was executed between two knots teaches both (a
one-dimensional Q-functional; Lobel et al. 2023, "Q-functionals for value-based continuous
control").  With one knot the value does not depend on the spinner.

On straight lines the best position is always a knot.  With parabolas it may lie between knots,
and the continuous head can find it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .spinner_kernels import between, between_gradients

NOTHING_CHOSEN = torch.zeros(0, dtype=torch.int64)
NOT_WANTED = np.zeros(0, np.float32)


def runs_in_kernels(*tensors: Tensor) -> bool:
    """Whether the compiled forms for a CPU can take ``tensors``."""
    # First, as no graph can hold a kernel.
    return not torch.compiler.is_compiling() and all(
        tensor.device.type == "cpu" and tensor.dtype == torch.float32 for tensor in tensors
    )


def _between(values: Tensor, chosen: Tensor, position: Tensor) -> Tensor:
    """Values ``(N,)`` from ``(N, P, K)``, see ``spinner_kernels.between``."""
    if torch.is_grad_enabled():
        found: Tensor = _Between.apply(values, chosen, position)  # type: ignore[no-untyped-call]
        return found
    out = torch.empty(len(values))
    between(values.detach().numpy(), chosen.numpy(), position.detach().numpy(), out.numpy())
    return out


class _Between(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, chosen: Tensor, position: Tensor) -> Tensor:
        ctx.save_for_backward(values, chosen, position)
        return _between(values, chosen, position)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, incoming: Tensor) -> tuple[Tensor | None, ...]:
        values, chosen, position = ctx.saved_tensors
        to_values = torch.zeros_like(values) if ctx.needs_input_grad[0] else None
        to_position = torch.empty_like(position) if ctx.needs_input_grad[2] else None
        between_gradients(
            values.detach().numpy(),
            chosen.numpy(),
            position.detach().numpy(),
            incoming.contiguous().numpy(),
            _NO_VALUES if to_values is None else to_values.numpy(),
            NOT_WANTED if to_position is None else to_position.numpy(),
        )
        return to_values, None, to_position


_NO_VALUES = np.zeros((0, 0, 0), np.float32)


def interpolate_chosen(
    values: Tensor, chosen: Tensor, position: Tensor, kind: str = "linear"
) -> Tensor:
    """Values ``(B,)`` of one of P rows of knots: ``(B, P, K)`` at ``chosen`` and ``position``."""
    if kind == "linear" and values.shape[2] > 1 and runs_in_kernels(values, position):
        return _between(values.contiguous(), chosen, position.contiguous())
    rows = chosen.view(-1, 1, 1).expand(-1, 1, values.shape[2])
    return interpolate(values.gather(1, rows).squeeze(1), position, kind)


def interpolate(values: Tensor, position: Tensor, kind: str = "linear") -> Tensor:
    """Values at ``position`` on the spinner axis.

    Args:
        values: ``(..., K)`` at evenly spaced knots from -1 to 1.
        position: ``(...)`` in [-1, 1]; gradients flow to it as the slope at that place.
        kind: ``linear``, or ``quadratic`` (K of 3 or more): between two knots the two parabolas
            through each of them and its neighbours are blended, which leaves no kink; at the ends
            there is only one.  A parabola is met exactly.

    Returns:
        ``(...)`` interpolated values.
    """
    count = values.shape[-1]
    if count == 1:
        return values[..., 0]
    alike = position.shape == values.shape[:-1]
    if kind == "linear" and alike and runs_in_kernels(values, position):
        rows = values.reshape(-1, 1, count).contiguous()
        return _between(rows, NOTHING_CHOSEN, position.reshape(-1)).view(position.shape)
    place = (position.clamp(-1.0, 1.0) + 1.0) * (0.5 * (count - 1))
    lower = place.detach().floor().clamp(max=count - 2)
    weight = place - lower
    index = lower.to(torch.int64).unsqueeze(-1)
    left = values.gather(-1, index).squeeze(-1)
    right = values.gather(-1, index + 1).squeeze(-1)
    if kind == "linear":
        return left + weight * (right - left)
    # Beyond each end the last parabola goes on by one knot.
    before = 3.0 * (values[..., :1] - values[..., 1:2]) + values[..., 2:3]
    after = 3.0 * (values[..., -1:] - values[..., -2:-1]) + values[..., -3:-2]
    wide = torch.cat((before, values, after), dim=-1)
    outer_left = wide.gather(-1, index).squeeze(-1)
    outer_right = wide.gather(-1, index + 3).squeeze(-1)
    return blend(outer_left, left, right, outer_right, weight)


def blend(a: Tensor, b: Tensor, c: Tensor, d: Tensor, weight: Tensor) -> Tensor:
    """The parabola through ``a, b, c`` turning into that through ``b, c, d`` from b to c."""
    slope = c - a
    bend = 2.0 * a - 5.0 * b + 4.0 * c - d
    twist = 3.0 * (b - c) + d - a
    return b + 0.5 * weight * (slope + weight * (bend + weight * twist))


def nearest_knot(position: Tensor, count: int) -> Tensor:
    """``position`` moved to the nearest of ``count`` knots."""
    if count == 1:
        return torch.zeros_like(position)
    half = 0.5 * (count - 1)
    return ((position.clamp(-1.0, 1.0) + 1.0) * half).round() / half - 1.0

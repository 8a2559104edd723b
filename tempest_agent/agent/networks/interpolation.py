"""The value as a function of the spinner: knots, and lines or parabolas between them.

For each button pair the network gives values at K positions of the spinner.  The value anywhere
else is interpolated, so an action that was executed between two knots teaches both (a
one-dimensional Q-functional; Lobel et al. 2023, "Q-functionals for value-based continuous
control").  With one knot the value does not depend on the spinner.

On straight lines the best position is always a knot.  With parabolas it may lie between knots,
and the continuous head can find it.
"""

from __future__ import annotations

import torch
from torch import Tensor


def interpolate(values: Tensor, position: Tensor, kind: str = "linear") -> Tensor:
    """Return the values at ``position`` on the spinner axis.

    Args:
        values: ``(..., K)`` at evenly spaced knots from -1 to 1.
        position: ``(...)`` in [-1, 1]; its gradient is the slope there.
        kind: ``linear``, or ``quadratic`` (K of 3 or more): between two knots the two parabolas
            through each of them and its neighbours are blended, which leaves no kink; at the ends
            there is only one.  A parabola is met exactly.

    Returns:
        ``(...)`` interpolated values.
    """
    count = values.shape[-1]
    if count == 1:
        return values[..., 0]
    place = (position.clamp(-1.0, 1.0) + 1.0) * (0.5 * (count - 1))
    lower = place.detach().floor().clamp(max=count - 2)
    weight = place - lower
    index = lower.to(torch.int64).unsqueeze(-1)
    left = values.gather(-1, index).squeeze(-1)
    right = values.gather(-1, index + 1).squeeze(-1)
    if kind == "linear":
        return left + weight * (right - left)
    # Beyond each end the last parabola continues by one knot.
    before = 3.0 * (values[..., :1] - values[..., 1:2]) + values[..., 2:3]
    after = 3.0 * (values[..., -1:] - values[..., -2:-1]) + values[..., -3:-2]
    wide = torch.cat((before, values, after), dim=-1)
    outer_left = wide.gather(-1, index).squeeze(-1)
    outer_right = wide.gather(-1, index + 3).squeeze(-1)
    return blend(outer_left, left, right, outer_right, weight)


def blend(a: Tensor, b: Tensor, c: Tensor, d: Tensor, weight: Tensor) -> Tensor:
    """Blend the parabola through ``a, b, c`` into the one through ``b, c, d`` from b to c."""
    slope = c - a
    bend = 2.0 * a - 5.0 * b + 4.0 * c - d
    twist = 3.0 * (b - c) + d - a
    return b + 0.5 * weight * (slope + weight * (bend + weight * twist))


def nearest_knot(position: Tensor, count: int) -> Tensor:
    """Return ``position`` rounded to the nearest of ``count`` knots."""
    if count == 1:
        return torch.zeros_like(position)
    half = 0.5 * (count - 1)
    return ((position.clamp(-1.0, 1.0) + 1.0) * half).round() / half - 1.0

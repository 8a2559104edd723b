"""The value as a function of the spinner: knots with straight lines between them.

For each button pair the network gives values at K positions of the spinner.  The value anywhere
else is interpolated, so an action that was executed between two knots teaches both (a
one-dimensional Q-functional; Lobel et al. 2023, "Q-functionals for value-based continuous
control").  With one knot the value does not depend on the spinner.
"""

from __future__ import annotations

import torch
from torch import Tensor


def interpolate(values: Tensor, position: Tensor) -> Tensor:
    """Values at ``position`` on the spinner axis.

    Args:
        values: ``(..., K)`` at evenly spaced knots from -1 to 1.
        position: ``(...)`` in [-1, 1]; gradients flow to it as the slope of its segment.

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
    return left + weight * (right - left)


def nearest_knot(position: Tensor, count: int) -> Tensor:
    """``position`` moved to the nearest of ``count`` knots."""
    if count == 1:
        return torch.zeros_like(position)
    half = 0.5 * (count - 1)
    return ((position.clamp(-1.0, 1.0) + 1.0) * half).round() / half - 1.0

"""Losses on the value: each takes predictions and targets and gives one number per row."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.nn import functional

RowLoss = Callable[[Tensor, Tensor], Tensor]
"""``(predicted (B,), target (B,)) -> (B,)``, float32."""


def huber(predicted: Tensor, target: Tensor) -> Tensor:
    """Quadratic up to an error of 1, then linear (Huber 1964)."""
    return functional.smooth_l1_loss(predicted, target, reduction="none")


def squared(predicted: Tensor, target: Tensor) -> Tensor:
    """Half the squared error."""
    return 0.5 * (predicted - target).square()


VALUE_LOSSES: dict[str, RowLoss] = {"huber": huber, "squared": squared}

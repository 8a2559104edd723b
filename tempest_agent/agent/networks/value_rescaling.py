"""What the network learns in place of a value: squashed, so that large returns stay in reach.

``sqrt`` is that of Pohlen et al. 2018, "Observe and look further", ``symlog`` that of Hafner et al.
2023, "Mastering diverse domains through world models".  All are odd, strictly rising and smooth.
"""

from __future__ import annotations

import torch
from torch import Tensor

EPSILON = 1e-2
"""Slope that is left of ``sqrt`` far out; it keeps the inverse well behaved."""


def rescale(value: Tensor, kind: str) -> Tensor:
    """``value`` as the network sees it; ``kind`` is none, sqrt or symlog."""
    if kind == "none":
        return value
    size = value.abs()
    if kind == "symlog":
        return value.sign() * torch.log1p(size)
    # size / (r + 1) is r - 1 for r = sqrt(1 + size), without the difference.
    return value.sign() * size / ((size + 1.0).sqrt() + 1.0) + EPSILON * value


def restore(value: Tensor, kind: str) -> Tensor:
    """The inverse of ``rescale``."""
    if kind == "none":
        return value
    size = value.abs()
    if kind == "symlog":
        return value.sign() * torch.expm1(size)
    # y = sqrt(1 + x) - 1 solves epsilon y^2 + (1 + 2 epsilon) y = size.  Written without the
    # difference of two nearly equal numbers that the textbook form has for small values.
    discriminant = (1.0 + 4.0 * EPSILON * (size + 1.0 + EPSILON)).sqrt()
    root = 2.0 * size / (discriminant + 1.0 + 2.0 * EPSILON)
    return value.sign() * root * (root + 2.0)

"""The action as the networks see it: a pair of buttons and a spinner position in [-1, 1].

Buttons are ``fire + 2 * zap``.  The spinner is in units of the machine's 31 counts per tick.
"""

from __future__ import annotations

import torch
from torch import Tensor

BUTTON_PAIRS = 4
ZAP_PAIRS = (2, 3)
SPINNER_COUNTS = 31


def to_unit(counts: Tensor) -> Tensor:
    """Knob counts (any integer type) as float32 spinner positions in [-1, 1]."""
    return counts.to(torch.float32) / SPINNER_COUNTS


def to_counts(position: Tensor) -> Tensor:
    """Spinner positions as the nearest knob counts, int8."""
    return (position.clamp(-1.0, 1.0) * SPINNER_COUNTS).round().to(torch.int8)


def knots(count: int, device: torch.device | str = "cpu") -> Tensor:
    """``count`` evenly spaced spinner positions from -1 to 1, shape ``(count,)``."""
    return torch.linspace(-1.0, 1.0, count, device=device)


def pair_mask(zap_legal: Tensor) -> Tensor:
    """Which button pairs are legal, bool ``(B, 4)``, from bool ``(B,)``.

    Without a legal zap only "nothing" and "fire" remain.
    """
    mask = torch.ones(zap_legal.shape[0], BUTTON_PAIRS, dtype=torch.bool, device=zap_legal.device)
    for pair in ZAP_PAIRS:
        mask[:, pair] = zap_legal
    return mask

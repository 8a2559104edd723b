"""The action as the networks see it: a pair of buttons and a spinner position in [-1, 1].

Buttons are ``fire + 2 * zap``.  The spinner is in units of the machine's 31 counts per tick.
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from tempest_agent.envs.machine.inputs import BUTTON_PAIRS, SPINNER_MAX, ZAP


def to_unit(counts: Tensor, largest: int = SPINNER_MAX) -> Tensor:
    """Return knob counts (any integer type) as float32 spinner positions in [-1, 1]."""
    return counts.to(torch.float32) / largest


def to_counts(position: Tensor, largest: int = SPINNER_MAX) -> Tensor:
    """Return the nearest knob counts up to ``largest``: int8, or int16 above 127."""
    kind = torch.int8 if largest <= 127 else torch.int16
    return (position.clamp(-1.0, 1.0) * largest).round().to(kind)


@functools.cache
def knots(count: int, device: torch.device | str = "cpu") -> Tensor:
    """Return ``count`` evenly spaced spinner positions from -1 to 1, ``(count,)``; read-only."""
    return torch.linspace(-1.0, 1.0, count, device=device)


def pair_mask(zap_legal: Tensor, num_pairs: int = BUTTON_PAIRS) -> Tensor:
    """Return which button pairs are legal, bool ``(B, 4)``, from bool ``(B,)``.

    Without a legal zap only "nothing" and "fire" remain.  Where the discrete action is another
    one, with ``num_pairs`` values, all are legal as long as ``zap_legal`` is True.
    """
    mask = torch.ones(zap_legal.shape[0], num_pairs, dtype=torch.bool, device=zap_legal.device)
    mask[:, ZAP:] = zap_legal.unsqueeze(1)
    return mask

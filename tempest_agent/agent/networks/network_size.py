"""Size of a network: parameters, and arithmetic per row."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch.utils.flop_counter import FlopCounterMode

from .q_network import QNetwork


class NetworkSize(NamedTuple):
    """Of one network."""

    parameters: int
    flops: int
    """Floating-point operations of matrix products in one forward pass of one row."""

    def __str__(self) -> str:
        return f"{self.parameters:,} parameters, {self.flops:,} FLOPs a row and forward pass"


def size_of(network: QNetwork, num_features: int) -> NetworkSize:
    """Return the size of ``network`` for observations of ``num_features``."""
    device = next(network.parameters()).device
    counter = FlopCounterMode(display=False)
    with counter, torch.no_grad():
        network(torch.zeros(1, num_features, device=device))
    count = sum(parameter.numel() for parameter in network.parameters())
    return NetworkSize(count, int(counter.get_total_flops()))

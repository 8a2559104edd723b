"""Size of a network: parameters, and arithmetic per row."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from .q_network import QNetwork


class NetworkSize(NamedTuple):
    """Of one network."""

    parameters: int
    flops: int
    """Floating-point operations of the dense layers in one forward pass of one row."""

    def __str__(self) -> str:
        return f"{self.parameters:,} parameters, {self.flops:,} FLOPs a row and forward pass"


def size_of(network: QNetwork, num_features: int) -> NetworkSize:
    """Return the size of ``network`` for observations of ``num_features``."""
    flops = 0

    def count(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        nonlocal flops
        assert isinstance(layer, nn.Linear)
        flops += 2 * layer.in_features * output.numel()

    dense = [layer for layer in network.modules() if isinstance(layer, nn.Linear)]
    hooks = [layer.register_forward_hook(count) for layer in dense]
    with torch.no_grad():
        network(torch.zeros(1, num_features, device=next(network.parameters()).device))
    for hook in hooks:
        hook.remove()
    return NetworkSize(sum(parameter.numel() for parameter in network.parameters()), flops)

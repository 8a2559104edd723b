"""Size of a network: parameters, and arithmetic per row."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from .q_network import QNetwork


class NetworkSize(NamedTuple):
    """Of one network."""

    parameters: int
    flops: int
    """Floating-point operations of the dense layers in one forward pass of one row."""

    def __str__(self) -> str:
        return f"{self.parameters:,} parameters, {self.flops:,} FLOPs a row and forward pass"


class _DenseLayers(TorchFunctionMode):
    """Counts ``flops``.  Torch's own counter imports its compiler, which takes 2 s."""

    flops = 0

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        output = func(*args, **(kwargs or {}))
        if func is functional.linear:
            self.flops += 2 * args[0].shape[-1] * output.numel()
        return output


def size_of(network: QNetwork, num_features: int) -> NetworkSize:
    """Return the size of ``network`` for observations of ``num_features``."""
    device = next(network.parameters()).device
    with torch.no_grad(), _DenseLayers() as dense:
        network(torch.zeros(1, num_features, device=device))
    return NetworkSize(sum(parameter.numel() for parameter in network.parameters()), dense.flops)

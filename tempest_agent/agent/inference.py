"""Networks as they run without gradients."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor

from .networks import Heads, QNetwork


class InferenceCopy:
    """A network whose weights are cast once, not anew in every pass as autocast does.

    Args:
        network: the weights' owner, in float32.
        dtype: arithmetic of the copy; None runs the owner itself.
        compiled: whether to compile its passes.
    """

    def __init__(
        self, network: QNetwork, dtype: torch.dtype | None, compiled: bool = False
    ) -> None:
        self._owner = network
        self._dtype = dtype or torch.float32
        self._copy = network
        if dtype is not None:
            self._copy = copy.deepcopy(network).to(dtype).requires_grad_(False)
        self._forward: Any = torch.compile(self._copy) if compiled else self._copy

    @torch.no_grad()
    def refresh(self) -> None:
        """Take over the owner's present weights."""
        if self._copy is not self._owner:
            torch._foreach_copy_(list(self._copy.parameters()), list(self._owner.parameters()))

    @torch.no_grad()
    def __call__(self, observation: Tensor) -> Heads:
        """The network's answer to observations ``(B, F)``; values are float32."""
        heads: Heads = self._forward(observation.to(self._dtype))
        return heads

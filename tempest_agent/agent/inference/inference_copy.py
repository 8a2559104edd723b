"""Copies of networks that run without gradients."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tempest_agent.agent.networks.encoders import MlpEncoder
from tempest_agent.agent.networks.q_network import Heads, Preferences, QNetwork

ALIGNMENT = 8
"""Matrices whose sides are multiples of this run several times as fast on a GPU in 16 bits."""


def aligns(device: torch.device) -> bool:
    """Return whether copies on ``device`` are padded to ``ALIGNMENT``."""
    return device.type == "cuda"


class InferenceCopy:
    """A network whose weights are cast once, not in every pass as autocast does.

    Args:
        network: owner of the weights, in float32.
        dtype: arithmetic of the copy; None runs the owner itself.
        compiled: whether to compile its passes.
        aligned: whether to pad matrices with zeros to whole ``ALIGNMENT``, which changes no result
            but always makes a copy.

    Attributes:
        network: the copy, or the owner itself.
        extra_inputs: zeros appended to its observations.
        dtype: arithmetic that it runs in.
    """

    def __init__(
        self,
        network: QNetwork,
        dtype: torch.dtype | None,
        compiled: bool = False,
        aligned: bool = False,
    ) -> None:
        self._owner = network
        self.dtype = dtype or torch.float32
        self.network = network
        self.extra_inputs = 0
        if dtype is not None or aligned:
            self.network = copy.deepcopy(network).to(self.dtype).requires_grad_(False)
        if aligned:
            self.extra_inputs = _align(self.network)
        self._forward: Any = torch.compile(self.network) if compiled else self.network
        by_policy = self.network.preferences
        self._preferences: Any = torch.compile(by_policy) if compiled else by_policy

    def own_parts(self) -> list[Tensor]:
        """Return the copy's weights without padding, in the owner's order."""
        both = zip(self.network.parameters(), self._owner.parameters(), strict=True)
        return [whole[tuple(map(slice, own.shape))] for whole, own in both]

    @torch.no_grad()
    def refresh(self) -> None:
        """Copy the owner's current weights."""
        if self.network is not self._owner:
            torch._foreach_copy_(self.own_parts(), list(self._owner.parameters()))

    def inputs(self, observation: Tensor) -> Tensor:
        """Return observations ``(B, F)`` as the copy's input."""
        cast = observation.to(self.dtype)
        return functional.pad(cast, (0, self.extra_inputs)) if self.extra_inputs else cast

    @torch.no_grad()
    def __call__(self, observation: Tensor) -> Heads:
        """Return the outputs for observations ``(B, F)`` but the policy's; values are float32."""
        heads: Heads = self._forward(self.inputs(observation), with_policy=False)
        return heads

    @torch.no_grad()
    def preferences(self, observation: Tensor) -> Preferences:
        """Return what the policy head says for observations ``(B, F)``; logits are float32."""
        preferences: Preferences = self._preferences(self.inputs(observation))
        return preferences


def _align(network: QNetwork) -> int:
    """Pad the first and the last matrix of ``network``; return the number of added inputs."""
    head = network.value_head
    if type(head) is nn.Linear:
        more = -head.out_features % ALIGNMENT
        head.weight.data = functional.pad(head.weight.data, (0, 0, 0, more))
        head.bias.data = functional.pad(head.bias.data, (0, more))
    encoder = network.encoder
    if not isinstance(encoder, MlpEncoder):
        return 0
    first = encoder.layers[0]
    if not isinstance(first, nn.Linear):
        raise TypeError("an encoder begins with a linear layer")
    more = -first.in_features % ALIGNMENT
    first.weight.data = functional.pad(first.weight.data, (0, more))
    return more

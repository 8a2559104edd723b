"""The student's greedy action: what it does in the games, here or in an actor."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tempest_agent.agent.devices import Column, to_device
from tempest_agent.agent.networks.actions import pair_mask, to_counts
from tempest_agent.agent.networks.q_network import Layout, QNetwork

from .greedy import choose
from .inference_copy import InferenceCopy


def features(codes: Column, layout: Layout, device: torch.device) -> Tensor:
    """Codes ``(B, F)`` as features on ``device``, float32."""
    numbers = to_device(codes, device).to(torch.float32)
    # What is stored as it is may still be the replay's own memory.
    return numbers if layout.unit == 1.0 else numbers.mul_(layout.unit)


@torch.no_grad()
def greedy(
    network: QNetwork,
    fast: InferenceCopy,
    codes: NDArray[np.int8],
    zap_legal: NDArray[np.bool_],
    device: torch.device,
) -> tuple[NDArray[np.int8], NDArray[np.uint8]]:
    """Knob counts and buttons ``(B,)`` for codes ``(B, F)`` and legal zaps ``(B,)``.

    ``network`` owns the weights, ``fast`` is its copy for acting; both are on ``device``.
    """
    layout = network.layout
    heads = fast(features(codes, layout, device))
    legal = pair_mask(torch.from_numpy(zap_legal).to(device), layout.num_pairs)
    choice = choose(network, heads, legal)
    spin: NDArray[np.int8] = to_counts(choice.position, layout.counts).cpu().numpy()
    buttons: NDArray[np.uint8] = choice.pair.to(torch.uint8).cpu().numpy()
    return spin, buttons

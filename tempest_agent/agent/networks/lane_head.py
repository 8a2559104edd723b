"""Values by the lane in which the claw lands, from that lane's encoding.

A turn of the knob moves the claw by its counts, 16 to a lane, and what a tick does to the player
depends on the lane it ends in.  That lane depends on the claw's place within its own lane, so the
same count is safe from one place and deadly from the next.  With values of fixed counts a network
has to learn that table by heart for each of the 16 places.  Here it is arithmetic: the head values
three places (low edge, middle, high edge) of each lane in reach, from the lane's own encoding and
the whole state, with the same weights for every lane, and the value of a count is read off at the
place where it lands, along straight lines within a lane and with a step between lanes.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from .landings import LANE_COUNTS

OFFSETS = (-2, -1, 0, 1, 2)
"""Lanes in reach of one turn, relative to the claw's own when the turn acts."""

NODES = 3
HALVES = 15
"""Unit of the weights: 1/15, the steps between two nodes in half counts."""


def landing_weights(counts: int) -> NDArray[np.int8]:
    """Return the share of each node in the value of each count, in units of 1/15.

    Args:
        counts: largest count of a turn, at most 32.

    Returns:
        ``(16, 5 * 3, 2 * counts + 1)``: place in the lane before the turn, node of a lane in
        reach, count from ``-counts`` to ``counts``.  Positive counts lead to lower lanes.
    """
    table = np.zeros((LANE_COUNTS, len(OFFSETS) * NODES, 2 * counts + 1), np.int8)
    for place in range(LANE_COUNTS):
        for turn in range(-counts, counts + 1):
            lane, within = divmod(place - turn, LANE_COUNTS)
            node, beyond = divmod(2 * within, HALVES)
            first = OFFSETS.index(lane) * NODES + node
            table[place, first, turn + counts] = HALVES - beyond
            if beyond:
                table[place, first + 1, turn + counts] = beyond
    return table


class LaneHead(nn.Module):
    """Values ``(B, P, 2 * counts + 1)`` of button pairs and knob counts, up to the state value.

    Args:
        lane_width: numbers of a lane's encoding.
        width: numbers of the encoding of the whole state.
        pairs: button pairs, P.
        counts: largest count of a turn.
        layer_norm: whether the hidden layers' outputs are normalised.
    """

    weights: Tensor
    """Landing weights, whole numbers, so that a cast of the network leaves them."""

    def __init__(
        self, lane_width: int, width: int, pairs: int, counts: int, layer_norm: bool = True
    ) -> None:
        super().__init__()
        self.pairs = pairs
        self.state = nn.Linear(width, lane_width)
        self.mix = nn.Linear(2 * lane_width + len(OFFSETS), lane_width)
        self.state_norm, self.mix_norm = (
            nn.LayerNorm(lane_width) if layer_norm else nn.Identity() for _ in range(2)
        )
        self.nodes = nn.Linear(lane_width, pairs * NODES)
        with torch.no_grad():
            self.nodes.weight.mul_(0.1)
            self.nodes.bias.zero_()
        self.register_buffer("weights", torch.from_numpy(landing_weights(counts)), persistent=False)

    def forward(self, lanes: Tensor, latent: Tensor, claw: Tensor) -> Tensor:
        """Return the values for lanes ``(B, 16, W)``, a state ``(B, H)`` and ``claw_place``.

        The values of all nodes add up to 0 in every state.
        """
        rows, reach = latent.shape[0], len(OFFSETS)
        state = torch.relu(self.state_norm(self.state(latent)))
        near = lanes_in_reach(lanes, claw).to(state.dtype)
        which = torch.eye(reach, dtype=state.dtype, device=state.device)
        inputs = torch.cat(
            (near, state.unsqueeze(1).expand(-1, reach, -1), which.expand(rows, -1, -1)), dim=2
        )
        hidden = torch.relu(self.mix_norm(self.mix(inputs)))
        values = self.nodes(hidden).float().unflatten(2, (self.pairs, NODES))
        values = values.permute(0, 2, 1, 3).flatten(2)
        values = values - values.mean(dim=(1, 2), keepdim=True)
        weights = self.weights[claw % LANE_COUNTS].to(values.dtype) / HALVES
        return torch.bmm(values, weights)


def lanes_in_reach(lanes: Tensor, claw: Tensor) -> Tensor:
    """Return the encodings ``(B, 5, W)`` of the lanes in reach of ``claw_place``, by ``OFFSETS``.

    ``lanes``: ``(B, 16, W)``, that of the lane where the claw stands now first.
    """
    own = torch.div(claw, LANE_COUNTS, rounding_mode="floor")
    offsets = torch.arange(OFFSETS[0], OFFSETS[-1] + 1, device=claw.device)
    reach = (own.unsqueeze(1) + offsets) % lanes.shape[1]
    return lanes.gather(1, reach.unsqueeze(2).expand(-1, -1, lanes.shape[2]))

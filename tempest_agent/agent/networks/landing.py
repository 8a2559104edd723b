"""Which knob counts are alike, and which lanes are in reach: by the lane where a turn lands."""

from __future__ import annotations

import torch
from torch import Tensor

from .deadly_lanes import landing_lanes
from .lane_head import LANE_COUNTS, OFFSETS
from .layout import Layout


def bells(width: float) -> Tensor:
    """Return the graded likeness of counts to each count: a bell within the lane it lands in.

    Args:
        width: standard deviation of the bell, in counts.

    Returns:
        ``(16, 63, 63)``: place in the lane, wanted count, likeness of every
        count; the likenesses to a count add up to 1.
    """
    lanes = landing_lanes()
    turn = torch.arange(lanes.shape[1], dtype=torch.float32)
    bell = torch.exp(-0.5 * ((turn - turn.unsqueeze(1)) / width).square())
    alike = bell * (lanes.unsqueeze(1) == lanes.unsqueeze(2))
    return alike / alike.sum(dim=2, keepdim=True)


def lanes_there(observation: Tensor, layout: Layout) -> Tensor:
    """Return which of ``OFFSETS`` can be reached, bool ``(B, 5)``: open wells have two ends."""
    columns = [
        offset % LANE_COUNTS * layout.lane_features + layout.lane_exists for offset in OFFSETS
    ]
    there = observation[:, columns] > 0
    own = OFFSETS.index(0)
    for index in range(own + 2, len(OFFSETS)):
        there[:, index] &= there[:, index - 1]
    for index in range(own - 2, -1, -1):
        there[:, index] &= there[:, index + 1]
    return there

"""The lane in which each knob count lands, by arithmetic."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from .lane_head import LANE_COUNTS, OFFSETS
from .layout import Layout


def landing_lanes(counts: int) -> Tensor:
    """Return the index in ``OFFSETS`` of the lane that each count leads to.

    Args:
        counts: largest count of a turn, at most 31.

    Returns:
        int64 ``(16, 2 * counts + 1)``: place in the lane before the turn, count from ``-counts``.
    """
    place, turn = np.arange(LANE_COUNTS)[:, None], np.arange(-counts, counts + 1)
    return torch.from_numpy((place - turn) // LANE_COUNTS - OFFSETS[0])


def bells(counts: int, width: float) -> Tensor:
    """Return the graded likeness of counts to each count: a bell within the lane it lands in.

    Args:
        counts: largest count of a turn, at most 31.
        width: standard deviation of the bell, in counts.

    Returns:
        ``(16, 2 * counts + 1, 2 * counts + 1)``: place in the lane, wanted count, likeness of every
        count; the likenesses to a count add up to 1.
    """
    lanes = landing_lanes(counts)
    turn = torch.arange(2 * counts + 1, dtype=torch.float32)
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

"""Turns that end in a lane that is deadly in this tick, from the observation's danger table.

The claw moves first in a tick, so the lane where it lands is the lane in which it meets what is
deadly in that tick.  On an open well it stops at the edge: a turn beyond the last lane ends in the
last lane, whichever lane lies on the other side of the gap.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tempest_agent.envs.machine.inputs import SPINNER_MAX
from tempest_agent.envs.machine.memory import LANES
from tempest_agent.errors import UserError

from .lane_head import LANE_COUNTS, OFFSETS, place_in_lane
from .layout import Layout


def require_danger_table(layout: Layout) -> None:
    """Raise UserError unless observations of ``layout`` say which lanes are deadly."""
    fits = layout.lane_features and layout.lane_position >= 0 and layout.counts == SPINNER_MAX
    if not (fits and layout.forecast_features):
        raise UserError(
            "network.avoids_deadly=true needs to know the lanes that are deadly in this tick, and "
            "this observation has no danger table; leave it off, or play with the observation "
            "that has one"
        )


def landing_lanes() -> Tensor:
    """Return the lane of each turn: int64 ``(16, 63)``, an index of ``OFFSETS``.

    By the place in the lane before the turn and the knob count from -31 to 31; positive counts
    lead to lower lanes.
    """
    place, turn = np.arange(LANE_COUNTS)[:, None], np.arange(-SPINNER_MAX, SPINNER_MAX + 1)
    return torch.from_numpy((place - turn) // LANE_COUNTS - OFFSETS[0])


def deadly_in_reach(observation: Tensor, layout: Layout) -> Tensor:
    """Return whether a turn by each of ``OFFSETS`` lanes ends deadly, bool ``(B, 5)``.

    ``observation``: ``(B, F)`` of any scale.  Where the well ends on the way, that is the last
    lane before the end.
    """
    size = layout.forecast_features
    table = layout.num_features - LANES * size

    def deadly(lane: int) -> Tensor:
        return observation[:, table + lane % LANES * size] > 0

    def exists(lane: int) -> Tensor:
        return observation[:, lane % LANES * layout.lane_features + layout.lane_exists] > 0

    found = {0: deadly(0)}
    for side in (-1, 1):
        is_open = torch.ones_like(found[0])
        for lane in range(side, side * (len(OFFSETS) // 2 + 1), side):
            is_open = is_open & exists(lane)
            found[lane] = torch.where(is_open, deadly(lane), found[lane - side])
    return torch.stack([found[offset] for offset in OFFSETS], dim=1)


def deadly_turns(observation: Tensor, layout: Layout, lanes: Tensor) -> Tensor:
    """Return which knob counts from -31 to 31 end in a deadly lane, bool ``(B, 63)``.

    ``lanes``: ``landing_lanes`` on the observation's device.
    """
    place = place_in_lane(observation[:, layout.lane_position])
    return deadly_in_reach(observation, layout).gather(1, lanes[place])

"""Turns that end in a lane that is deadly in this tick, from the observation's forecast.

The claw moves first in a tick, so the lane where it lands is the one in which it meets what is
deadly in that tick.  The forecast begins with the tick in which the decision acts.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tempest_agent.envs.machine.inputs import SPINNER_MAX
from tempest_agent.envs.machine.memory import LANES
from tempest_agent.errors import UserError

from .landings import LANE_COUNTS, landings
from .layout import Layout


def require_forecast(layout: Layout) -> None:
    """Raise UserError unless observations of ``layout`` say which lanes are deadly."""
    fits = layout.lane_features and layout.lane_position >= 0 and layout.counts == SPINNER_MAX
    if not (fits and layout.forecast_features):
        raise UserError(
            "network.avoids_deadly=true needs Tempest's forecast of deadly lanes, which this "
            "observation does not have; leave it off, or play with obs_type='features'"
        )


def deadly_turns(observation: Tensor, layout: Layout) -> Tensor:
    """Return which knob counts from -31 to 31 end in a deadly lane, bool ``(B, 63)``.

    ``observation``: features ``(B, F)``.
    """
    _, landed = landings(observation, layout)
    first, size = layout.forecast_start, layout.forecast_features
    deadly = observation[:, first : first + LANES * size : size] > 0
    return deadly.gather(1, torch.div(landed, LANE_COUNTS, rounding_mode="floor") % LANES)

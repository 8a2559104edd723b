"""Turns that end in a lane that is deadly in this tick, from the observation's forecast.

The claw moves first in a tick, so the lane where it lands is the one in which it meets what is
deadly in that tick.  On an open well it stops at the edge: a turn beyond the last lane ends in the
last lane, whichever lane lies on the other side of the gap.  Inputs that are still under way turn
the claw before the decision does; the forecast begins with the tick in which the decision acts.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tempest_agent.envs.machine.inputs import SPINNER_MAX
from tempest_agent.envs.machine.memory import LANES
from tempest_agent.errors import UserError

from .lane_head import LANE_COUNTS, place_in_lane
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


def landings(observation: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
    """Return where the claw is when the decision acts, and where each knob count then leads to.

    Args:
        observation: features ``(B, F)``.
        layout: of the observation.

    Returns:
        int64 ``(B,)`` and ``(B, 63)``, in counts from the low edge of the lane where it stands.
    """
    lowest, highest = edges(observation, layout)
    claw = place_in_lane(observation[:, layout.lane_position])
    for index in layout.pending_spins:
        counts = (observation[:, index].float() * SPINNER_MAX).round().to(torch.int64)
        claw = torch.minimum(torch.maximum(claw - counts, lowest), highest)
    turns = torch.arange(-SPINNER_MAX, SPINNER_MAX + 1, device=observation.device)
    landed = claw.unsqueeze(1) - turns
    landed = torch.minimum(torch.maximum(landed, lowest.unsqueeze(1)), highest.unsqueeze(1))
    return claw, landed


def edges(observation: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
    """Return the lowest and the highest position along the rim, int64 ``(B,)`` each.

    In counts from the low edge of the lane where the claw stands; far away on a closed well.
    """
    size = layout.lane_features
    exists = observation[:, layout.lane_exists : LANES * size : size] > 0
    gap = exists.to(torch.int8).argmin(dim=1)
    none = exists.all(dim=1)
    far = LANES * LANE_COUNTS * LANE_COUNTS
    lowest = torch.where(none, -far, (gap + 1 - LANES) * LANE_COUNTS)
    return lowest, torch.where(none, far, gap * LANE_COUNTS - 1)

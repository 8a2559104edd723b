"""Where the claw is when a decision acts, and where each knob count then takes it.

Inputs that are still under way turn the claw before the decision does.  On an open well it stops
at the edge: a turn beyond the last lane ends in the last lane, whichever lane lies on the other
side of the gap.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tempest_agent.envs.features.layout import FEATURE_SCALE, PLACE_CODE
from tempest_agent.envs.machine.inputs import SPINNER_MAX
from tempest_agent.envs.machine.memory import LANES

from .layout import Layout

LANE_COUNTS = 16
"""Knob counts from one lane to the next; the claw stands at 0 to 15 of them within its lane."""

_CODE_STEP = PLACE_CODE / FEATURE_SCALE


def claw_place(observation: Tensor, layout: Layout) -> Tensor:
    """Return where the claw is when the decision acts, int64 ``(B,)``.

    In counts from the low edge of the lane where it stands now, for features ``(B, F)``.
    """
    if not layout.pending_spins:
        return place_in_lane(observation[:, layout.lane_position])
    return _after_pending(observation, layout, *edges(observation, layout))


def _after_pending(observation: Tensor, layout: Layout, lowest: Tensor, highest: Tensor) -> Tensor:
    """Return ``claw_place`` where the rim ends at ``lowest`` and ``highest``, ``(B,)`` each."""
    claw = place_in_lane(observation[:, layout.lane_position])
    for index in layout.pending_spins:
        counts = (observation[:, index].float() * SPINNER_MAX).round().to(torch.int64)
        claw = torch.minimum(torch.maximum(claw - counts, lowest), highest)
    return claw


def landings(observation: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
    """Return ``claw_place``, and where each knob count leads to from there.

    Args:
        observation: features ``(B, F)``.
        layout: of the observation.

    Returns:
        int64 ``(B,)`` and ``(B, 63)``, in counts from the low edge of the lane where it stands.
    """
    lowest, highest = edges(observation, layout)
    claw = _after_pending(observation, layout, lowest, highest)
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


def place_in_lane(position: Tensor) -> Tensor:
    """Return the counts 0 to 15 from the lane's low edge, int64, for the feature ``position``."""
    place = (position.float() / _CODE_STEP + (LANE_COUNTS - 1)) / 2
    return place.round().clamp(0, LANE_COUNTS - 1).to(torch.int64)

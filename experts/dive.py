"""Steering down the well after a wave: past the spikes."""

from __future__ import annotations

import numpy as np
from tempest_agent.envs.arcade.compiled import rule
from tempest_agent.envs.arcade.memory import BOTTOM_DEPTH, LANES, Ram

from .plan import HORIZON, LETHAL, Plan
from .weights import WeightsRecord

ACCELERATION_BASE = 0x20
ACCELERATION_TOP = 0x30


@rule
def forecast_dive(ram: Ram, plan: Plan, diving: bool, weights: WeightsRecord) -> None:
    """Fill ``plan.danger`` and ``plan.value`` for the dive, or for the warning pause before it.

    A lane is deadly in each tick in which the ship is deeper than its tip; the free lane, or the
    one with the deepest tip, is worth most.
    """
    plan.danger[:] = 0.0
    for lane in range(LANES):
        tip = np.int64(ram.spike_depth[lane])
        plan.value[lane] = float(BOTTOM_DEPTH + 16 if tip == 0 else tip)
    if not diving or not weights.knows_spikes:
        return
    acceleration = ACCELERATION_BASE + min(ACCELERATION_TOP, (4 * np.int64(ram.cur_wave)) & 0xFF)
    depth = np.int64(ram.player_depth) * 256 + np.int64(ram.player_depth_frac)
    speed = np.int64(ram.warp_speed_int) * 256 + np.int64(ram.warp_speed_frac)
    danger = plan.danger
    for tick in range(HORIZON):
        depth += speed
        speed += acceleration
        if depth >= BOTTOM_DEPTH * 256:
            return
        for lane in range(LANES):
            tip = np.int64(ram.spike_depth[lane])
            if tip != 0 and tip < depth >> 8:
                danger[tick, lane] = LETHAL

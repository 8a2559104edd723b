"""Steering down the well after a wave: past the spikes, or through what the shots leave of one."""

from __future__ import annotations

from tempest_agent.envs.arcade.shots import SHOT_SPEED, SHOT_SPEED_IN_SPIKE, SPIKE_HITS_PER_SHOT
from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import BOTTOM_DEPTH, LANES, PLAYER_SHOT_SLOTS, Ram

from .decision import HORIZON, LETHAL, Plan, mark_span
from .escape import REACH, rim_position
from .weights import WeightsRecord

ACCELERATION_BASE = 0x20
ACCELERATION_TOP = 0x30
START_SPEED = 0x200
CLEAR = 0x100
"""Depth that a dive counts as reaching when it ends at the bottom of the well."""
DEPTH_VALUE = 1.0 / 16.0
"""Worth of a lane for each unit of depth that can be reached in it."""


@rule
def dive_acceleration(ram: Ram) -> int:
    """Return the growth of the dive's speed per tick, in 1/256 depth."""
    return ACCELERATION_BASE + min(ACCELERATION_TOP, (4 * int64(ram.cur_wave)) & 0xFF)


@rule
def lanes_apart(ram: Ram, lane: int) -> int:
    """Return the lanes between the player and ``lane``, the shorter way."""
    apart = abs(lane - (rim_position(ram) >> 4))
    if ram.well_open:
        return apart
    return min(apart, LANES - apart)


@rule
def copy_shots(ram: Ram, plan: Plan, lane: int) -> None:
    """Copy the player's shots; those in other lanes than ``lane`` meet no spike that matters."""
    for shot in range(PLAYER_SHOT_SLOTS):
        plan.shot_depth[shot] = ram.player_shot_depth[shot]
        in_lane = int64(ram.player_shot_lane[shot]) == lane
        plan.shot_cuts[shot] = int64(ram.player_shot_hits[shot]) if in_lane else -1


@rule
def move_shots(plan: Plan, tip: int) -> int:
    """Move the copied shots by one tick; returns where they leave the tip of the spike."""
    for shot in range(PLAYER_SHOT_SLOTS - 1, -1, -1):
        depth = plan.shot_depth[shot]
        if depth == 0:
            continue
        cuts = plan.shot_cuts[shot]
        depth += SHOT_SPEED_IN_SPIKE if cuts > 0 else SHOT_SPEED
        if tip != 0 and cuts >= 0 and depth >= tip:
            tip = depth if depth < BOTTOM_DEPTH else 0
            cuts += 1
        plan.shot_cuts[shot] = cuts
        plan.shot_depth[shot] = 0 if cuts >= SPIKE_HITS_PER_SHOT or depth >= BOTTOM_DEPTH else depth
    return tip


@rule
def launch_shot(plan: Plan, depth: int) -> None:
    """Launch a copied shot at ``depth`` if one is free."""
    for shot in range(PLAYER_SHOT_SLOTS - 1, -1, -1):
        if plan.shot_depth[shot] == 0:
            plan.shot_depth[shot] = depth
            plan.shot_cuts[shot] = 0
            return


@rule
def depth_reached(ram: Ram, plan: Plan, lane: int, depth: int, speed: int) -> int:
    """Return how deep the player gets who steers to ``lane`` and fires there; CLEAR for the bottom.

    ``depth`` and ``speed`` are 8.8 numbers.  From the tick on in which what the shots left of the
    spike would kill, the lane is marked in the danger table.
    """
    tip = int64(ram.spike_depth[lane])
    if tip == 0:
        return CLEAR
    copy_shots(ram, plan, lane)
    acceleration = dive_acceleration(ram)
    arrival = (lanes_apart(ram, lane) + REACH - 1) // REACH - 1
    tick = 0
    while True:
        depth += speed
        speed += acceleration
        if depth >= BOTTOM_DEPTH * 256:
            return CLEAR
        if tick >= arrival:
            if tip != 0 and tip < depth >> 8:
                mark_span(plan.danger, tick, HORIZON, lane, LETHAL)
                return depth >> 8
            launch_shot(plan, depth >> 8)
        tip = move_shots(plan, tip)
        tick += 1


@rule
def forecast_dive(ram: Ram, plan: Plan, diving: bool, weights: WeightsRecord) -> None:
    """Fill ``plan.danger`` and ``plan.value`` for the dive, or for the warning pause before it."""
    plan.danger[:] = 0.0
    plan.value[:] = 0.0
    if not weights.knows_spikes:
        return
    depth = int64(ram.player_depth) * 256
    speed = START_SPEED
    if diving:
        depth += int64(ram.player_depth_frac)
        speed = int64(ram.warp_speed_int) * 256 + int64(ram.warp_speed_frac)
    for lane in range(LANES):
        plan.value[lane] = DEPTH_VALUE * depth_reached(ram, plan, lane, depth, speed)

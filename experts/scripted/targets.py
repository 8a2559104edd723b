"""The value of each lane: the enemies that can be hit from it."""

from __future__ import annotations

from tempest_agent.envs.forecast.enemy_programs import next_direction
from tempest_agent.envs.game_state.motion import is_walker, kind_of
from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import (
    ENEMY_SHOT_SLOTS,
    ENEMY_SLOTS,
    FUSEBALL,
    KIND_CCW,
    KIND_FLIPPING,
    KIND_MASK,
    PLAYER_SHOT_SLOTS,
    RIM_DEPTH,
    Ram,
)

from .decision import Plan
from .weights import WeightsRecord

SHOT_PASSED = 4
"""Depth by which a shot must be past an enemy before it counts as having missed it."""


@rule
def shot_meets(ram: Ram, slot: int, shot_lane: int) -> bool:
    """Return whether the enemy in ``slot`` can be hit by a shot in ``shot_lane``."""
    lane = int64(ram.enemy_lane[slot]) & 15
    kind = int64(ram.enemy_kind[slot])
    if kind & KIND_FLIPPING and kind & KIND_MASK != FUSEBALL:
        return shot_lane == lane or ((shot_lane + 1) & 15) == lane
    return shot_lane == lane


@rule
def covering_shot(ram: Ram, slot: int, spent: int) -> int:
    """Return a flying shot that may hit the enemy and is not in the mask ``spent``; -1 if none."""
    depth = int64(ram.enemy_depth[slot])
    for shot in range(PLAYER_SHOT_SLOTS):
        height = int64(ram.player_shot_depth[shot])
        if height == 0 or height > depth + SHOT_PASSED or (spent >> shot) & 1:
            continue
        if shot_meets(ram, slot, int64(ram.player_shot_lane[shot])):
            return shot
    return -1


@rule
def can_be_shot(ram: Ram, slot: int) -> bool:
    """Return whether a shot can hit the enemy now; fuseballs only while they roll in the well."""
    kind = int64(ram.enemy_kind[slot])
    at_rim = ram.enemy_depth[slot] == RIM_DEPTH
    if kind & KIND_MASK == FUSEBALL:
        return (kind & KIND_FLIPPING) != 0 and not at_rim
    return (kind & KIND_FLIPPING) != 0 or not at_rim


@rule
def add_walker(ram: Ram, plan: Plan, slot: int, weights: WeightsRecord) -> None:
    """Add ``walker_value`` to both lanes beside the spoke of the walker's flip."""
    kind = int64(ram.enemy_kind[slot])
    lane = int64(ram.enemy_lane[slot]) & 15
    pivot = lane
    ccw = (kind & KIND_CCW) != 0
    if not kind & KIND_FLIPPING and next_direction(ram.well_open != 0, lane, ccw):
        pivot = (lane + 1) & 15
    plan.value[pivot] += weights.walker_value
    plan.value[(pivot - 1) & 15] += weights.walker_value


@rule
def value_lanes(ram: Ram, plan: Plan, weights: WeightsRecord) -> None:
    """Fill ``plan.value`` with the sum over the enemies that can be hit from each lane."""
    value = plan.value
    value[:] = 0.0
    spent = 0
    for slot in range(ENEMY_SLOTS):
        depth = int64(ram.enemy_depth[slot])
        if depth == 0:
            continue
        if is_walker(ram, slot):
            add_walker(ram, plan, slot, weights)
            continue
        if not can_be_shot(ram, slot):
            continue
        kind = int64(ram.enemy_kind[slot])
        worth = weights.kind_value[kind_of(ram, slot)] * 100.0
        worth /= max(depth - RIM_DEPTH, 0) + weights.depth_offset
        shot = covering_shot(ram, slot, spent)
        if shot >= 0:
            spent |= 1 << shot
            worth *= weights.covered_factor
        lane = int64(ram.enemy_lane[slot]) & 15
        value[lane] += worth
        if kind & KIND_FLIPPING and kind & KIND_MASK != FUSEBALL:
            value[(lane - 1) & 15] += worth
    if weights.enemy_shot_value != 0.0:
        for slot in range(ENEMY_SHOT_SLOTS):
            if ram.enemy_shot_depth[slot]:
                value[int64(ram.enemy_shot_lane[slot]) & 15] += weights.enemy_shot_value

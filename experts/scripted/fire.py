"""The buttons: when to fire, and when the superzapper is worth a use."""

from __future__ import annotations

from tempest_agent.envs.arcade.superzapper import ZAPS_PER_WAVE
from tempest_agent.envs.game_state.motion import kind_of
from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import (
    ENEMY_SHOT_SLOTS,
    ENEMY_SLOTS,
    PLAYER_SHOT_SLOTS,
    RIM_DEPTH,
    Ram,
)

from .decision import LETHAL, Plan
from .targets import SHOT_PASSED, can_be_shot, covering_shot, shot_meets
from .weights import WeightsRecord

NEAR_DEPTH = 0x40
"""Depth from which an enemy can be at the rim while all the shots are still under way."""


@rule
def hits_at_muzzle(ram: Ram, slot: int, lane: int) -> bool:
    """Return whether a shot launched in ``lane`` hits the enemy in the tick of its launch."""
    depth = int64(ram.enemy_depth[slot])
    reach = int64(ram.hit_range[kind_of(ram, slot)])
    return abs(depth - RIM_DEPTH) < reach and can_be_shot(ram, slot) and shot_meets(ram, slot, lane)


@rule
def uncovered_in_lane(ram: Ram, lane: int) -> bool:
    """Return whether an enemy can be hit from ``lane`` towards which no shot flies yet."""
    spent = 0
    for slot in range(ENEMY_SLOTS):
        if ram.enemy_depth[slot] == 0 or not can_be_shot(ram, slot):
            continue
        shot = covering_shot(ram, slot, spent)
        if shot >= 0:
            spent |= 1 << shot
        elif shot_meets(ram, slot, lane):
            return True
    return False


@rule
def enemy_shot_in_lane(ram: Ram, lane: int) -> bool:
    """Return whether an enemy shot comes up ``lane`` with none of the player's before it."""
    for slot in range(ENEMY_SHOT_SLOTS):
        depth = int64(ram.enemy_shot_depth[slot])
        if depth == 0 or int64(ram.enemy_shot_lane[slot]) != lane:
            continue
        met = False
        for shot in range(PLAYER_SHOT_SLOTS):
            height = int64(ram.player_shot_depth[shot])
            in_lane = int64(ram.player_shot_lane[shot]) == lane
            met = met or (height != 0 and in_lane and height <= depth + SHOT_PASSED)
        if not met:
            return True
    return False


@rule
def muzzle_needed_soon(ram: Ram) -> bool:
    """Return whether an enemy walks the rim, or may before the next shot is spent."""
    if ram.enemies_on_rim:
        return True
    for slot in range(ENEMY_SLOTS):
        if 0 < ram.enemy_depth[slot] < NEAR_DEPTH:
            return True
    return False


@rule
def decide_fire(ram: Ram, plan: Plan, weights: WeightsRecord) -> bool:
    """Return whether to fire from ``plan.lane``.

    A hit at the muzzle costs no shot, as the slot is free again in the same tick, but needs a
    free one: so ``shot_reserve`` shots are kept for it while an enemy is near the rim.
    """
    flying = int64(ram.player_shot_count)
    if flying >= PLAYER_SHOT_SLOTS:
        return False
    lane = plan.lane
    for slot in range(ENEMY_SLOTS):
        if ram.enemy_depth[slot] and hits_at_muzzle(ram, slot, lane):
            return True
    if flying >= PLAYER_SHOT_SLOTS - weights.shot_reserve and muzzle_needed_soon(ram):
        return False
    if flying < weights.idle_shots:
        return True
    return uncovered_in_lane(ram, lane) or enemy_shot_in_lane(ram, lane)


@rule
def decide_zap(ram: Ram, plan: Plan, weights: WeightsRecord) -> bool:
    """Return whether to press the superzapper: where no way survives, or to end a wave.

    A wave lasts as long as its last enemies; with the queue empty, none can take their place.
    """
    if not can_zap(ram):
        return False
    return plan.best <= -0.5 * LETHAL or (weights.zaps_last != 0 and ram.queue_count == 0)


@rule
def can_zap(ram: Ram) -> bool:
    """Return whether a press of the superzapper would be a use of it, with something to hit."""
    if ram.zap_uses >= ZAPS_PER_WAVE or ram.zap_timer != 0:
        return False
    return int64(ram.enemies_in_well) + int64(ram.enemies_on_rim) > 0

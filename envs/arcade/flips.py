"""Turning from lane to lane: direction, the flip's first and following steps, fuseball rolls."""

from __future__ import annotations

from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import (
    FLAG_MOVING_DOWN,
    FUSEBALL,
    KIND_CCW,
    KIND_FLIPPING,
    KIND_MASK,
    Ram,
)
from tempest_agent.envs.machine.programs import P_FUSE_ROLL

FUSE_AT_REST = 0x20


@rule
def aim(ram: Ram, slot: int) -> None:
    """Turn the rotation bit towards the player; the own lane counts as counter-clockwise."""
    distance = int64(ram.player_lane) - int64(ram.enemy_lane[slot])
    if ram.well_open == 0:
        distance &= 0x0F
        if distance >= 8:
            distance -= 16
    if distance >= 0:
        ram.enemy_kind[slot] |= KIND_CCW
    else:
        ram.enemy_kind[slot] &= 0xFF - KIND_CCW


@rule
def reverse(ram: Ram, slot: int) -> None:
    ram.enemy_kind[slot] ^= KIND_CCW


@rule
def toggle_vertical(ram: Ram, slot: int) -> None:
    ram.enemy_flags[slot] ^= FLAG_MOVING_DOWN


@rule
def start_angle(ram: Ram, pivot: int, ccw: bool) -> int:
    """Return the angle (sixteenths of a turn) at which a flip about spoke ``pivot`` begins."""
    if ccw:
        return (int64(ram.lane_angle[(pivot - 1) & 0x0F]) + 8) & 0x0F
    return int64(ram.lane_angle[pivot])


@rule
def start_flip(ram: Ram, slot: int) -> None:
    """Start a flip about the lane's edge; on open wells the ends turn the enemy round."""
    lane = int64(ram.enemy_lane[slot])
    kind = int64(ram.enemy_kind[slot])
    if ram.well_open != 0:
        if (kind & KIND_CCW) != 0:
            if lane >= 0x0E:
                kind &= 0xFF - KIND_CCW
        elif lane == 0:
            kind |= KIND_CCW
    ccw = (kind & KIND_CCW) != 0
    pivot = (lane + 1) & 0x0F if ccw else lane
    ram.enemy_kind[slot] = kind | KIND_FLIPPING
    ram.enemy_lane[slot] = pivot
    ram.enemy_lane_ccw[slot] = 0x80 | start_angle(ram, pivot, ccw)


@rule
def step_flip(ram: Ram, slot: int) -> int:
    """Turn by one step of a flip or roll; return 0 if that ended it, else 0x80."""
    kind = int64(ram.enemy_kind[slot])
    ccw = (kind & KIND_CCW) != 0
    if (kind & KIND_MASK) == FUSEBALL:
        return step_roll(ram, slot, ccw)
    pivot = int64(ram.enemy_lane[slot])
    angle = int64(ram.enemy_lane_ccw[slot])
    angle = (angle - 1 if ccw else angle + 1) & 0x0F
    if angle != start_angle(ram, pivot, not ccw):
        ram.enemy_lane_ccw[slot] = 0x80 | angle
        return 0x80
    ram.enemy_kind[slot] = kind & (0xFF - KIND_FLIPPING)
    if ccw:
        ram.enemy_lane_ccw[slot] = (pivot + 1) & 0x0F
    else:
        ram.enemy_lane_ccw[slot] = pivot
        ram.enemy_lane[slot] = (pivot - 1) & 0x0F
    return 0


@rule
def start_roll(ram: Ram, slot: int) -> None:
    """Send a fuseball off to the neighbouring spoke; it turns back at the ends of open wells."""
    spoke = int64(ram.enemy_lane[slot])
    kind = int64(ram.enemy_kind[slot])
    if ram.well_open != 0:
        if (kind & KIND_CCW) == 0:
            if spoke >= 0x0F:
                kind ^= KIND_CCW
        elif spoke == 0:
            kind ^= KIND_CCW
    ram.enemy_kind[slot] = kind | KIND_FLIPPING
    if (kind & KIND_CCW) == 0:
        ram.enemy_lane_ccw[slot] = 0x81
    else:
        ram.enemy_lane[slot] = (spoke - 1) & 0x0F
        ram.enemy_lane_ccw[slot] = 0x87
    ram.enemy_script_pc[slot] = P_FUSE_ROLL


@rule
def chase(ram: Ram, slot: int) -> None:
    """Roll towards the player (the fuseball's rotation bit has the opposite sense)."""
    aim(ram, slot)
    reverse(ram, slot)
    start_roll(ram, slot)


@rule
def step_roll(ram: Ram, slot: int, to_lower: bool) -> int:
    angle = int64(ram.enemy_lane_ccw[slot]) & 0x0F
    angle = (angle - 1 if to_lower else angle + 1) | 0x80
    ram.enemy_lane_ccw[slot] = angle
    if (angle & 0x07) != 0:
        return 0x80
    if (angle & 0x08) != 0:
        ram.enemy_lane[slot] = (int64(ram.enemy_lane[slot]) + 1) & 0x0F
    ram.enemy_kind[slot] &= 0xFF - KIND_FLIPPING
    ram.enemy_lane_ccw[slot] = FUSE_AT_REST
    toggle_vertical(ram, slot)
    if ram.queue_count == 0 and ram.enemy_depth[slot] == ram.player_depth:
        chase(ram, slot)
    return 0

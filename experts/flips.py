"""Flips: how many steps from lane to lane, and where an enemy lands."""

from __future__ import annotations

from tempest_agent.envs.arcade.compiled import int64, rule
from tempest_agent.envs.arcade.memory import KIND_CCW, Ram


@rule
def flip_length(ram: Ram, pivot: int) -> int:
    """Steps of a whole flip about spoke ``pivot``: 1 to 16."""
    before = int64(ram.lane_angle[(pivot - 1) & 15])
    steps = (before + 8 - int64(ram.lane_angle[pivot & 15])) & 15
    return steps if steps else 16


@rule
def flip_steps_left(ram: Ram, slot: int) -> int:
    """Steps that the flipping enemy in ``slot`` has still to go: 1 to 16.  Not for fuseballs."""
    pivot = int64(ram.enemy_lane[slot]) & 15
    angle = int64(ram.enemy_lane_ccw[slot]) & 15
    if ram.enemy_kind[slot] & KIND_CCW:
        steps = (angle - int64(ram.lane_angle[pivot])) & 15
    else:
        steps = (int64(ram.lane_angle[(pivot - 1) & 15]) + 8 - angle) & 15
    return steps if steps else 16


@rule
def flip_landing(ram: Ram, slot: int) -> int:
    """The lane in which the flipping enemy in ``slot`` ends."""
    pivot = int64(ram.enemy_lane[slot]) & 15
    if ram.enemy_kind[slot] & KIND_CCW:
        return pivot
    return (pivot - 1) & 15


@rule
def next_direction(open_well: bool, lane: int, ccw: bool) -> bool:
    """Whether a flip started in ``lane`` goes up: on open wells the ends turn an enemy round."""
    if open_well and lane >= 14:
        return False
    if open_well and lane == 0:
        return True
    return ccw

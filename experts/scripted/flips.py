"""Flips: where an enemy lands, and to which side the next one goes."""

from __future__ import annotations

from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import KIND_CCW, Ram


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

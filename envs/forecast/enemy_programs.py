"""What an enemy's movement program does next: its steps, its flips, and the end of the queue."""

from __future__ import annotations

from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import ENEMY_SLOTS, KIND_CCW, QUEUE_SLOTS, Ram
from tempest_agent.envs.machine.programs import P_PULSAR, P_STEP8_FLIP, P_STRAIGHT

from .table import AHEAD

# Addresses in ``enemy_script_pc`` between two ticks: the step after the HALT that ended the last.
STRAIGHT, STRAIGHT_END = P_STRAIGHT, P_STEP8_FLIP
STEP8_MOVING, STEP8_FLIPPING = 0x0F, 0x13
RIM_WAITING = 0x46
PULSAR_STARTS, PULSAR_MOVED, PULSAR_LINGERS = P_PULSAR, 0x76, 0x7D


@rule
def stays_below(ram: Ram, slot: int, speed: int, limit: int) -> bool:
    """Return whether the climbing enemy is not foreseen to come nearer than ``limit``, 8.8."""
    depth = int64(ram.enemy_depth[slot]) * 256 + int64(ram.enemy_depth_frac[slot])
    return depth - limit >= AHEAD * speed


@rule
def flip_landing(ram: Ram, slot: int) -> int:
    """Return the lane in which the flipping enemy in ``slot`` ends."""
    pivot = int64(ram.enemy_lane[slot]) & 15
    if ram.enemy_kind[slot] & KIND_CCW:
        return pivot
    return (pivot - 1) & 15


@rule
def next_direction(open_well: bool, lane: int, ccw: bool) -> bool:
    """Return whether a flip started in ``lane`` goes up: the ends of an open well turn it round."""
    if open_well and lane >= 14:
        return False
    if open_well and lane == 0:
        return True
    return ccw


@rule
def queue_may_be_empty(ram: Ram, tick: int) -> bool:
    """Return whether all waiting enemies can have hatched by ``tick``.

    Pulsars and fuseballs change their ways then.  The queue's timers count single ticks; enemies
    hatch before any moves, so those that hatch in ``tick`` itself count.
    """
    if ram.queue_count > ENEMY_SLOTS:
        return False
    for entry in range(QUEUE_SLOTS):
        if int64(ram.queue_depth[entry]) > tick + 1:
            return False
    return True

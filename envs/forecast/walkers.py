"""Forecast of the enemies that walk the rim or are about to arrive there."""

from __future__ import annotations

from typing import Any

from tempest_agent.envs.game_state.motion import (
    flip_length,
    flip_steps_left,
    kind_of,
    kind_speed,
    ticks_to_depth,
)
from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import KIND_CCW, KIND_FLIPPING, RIM_DEPTH, Ram

from .enemy_programs import (
    RIM_WAITING,
    STEP8_FLIPPING,
    STEP8_MOVING,
    STRAIGHT,
    STRAIGHT_END,
    flip_landing,
    next_direction,
    stays_below,
)
from .table import AHEAD, Table, mark, span

GRAB_TICKS = 4
"""A walker tests for a grab in the tick in which it lands and in the three that follow."""


@rule
def forecast_walker(ram: Ram, slot: int, deadly: Any) -> None:
    """Mark the grabs of a rim walker: it keeps its direction and is never aimed again."""
    open_well = ram.well_open != 0
    steps = max(int64(ram.rim_flip_steps), 1)
    kind = int64(ram.enemy_kind[slot])
    ccw = (kind & KIND_CCW) != 0
    if kind & KIND_FLIPPING:
        lane = flip_landing(ram, slot)
        tick = (flip_steps_left(ram, slot) + steps - 1) // steps - 1
        last = tick + GRAB_TICKS
    else:
        lane = int64(ram.enemy_lane[slot]) & 15
        tick = 0
        waiting = GRAB_TICKS + 1
        if ram.enemy_script_pc[slot] == RIM_WAITING:
            waiting = int64(ram.enemy_loop[slot])
        last = waiting - 1
    while tick < AHEAD:
        mark(deadly, span(tick, last), lane)
        ccw = next_direction(open_well, lane, ccw)
        pivot = (lane + 1) & 15 if ccw else lane
        tick = last + (flip_length(ram, pivot) + steps - 1) // steps
        lane = pivot if ccw else (lane - 1) & 15
        last = tick + GRAB_TICKS


@rule
def straight_ticks(ram: Ram, slot: int) -> int:
    """Return for how many ticks a climbing enemy is sure to stay in its lane."""
    address = int64(ram.enemy_script_pc[slot])
    if STRAIGHT <= address < STRAIGHT_END:
        return AHEAD
    if address == STEP8_MOVING:
        return int64(ram.enemy_loop[slot]) - 1
    return 0


@rule
def forecast_arrival(ram: Ram, slot: int, table: Table) -> None:
    """Mark the lane in which a climbing enemy reaches the rim and grabs.

    Certain for enemies that climb straight and for flips that end at the rim; a possibility for
    those that may flip before.
    """
    kind = int64(ram.enemy_kind[slot])
    speed = kind_speed(ram, kind_of(ram, slot))
    limit = (RIM_DEPTH + 1) * 256
    if stays_below(ram, slot, speed, limit):
        return
    arrival = ticks_to_depth(ram, slot, speed, limit)
    if kind & KIND_FLIPPING:
        landing = flip_steps_left(ram, slot) - 1
        lane = flip_landing(ram, slot)
        if ram.enemy_script_pc[slot] == STEP8_FLIPPING:
            certain = True
            arrival += landing
        elif arrival <= landing + 1:
            # A spiral moves twice in the tick in which its flip ends.
            certain = True
            arrival = landing
        else:
            certain = False
    else:
        certain = arrival < straight_ticks(ram, slot)
        lane = int64(ram.enemy_lane[slot]) & 15
    ticks = span(arrival, arrival + GRAB_TICKS)
    if certain:
        mark(table.deadly, ticks, lane)
    else:
        mark(table.possible, ticks, lane)

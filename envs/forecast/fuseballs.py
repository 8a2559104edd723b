"""Forecast of fuseballs: they kill on touch at the rim, in the lane that they cross."""

from __future__ import annotations

from typing import Any

from tempest_agent.envs.arcade.climbing import EARLY_LEVELS
from tempest_agent.envs.game_state.motion import kind_speed, roll_end, ticks_to_depth
from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import (
    FLAG_MOVING_DOWN,
    FUSEBALL,
    KIND_CCW,
    KIND_FLIPPING,
    RIM_DEPTH,
    Ram,
)

from .enemy_programs import queue_may_be_empty
from .table import AHEAD, mark, span


@rule
def mark_spoke(deadly: Any, tick: int, spoke: int) -> None:
    """Mark both lanes beside ``spoke`` from ``tick`` on.

    A fuseball that reaches the rim, or ends a roll there, starts the next roll in the same tick
    and kills in the lane it then crosses: the player's side if it hunts, either one if not.
    """
    ticks = span(tick, AHEAD)
    mark(deadly, ticks, spoke)
    mark(deadly, ticks, spoke - 1)


@rule
def forecast_fuseball(ram: Ram, slot: int, deadly: Any) -> None:
    """Mark the lanes that a fuseball makes deadly, rolls and arrivals included."""
    spoke = int64(ram.enemy_lane[slot]) & 15
    down = (int64(ram.enemy_flags[slot]) & FLAG_MOVING_DOWN) != 0
    start = 0
    if int64(ram.enemy_kind[slot]) & KIND_FLIPPING:
        start = roll_end(ram, slot)
        lane = spoke
        if not int64(ram.enemy_kind[slot]) & KIND_CCW:
            spoke = (spoke + 1) & 15
        if ram.enemy_depth[slot] == RIM_DEPTH:
            mark(deadly, span(0, start), lane)
            if down or queue_may_be_empty(ram, start):
                mark_spoke(deadly, start, spoke)
            return
        down = not down
    if down:
        return
    arrival = ticks_to_depth(ram, slot, kind_speed(ram, FUSEBALL), (RIM_DEPTH + 1) * 256)
    tick = start + arrival
    if ram.cur_wave < EARLY_LEVELS and not queue_may_be_empty(ram, tick):
        return
    mark_spoke(deadly, tick, spoke)

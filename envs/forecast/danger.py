"""The dangers of play: which lane is deadly in which of the next ticks."""

from __future__ import annotations

from typing import Any

from tempest_agent.envs.arcade.spawn import SPLIT_NEAR_RIM
from tempest_agent.envs.game_state.motion import (
    enemy_shot_speed,
    is_walker,
    kind_of,
    kind_speed,
    ticks_to_depth,
)
from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import (
    CARGO_MASK,
    ENEMY_SHOT_SLOTS,
    ENEMY_SLOTS,
    FLAG_MOVING_DOWN,
    FUSEBALL,
    PULSAR,
    RIM_DEPTH,
    TANKER,
    Ram,
)

from .enemy_programs import stays_below
from .fuseballs import forecast_fuseball, mark_spoke
from .pulsars import forecast_pulsar, forecast_pulse, mark_pulses
from .table import AHEAD, Table, clear_table, mark, span
from .walkers import forecast_arrival, forecast_walker

SHOTS, WALKERS, PULSARS, FUSEBALLS = 1, 2, 4, 8
"""Bits of what a forecast knows of."""
EVERYTHING = SHOTS | WALKERS | PULSARS | FUSEBALLS

CARGO_PULSARS = 2
CARGO_FUSEBALLS = 3


@rule
def forecast_enemy_shots(ram: Ram, deadly: Any) -> None:
    """Mark the one tick in which each enemy shot passes the rim."""
    speed = enemy_shot_speed(ram)
    for slot in range(ENEMY_SHOT_SLOTS):
        depth = int64(ram.enemy_shot_depth[slot]) * 256 + int64(ram.enemy_shot_frac[slot])
        if depth < 256:
            continue
        tick = 0
        if depth - speed >= RIM_DEPTH * 256:
            tick = (depth - RIM_DEPTH * 256) // speed
        mark(deadly, span(tick, tick + 1), int64(ram.enemy_shot_lane[slot]))


@rule
def forecast_split(ram: Ram, table: Table, slot: int, knows: int) -> None:
    """Mark what a tanker with pulsars or fuseballs lets out when it splits short of the rim."""
    cargo = int64(ram.enemy_flags[slot]) & CARGO_MASK
    lane = int64(ram.enemy_lane[slot]) & 15
    speed = kind_speed(ram, TANKER)
    limit = SPLIT_NEAR_RIM * 256
    if stays_below(ram, slot, speed, limit):
        return
    split = ticks_to_depth(ram, slot, speed, limit)
    lower = (lane - 1) & 15
    if ram.well_open and lower == 15:
        lower = 0
    upper = (lower + 2) & 15
    if ram.well_open and upper == 15:
        upper = 14
    if cargo == CARGO_PULSARS and knows & PULSARS:
        forecast_pulse(ram, table)
        mark_pulses(table, split, AHEAD, lower)
        mark_pulses(table, split, AHEAD, upper)
    elif cargo == CARGO_FUSEBALLS and knows & FUSEBALLS:
        # A child in a lower slot than the tanker's own already moves in the tick of the split.
        depth = int64(ram.enemy_depth[slot]) * 256 + int64(ram.enemy_depth_frac[slot])
        depth -= (split + 1) * speed
        arrival = split + (depth - (RIM_DEPTH + 1) * 256) // kind_speed(ram, FUSEBALL)
        mark_spoke(table.deadly, arrival, lower)
        mark_spoke(table.deadly, arrival, upper)


@rule
def forecast_enemy(ram: Ram, table: Table, slot: int, player_lane: int, knows: int) -> None:
    """Mark the dangers of the enemy in ``slot``."""
    kind = kind_of(ram, slot)
    climbs = not int64(ram.enemy_flags[slot]) & FLAG_MOVING_DOWN
    if is_walker(ram, slot):
        if knows & WALKERS:
            forecast_walker(ram, slot, table.deadly)
    elif kind == FUSEBALL:
        if knows & FUSEBALLS:
            forecast_fuseball(ram, slot, table.deadly)
    elif kind == PULSAR:
        if knows & PULSARS:
            forecast_pulse(ram, table)
            forecast_pulsar(ram, table, slot, player_lane)
    elif kind == TANKER and int64(ram.enemy_flags[slot]) & CARGO_MASK:
        forecast_split(ram, table, slot, knows)
    elif climbs and knows & WALKERS:
        forecast_arrival(ram, slot, table)


@rule
def forecast(ram: Ram, table: Table, player_lane: int, knows: int) -> None:
    """Fill ``table`` from an image of play.

    ``player_lane``: where pulsars aim when they start a flip.  ``knows``: bits of what to look at.
    """
    clear_table(table)
    if knows & SHOTS and ram.enemy_shot_count:
        forecast_enemy_shots(ram, table.deadly)
    for slot in range(ENEMY_SLOTS):
        if ram.enemy_depth[slot]:
            forecast_enemy(ram, table, slot, player_lane, knows)

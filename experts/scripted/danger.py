"""The danger table: which lane is deadly in which of the next ticks."""

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
    LANES,
    PULSAR,
    RIM_DEPTH,
    TANKER,
    Ram,
)

from .decision import HORIZON, LETHAL, Plan, mark
from .fuseballs import forecast_fuseball, mark_spoke
from .pulsars import forecast_pulsar, forecast_pulse, mark_pulses
from .walkers import forecast_arrival, forecast_walker
from .weights import WeightsRecord

CARGO_PULSARS = 2
CARGO_FUSEBALLS = 3


@rule
def forecast_enemy_shots(ram: Ram, danger: Any) -> None:
    """Mark the one tick in which each enemy shot passes the rim."""
    speed = enemy_shot_speed(ram)
    for slot in range(ENEMY_SHOT_SLOTS):
        depth = int64(ram.enemy_shot_depth[slot]) * 256 + int64(ram.enemy_shot_frac[slot])
        if depth < 256:
            continue
        tick = 0
        if depth - speed >= RIM_DEPTH * 256:
            tick = (depth - RIM_DEPTH * 256) // speed
        mark(danger, tick, int64(ram.enemy_shot_lane[slot]), LETHAL)


@rule
def forecast_split(ram: Ram, plan: Plan, slot: int, weights: WeightsRecord) -> None:
    """Mark what a tanker with pulsars or fuseballs lets out when it splits short of the rim."""
    cargo = int64(ram.enemy_flags[slot]) & CARGO_MASK
    lane = int64(ram.enemy_lane[slot]) & 15
    split = ticks_to_depth(ram, slot, kind_speed(ram, TANKER), SPLIT_NEAR_RIM * 256)
    if split >= HORIZON:
        return
    lower = (lane - 1) & 15
    if ram.well_open and lower == 15:
        lower = 0
    upper = (lower + 2) & 15
    if ram.well_open and upper == 15:
        upper = 14
    if cargo == CARGO_PULSARS and weights.knows_pulsars:
        mark_pulses(plan, split, HORIZON, lower)
        mark_pulses(plan, split, HORIZON, upper)
    elif cargo == CARGO_FUSEBALLS and weights.knows_fuseballs:
        # A child in a lower slot than the tanker's own already moves in the tick of the split.
        depth = int64(ram.enemy_depth[slot]) * 256 + int64(ram.enemy_depth_frac[slot])
        depth -= (split + 1) * kind_speed(ram, TANKER)
        arrival = split + (depth - (RIM_DEPTH + 1) * 256) // kind_speed(ram, FUSEBALL)
        mark_spoke(plan.danger, arrival, lower)
        mark_spoke(plan.danger, arrival, upper)


@rule
def forecast_enemy(
    ram: Ram, plan: Plan, slot: int, player_lane: int, weights: WeightsRecord
) -> None:
    """Mark the dangers of the enemy in ``slot``."""
    kind = kind_of(ram, slot)
    climbs = not int64(ram.enemy_flags[slot]) & FLAG_MOVING_DOWN
    if is_walker(ram, slot):
        if weights.knows_walkers:
            forecast_walker(ram, slot, plan.danger)
    elif kind == FUSEBALL:
        if weights.knows_fuseballs:
            forecast_fuseball(ram, slot, plan.danger)
    elif kind == PULSAR:
        if weights.knows_pulsars:
            forecast_pulsar(ram, plan, slot, player_lane)
    elif kind == TANKER and int64(ram.enemy_flags[slot]) & CARGO_MASK:
        forecast_split(ram, plan, slot, weights)
    elif climbs and weights.knows_walkers:
        forecast_arrival(ram, slot, weights.near_rim_cost, plan.danger)


@rule
def forecast(ram: Ram, plan: Plan, player_lane: int, weights: WeightsRecord) -> None:
    """Fill ``plan.danger`` from the RAM image."""
    danger = plan.danger
    danger[:] = 0.0
    forecast_pulse(ram, plan)
    if weights.knows_shots and ram.enemy_shot_count:
        forecast_enemy_shots(ram, danger)
    for slot in range(ENEMY_SLOTS):
        if ram.enemy_depth[slot]:
            forecast_enemy(ram, plan, slot, player_lane, weights)


@rule
def forecast_chance(seen: Ram, plan: Plan, delay: int) -> None:
    """Add what chance may have decided before the decision acts: which way fuseballs roll.

    ``seen`` is the image ``delay`` ticks before the one that ``plan.danger`` was made from by
    rolling forward.  That roll took one side at random; the fuseball may take the other.
    """
    chance = plan.chance
    danger = plan.danger
    chance[:] = 0.0
    for slot in range(ENEMY_SLOTS):
        if seen.enemy_depth[slot] and kind_of(seen, slot) == FUSEBALL and not is_walker(seen, slot):
            forecast_fuseball(seen, slot, chance)
    for tick in range(HORIZON - delay):
        for lane in range(LANES):
            danger[tick, lane] = max(danger[tick, lane], chance[tick + delay, lane])

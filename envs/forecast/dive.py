"""The danger of the dive: the spikes, and what the player's shots leave of them."""

from __future__ import annotations

from tempest_agent.envs.arcade.shots import SHOT_SPEED, SHOT_SPEED_IN_SPIKE, SPIKE_HITS_PER_SHOT
from tempest_agent.envs.game_state.controls import REACH
from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import (
    BOTTOM_DEPTH,
    LANES,
    PLAYER_SHOT_SLOTS,
    STATE_WARP,
    Ram,
)

from .table import AHEAD, Table, clear_table, mark, span

ACCELERATION_BASE = 0x20
ACCELERATION_TOP = 0x30
START_SPEED = 0x200
CLEAR = 0x100
"""Depth that a dive counts as reaching when it ends at the bottom of the well."""


@rule
def dive_acceleration(ram: Ram) -> int:
    """Return the growth of the dive's speed per tick, in 1/256 depth."""
    return ACCELERATION_BASE + min(ACCELERATION_TOP, (4 * int64(ram.cur_wave)) & 0xFF)


@rule
def dive_depth(ram: Ram) -> int:
    """Return the player's depth, 8.8; of the pause before a dive, the depth it starts at."""
    depth = int64(ram.player_depth) * 256
    return depth + int64(ram.player_depth_frac) if ram.game_state == STATE_WARP else depth


@rule
def dive_speed(ram: Ram) -> int:
    """Return the speed of the dive, 8.8; of the pause before one, the speed it starts with."""
    if ram.game_state == STATE_WARP:
        return int64(ram.warp_speed_int) * 256 + int64(ram.warp_speed_frac)
    return START_SPEED


@rule
def lanes_apart(ram: Ram, place: int, lane: int) -> int:
    """Return the lanes between that of ``place`` on the rim and ``lane``, the shorter way."""
    apart = abs(lane - (place >> 4))
    if ram.well_open:
        return apart
    return min(apart, LANES - apart)


@rule
def copy_shots(ram: Ram, table: Table, lane: int) -> None:
    """Copy the player's shots; those in other lanes than ``lane`` meet no spike that matters."""
    for shot in range(PLAYER_SHOT_SLOTS):
        table.shot_depth[shot] = ram.player_shot_depth[shot]
        in_lane = int64(ram.player_shot_lane[shot]) == lane
        table.shot_cuts[shot] = int64(ram.player_shot_hits[shot]) if in_lane else -1


@rule
def move_shots(table: Table, tip: int) -> int:
    """Move the copied shots by one tick; returns where they leave the tip of the spike."""
    for shot in range(PLAYER_SHOT_SLOTS - 1, -1, -1):
        depth = table.shot_depth[shot]
        if depth == 0:
            continue
        cuts = table.shot_cuts[shot]
        depth += SHOT_SPEED_IN_SPIKE if cuts > 0 else SHOT_SPEED
        if tip != 0 and cuts >= 0 and depth >= tip:
            tip = depth if depth < BOTTOM_DEPTH else 0
            cuts += 1
        table.shot_cuts[shot] = cuts
        spent = cuts >= SPIKE_HITS_PER_SHOT or depth >= BOTTOM_DEPTH
        table.shot_depth[shot] = 0 if spent else depth
    return tip


@rule
def launch_shot(table: Table, depth: int) -> None:
    """Launch a copied shot at ``depth`` if one is free."""
    for shot in range(PLAYER_SHOT_SLOTS - 1, -1, -1):
        if table.shot_depth[shot] == 0:
            table.shot_depth[shot] = depth
            table.shot_cuts[shot] = 0
            return


@rule
def depth_reached(ram: Ram, table: Table, lane: int, place: int, delay: int, ticks: int) -> int:
    """Return how deep the player gets who steers to ``lane`` and fires there; CLEAR for the bottom.

    He starts from ``place`` on the rim in tick ``delay``, and is followed for ``ticks`` ticks.
    From the tick on in which what the shots left of the spike would kill, the lane is marked.
    """
    tip = int64(ram.spike_depth[lane])
    if tip == 0:
        return CLEAR
    copy_shots(ram, table, lane)
    depth = dive_depth(ram)
    speed = dive_speed(ram)
    acceleration = dive_acceleration(ram)
    arrival = delay + max((lanes_apart(ram, place, lane) + REACH - 1) // REACH - 1, 0)
    for tick in range(ticks):
        depth += speed
        speed += acceleration
        if depth >= BOTTOM_DEPTH * 256:
            return CLEAR
        if tick >= arrival:
            if tip != 0 and tip < depth >> 8:
                mark(table.deadly, span(tick, AHEAD), lane)
                return depth >> 8
            launch_shot(table, depth >> 8)
        tip = move_shots(table, tip)
    return CLEAR


@rule
def forecast_dive(ram: Ram, table: Table, place: int, delay: int) -> None:
    """Fill ``table`` for a dive, or for the pause before it as if the dive began at once."""
    clear_table(table)
    speed = dive_speed(ram) + dive_acceleration(ram) * (AHEAD - 1) // 2
    deepest = (dive_depth(ram) + AHEAD * speed) >> 8
    for lane in range(LANES):
        # Shots only shorten a spike: one that ends below what is reached kills nobody.
        if 0 < ram.spike_depth[lane] <= deepest:
            depth_reached(ram, table, lane, place, delay, AHEAD)

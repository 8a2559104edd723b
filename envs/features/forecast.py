"""The observation's forecast: the deadly ticks of each lane, and what enemies will turn to next."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.forecast.enemy_programs import flip_landing
from tempest_agent.envs.forecast.foresee import foresee
from tempest_agent.envs.forecast.table import HORIZON, Table
from tempest_agent.envs.forecast.turns import (
    UNKNOWN,
    flip_goes_up,
    flips_before_turn,
    ticks_to_flip,
)
from tempest_agent.envs.game_state.controls import place_after
from tempest_agent.envs.game_state.motion import is_walker, kind_of, roll_end
from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import (
    ENEMY_SLOTS,
    FLAG_MOVING_DOWN,
    FUSEBALL,
    KIND_CCW,
    KIND_FLIPPING,
    LANES,
    OPEN_LANES,
    PULSAR,
    Ram,
)

from . import layout as at
from .codes import FULL, flag, nearness, put_nearer, share, soon
from .layout import FORECAST_FEATURES, FORECAST_START, LANE_FEATURES

_EVERY_TICK = (1 << HORIZON) - 1


@rule
def block_of(lane: int, me: int) -> int:
    """Return where the forecast of ``lane`` starts, ``me`` being the player's lane."""
    return FORECAST_START + ((lane - me) & 15) * FORECAST_FEATURES


@rule
def write_forecast(
    ram: Ram, me: int, spins: NDArray[np.int8], delay: int, table: Table, out: NDArray[np.int8]
) -> None:
    """Write the whole tail; ``table`` is memory to work in.

    ``spins``: the counts under way, of which the first ``delay`` are read.
    """
    place = place_after(ram, spins, delay)
    foresee(ram, table, place, delay)
    for lane in range(OPEN_LANES if ram.well_open else LANES):
        ticks = (int64(table.deadly[lane]) >> delay) & _EVERY_TICK
        if ticks:
            base = block_of(lane, me)
            for tick in range(HORIZON):
                out[base + tick] = FULL * ((ticks >> tick) & 1)
    for slot in range(ENEMY_SLOTS):
        if ram.enemy_depth[slot] and not is_walker(ram, slot):
            _write_turns(ram, slot, me, place >> 4, table, out)


@rule
def _write_turns(
    ram: Ram, slot: int, me: int, player_lane: int, table: Table, out: NDArray[np.int8]
) -> None:
    lane = int64(ram.enemy_lane[slot])
    flipping = int64(ram.enemy_kind[slot]) & KIND_FLIPPING != 0
    if kind_of(ram, slot) == FUSEBALL:
        if flipping:
            _write_roll(ram, slot, lane, me, out)
        return
    if flipping:
        lane = flip_landing(ram, slot)
    base = block_of(lane, me)
    put_nearer(out, base + at.FLIPS_LEFT, share(flips_before_turn(ram, slot), 3))
    if flipping:
        return
    if kind_of(ram, slot) == PULSAR:
        _write_pulsar(ram, slot, lane, me, out)
    ticks = ticks_to_flip(ram, table, slot)
    if ticks != UNKNOWN and put_nearer(out, base + at.FLIP_TICKS, soon(ticks, 64)):
        up = flip_goes_up(ram, slot, player_lane)
        out[base + at.FLIP_SIDE] = FULL if up else -FULL


@rule
def _write_roll(ram: Ram, slot: int, lane: int, me: int, out: NDArray[np.int8]) -> None:
    """Write where the fuseball goes after its roll, if no other ends one across the lane before."""
    up = int64(ram.enemy_kind[slot]) & KIND_CCW == 0
    group = at.ROLL_UP if up else at.ROLL_DOWN
    first = out[((lane - me) & 15) * LANE_FEATURES + group + 1]
    if soon(roll_end(ram, slot), 32) == first:
        climbs = int64(ram.enemy_flags[slot]) & FLAG_MOVING_DOWN != 0
        out[block_of(lane, me) + (at.ROLL_UP_CLIMBS if up else at.ROLL_DOWN_CLIMBS)] = flag(climbs)


@rule
def _write_pulsar(ram: Ram, slot: int, lane: int, me: int, out: NDArray[np.int8]) -> None:
    """Write where the pulsar moves, if no other of its lane is nearer to the rim."""
    nearest = out[((lane - me) & 15) * LANE_FEATURES + at.KIND + 2 * PULSAR + 1]
    if nearness(int64(ram.enemy_depth[slot])) == nearest:
        down = int64(ram.enemy_flags[slot]) & FLAG_MOVING_DOWN != 0
        out[block_of(lane, me) + at.PULSAR_DOWN] = flag(down)

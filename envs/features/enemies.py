"""The observation of the enemies: each is written into the lanes that it concerns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.game_state.motion import (
    flip_steps_left,
    is_walker,
    kind_of,
    kind_speed,
    pulse_turns,
    roll_end,
    signed_byte,
    ticks_to_depth,
)
from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import (
    CARGO_MASK,
    ENEMY_SLOTS,
    FLAG_MAY_FIRE,
    FLAG_MOVING_DOWN,
    FLIPPER,
    FUSEBALL,
    KIND_CCW,
    KIND_FLIPPING,
    KIND_NAMES,
    PULSAR,
    RIM_DEPTH,
    TANKER,
    Ram,
)

from . import layout as at
from .codes import FULL, close, flag, nearness, put_nearer, soon
from .layout import LANE_FEATURES

_FIRE_DEPTH = 0x30
_STRIKE_HORIZON = 32


@rule
def _first_pulse(ram: Ram, first: int) -> int:
    """Return the first tick from ``first`` on in which pulsars kill; 32 if later."""
    phase = signed_byte(int64(ram.pulse_phase))
    step = signed_byte(int64(ram.pulse_step))
    for ticks in range(_STRIKE_HORIZON):
        if phase >= 0 and ticks >= first:
            return ticks
        phase += step
        if pulse_turns(phase):
            step = -step
    return _STRIKE_HORIZON


@rule
def _first_reach(ram: Ram, slot: int) -> int:
    """Return the first tick after whose move the pulsar is near enough to kill; 32 if later."""
    depth = int64(ram.enemy_depth[slot]) * 256 + ram.enemy_depth_frac[slot]
    limit = int64(ram.pulse_depth) * 256
    if ram.enemy_flags[slot] & FLAG_MOVING_DOWN != 0:
        return 0 if depth + kind_speed(ram, PULSAR) < limit else _STRIKE_HORIZON
    # Out of reach it climbs as fast as flippers do.
    speed = kind_speed(ram, PULSAR if depth < limit else FLIPPER)
    return min(ticks_to_depth(ram, slot, speed, limit), _STRIKE_HORIZON)


@rule
def _strike(ram: Ram, first: int, base: int, out: NDArray[np.int8]) -> None:
    """Write a pulsar that can kill in this lane from tick ``first`` on, while the pulse is on."""
    if first < _STRIKE_HORIZON:
        code = soon(_first_pulse(ram, first), _STRIKE_HORIZON)
        put_nearer(out, base + at.PULSAR_STRIKE, code)


@rule
def _standing(ram: Ram, slot: int, kind: int, base: int, out: NDArray[np.int8]) -> None:
    """Write an enemy that stands in one lane, neither flipping nor walking the rim."""
    depth = int64(ram.enemy_depth[slot])
    flags = int64(ram.enemy_flags[slot])
    near = nearness(depth)
    down = flags & FLAG_MOVING_DOWN != 0
    if out[base + at.NEAREST_FINE] != 0:
        out[base + at.CROWD] = min(FULL, out[base + at.CROWD] + FULL // 3)
    best = 0
    for other in range(len(KIND_NAMES)):
        best = max(best, int64(out[base + at.KIND + 2 * other + 1]))
    if near > best:
        out[base + at.NEAREST_FINE] = close(depth - RIM_DEPTH, 32)
        out[base + at.DESCENDING] = flag(down)
    nearest_of_kind = put_nearer(out, base + at.KIND + 2 * kind + 1, near)
    out[base + at.KIND + 2 * kind] = FULL
    if not down:
        arrival = ticks_to_depth(ram, slot, kind_speed(ram, kind), (RIM_DEPTH + 1) * 256)
        put_nearer(out, base + at.ARRIVAL, soon(arrival, 64))
    if kind == TANKER and nearest_of_kind:
        for cargo in range(3):
            out[base + at.CARGO + cargo] = flag(flags & CARGO_MASK == cargo + 1)
    elif kind == PULSAR:
        first = _first_reach(ram, slot)
        if first == 0:
            out[base + at.PULSAR_REACH] = FULL
        _strike(ram, first, base, out)
    if flags & FLAG_MAY_FIRE != 0 and depth >= _FIRE_DEPTH:
        put_nearer(out, base + at.AIMING, soon(int64(ram.enemy_fire_timer[slot]), 16))


@rule
def _flipping(ram: Ram, slot: int, up: bool, kind: int, me: int, out: NDArray[np.int8]) -> None:
    pivot = int64(ram.enemy_lane[slot])
    left = flip_steps_left(ram, slot)
    if is_walker(ram, slot):
        steps = max(int64(ram.rim_flip_steps), 1)
        left = (left + steps - 1) // steps
    below = ((pivot - 1 - me) & 15) * LANE_FEATURES
    above = ((pivot - me) & 15) * LANE_FEATURES
    near = nearness(int64(ram.enemy_depth[slot]))
    if up:
        out[below + at.LEAVING_UP] = FULL
        target, group = above, above + at.FLIP_UP
    else:
        out[above + at.LEAVING_DOWN] = FULL
        target, group = below, below + at.FLIP_DOWN
    out[group] = FULL
    if put_nearer(out, group + 1, near):
        out[group + 2] = soon(left - 1, 16)
    if kind == PULSAR:
        out[target + at.FLIP_PULSAR] = FULL
        _strike(ram, max(left - 1, _first_reach(ram, slot)), target, out)


@rule
def _rolling(ram: Ram, slot: int, up: bool, base: int, out: NDArray[np.int8]) -> None:
    group = base + (at.ROLL_UP if up else at.ROLL_DOWN)
    out[group] = FULL
    put_nearer(out, group + 1, soon(roll_end(ram, slot), 32))
    put_nearer(out, base + at.ROLL_NEARNESS, nearness(int64(ram.enemy_depth[slot])))


@rule
def _walking(ram: Ram, slot: int, up: bool, base: int, out: NDArray[np.int8]) -> None:
    group = base + (at.WALKER_UP if up else at.WALKER_DOWN)
    out[group] = FULL
    put_nearer(out, group + 1, soon(int64(ram.enemy_loop[slot]) - 1, 4))


@rule
def write_enemies(ram: Ram, me: int, out: NDArray[np.int8]) -> None:
    """Write every enemy, by what it is doing: rolling, flipping, walking the rim, or none."""
    depth = ram.enemy_depth
    kinds = ram.enemy_kind
    lanes = ram.enemy_lane
    for slot in range(ENEMY_SLOTS - 1, -1, -1):
        if depth[slot] == 0:
            continue
        kind = kind_of(ram, slot)
        bit = int64(kinds[slot]) & KIND_CCW != 0
        base = ((int64(lanes[slot]) - me) & 15) * LANE_FEATURES
        if kinds[slot] & KIND_FLIPPING:
            if kind == FUSEBALL:
                _rolling(ram, slot, not bit, base, out)
            else:
                _flipping(ram, slot, bit, kind, me, out)
        elif is_walker(ram, slot):
            _walking(ram, slot, bit, base, out)
        else:
            _standing(ram, slot, kind, base, out)

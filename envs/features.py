"""The default observation, written from the RAM image: see ``feature_layout`` for its numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from . import feature_layout as at
from .arcade.compiled import int64, kernel, rule
from .arcade.inputs import SPINNER_MAX
from .arcade.memory import (
    CARGO_MASK,
    ENEMY_SHOT_SLOTS,
    ENEMY_SLOTS,
    FLAG_MAY_FIRE,
    FLAG_MOVING_DOWN,
    FLIPPER,
    FUSEBALL,
    KIND_CCW,
    KIND_FLIPPING,
    KIND_MASK,
    KIND_NAMES,
    LANES,
    PLAYER_SHOT_SLOTS,
    PULSAR,
    QUEUE_SLOTS,
    RAM_DTYPE,
    RIM_DEPTH,
    STATE_PLAY,
    STATE_WARP,
    TANKER,
    Ram,
)
from .controls import ZAPS_PER_LEVEL, anybody_alive, player_alive, zap_legal
from .feature_layout import (
    FEATURE_SCALE,
    FEATURES,
    GLOBAL_FEATURES,
    GLOBALS_START,
    LANE_FEATURES,
    MAX_INPUT_DELAY,
    NUM_FEATURES,
    describe,
)
from .intrinsics import prefetch

__all__ = [
    "FEATURES",
    "FEATURE_SCALE",
    "GLOBALS_START",
    "GLOBAL_FEATURES",
    "LANE_FEATURES",
    "MAX_INPUT_DELAY",
    "NUM_FEATURES",
    "as_floats",
    "describe",
    "expect_floats",
    "observe",
    "write_features",
    "write_floats",
]

# Addresses of the movement programs (the machine's documentation, "movement programs").
_RIM_PROGRAM, _RIM_PROGRAM_END = 0x42, 0x53
_ROLL_JUST_STEPPED = 0x67
_PROGRAM_STARTS = np.array([0x07, 0x0B, 0x19, 0x24, 0x53, 0x87], np.int64)
_FIRE_CHANCE = np.array([127, 16, 8, 3, 1], np.int64)
"""Chance of an enemy's shot by the number of shots in flight: 1, 32, 16, 6 and 1 in 256."""

_FIRE_DEPTH = 0x30
_NYMPH_SETTLED = 0x40
_PULSE_TOP, _PULSE_BOTTOM = 15, -63
_STRIKE_HORIZON = 32
_LAST_LANE_OPEN = 14
_FULL = FEATURE_SCALE


@rule
def _nearness(depth: int) -> int:
    if depth <= RIM_DEPTH:
        return _FULL
    return max(1, (0xF0 - depth) * 120 // 223)


@rule
def _soon(ticks: int, horizon: int) -> int:
    if ticks <= 0:
        return _FULL
    if ticks >= horizon:
        return 1
    return max(1, 2 * _FULL // (ticks + 2))


@rule
def _close(distance: int, horizon: int) -> int:
    if distance <= 0:
        return _FULL
    if distance >= horizon:
        return 1
    return _FULL - 126 * distance // horizon


@rule
def _share(value: int, top: int) -> int:
    return min(_FULL, value * _FULL // top)


@rule
def _flag(condition: bool) -> int:
    return _FULL if condition else 0


@rule
def _signed_byte(value: int) -> int:
    return value - 256 if value >= 128 else value


@rule
def _speed(ram: Ram, kind: int) -> int:
    """Units of 1/256 depth a tick towards the rim."""
    return 0x10000 - (int64(ram.speed_int[kind]) * 256 + int64(ram.speed_frac[kind]))


@rule
def _ticks_until_pulse(ram: Ram) -> int:
    """Ticks that go by before the first one in which pulsars kill."""
    phase = _signed_byte(int64(ram.pulse_phase))
    step = _signed_byte(int64(ram.pulse_step))
    if phase >= 0:
        return 0
    ticks = 0
    if step < 0:
        ticks = (phase - _PULSE_BOTTOM) // -step + 1
        phase += ticks * step
        step = -step
    if step == 0:
        return 255
    return ticks + (-phase + step - 1) // step


@rule
def _first_pulse(ram: Ram, first: int) -> int:
    """The first tick from ``first`` on in which pulsars kill, 0 being the next; 32 if later."""
    phase = _signed_byte(int64(ram.pulse_phase))
    step = _signed_byte(int64(ram.pulse_step))
    for ticks in range(_STRIKE_HORIZON):
        if phase >= 0 and ticks >= first:
            return ticks
        phase += step
        if phase >= _PULSE_TOP or phase < _PULSE_BOTTOM:
            step = -step
    return _STRIKE_HORIZON


@rule
def _first_reach(ram: Ram, slot: int) -> int:
    """The first tick after whose move the pulsar is near enough to kill; 32 if later."""
    depth = int64(ram.enemy_depth[slot]) * 256 + ram.enemy_depth_frac[slot]
    limit = int64(ram.pulse_depth) * 256
    if ram.enemy_flags[slot] & FLAG_MOVING_DOWN != 0:
        return 0 if depth + _speed(ram, PULSAR) < limit else _STRIKE_HORIZON
    # Out of reach it climbs as fast as flippers do.
    speed = _speed(ram, PULSAR if depth < limit else FLIPPER)
    if depth - speed < limit:
        return 0
    return min((depth - limit) // speed, _STRIKE_HORIZON)


@rule
def _flip_steps_left(angle: NDArray[np.uint8], pivot: int, second: int, up: bool) -> int:
    """Steps until a flip about spoke ``pivot`` ends; ``second`` holds the present angle."""
    below = (int64(angle[(pivot - 1) & 15]) + 8) & 15
    above = int64(angle[pivot])
    now = second & 15
    left = (now - above) & 15 if up else (below - now) & 15
    return 16 if left == 0 else left


@rule
def _put_nearer(out: NDArray[np.int8], index: int, code: int) -> bool:
    """Keep the larger code at ``index``; whether ``code`` is the one kept."""
    if code > out[index]:
        out[index] = code
        return True
    return False


@rule
def _lanes(ram: Ram, me: int, out: NDArray[np.int8]) -> None:
    """What every lane has: whether it exists, its spike, and the turn to its neighbour."""
    angle = ram.lane_angle
    spike = ram.spike_depth
    player_depth = int64(ram.player_depth)
    last = _LAST_LANE_OPEN if ram.well_open else LANES - 1
    for lane in range(last + 1):
        base = ((lane - me) & 15) * LANE_FEATURES
        out[base + at.EXISTS] = _FULL
        if lane < last or last == LANES - 1:
            steps = (int64(angle[lane]) + 8 - angle[(lane + 1) & 15]) & 15
            out[base + at.FLIP_STEPS] = _share(16 if steps == 0 else steps, 16)
        tip = int64(spike[lane])
        if tip != 0:
            out[base + at.SPIKE] = _FULL
            out[base + at.SPIKE_NEARNESS] = _nearness(tip)
            out[base + at.SPIKE_MARGIN] = max(-_FULL, min(_FULL, 4 * (tip - player_depth)))


@rule
def _strike(ram: Ram, first: int, base: int, out: NDArray[np.int8]) -> None:
    """A pulsar that can kill in this lane from tick ``first`` on, whenever the pulse is on."""
    if first < _STRIKE_HORIZON:
        code = _soon(_first_pulse(ram, first), _STRIKE_HORIZON)
        _put_nearer(out, base + at.PULSAR_STRIKE, code)


@rule
def _standing(ram: Ram, slot: int, kind: int, base: int, out: NDArray[np.int8]) -> None:
    """An enemy that is in one lane, neither on its way to another nor walking the rim."""
    depth = int64(ram.enemy_depth[slot])
    flags = int64(ram.enemy_flags[slot])
    near = _nearness(depth)
    down = flags & FLAG_MOVING_DOWN != 0
    if out[base + at.NEAREST_FINE] != 0:
        out[base + at.CROWD] = min(_FULL, out[base + at.CROWD] + _FULL // 3)
    best = 0
    for other in range(len(KIND_NAMES)):
        best = max(best, int64(out[base + at.KIND + 2 * other + 1]))
    if near > best:
        out[base + at.NEAREST_FINE] = _close(depth - RIM_DEPTH, 32)
        out[base + at.DESCENDING] = _flag(down)
    nearest_of_kind = _put_nearer(out, base + at.KIND + 2 * kind + 1, near)
    out[base + at.KIND + 2 * kind] = _FULL
    if not down:
        left = depth * 256 + ram.enemy_depth_frac[slot] - (RIM_DEPTH + 1) * 256
        _put_nearer(out, base + at.ARRIVAL, _soon(left // _speed(ram, kind), 64))
    if kind == TANKER and nearest_of_kind:
        for cargo in range(3):
            out[base + at.CARGO + cargo] = _flag(flags & CARGO_MASK == cargo + 1)
    elif kind == PULSAR:
        first = _first_reach(ram, slot)
        if first == 0:
            out[base + at.PULSAR_REACH] = _FULL
        _strike(ram, first, base, out)
    if flags & FLAG_MAY_FIRE != 0 and depth >= _FIRE_DEPTH:
        _put_nearer(out, base + at.AIMING, _soon(int64(ram.enemy_fire_timer[slot]), 16))


@rule
def _flipping(ram: Ram, slot: int, up: bool, kind: int, me: int, out: NDArray[np.int8]) -> None:
    pivot = int64(ram.enemy_lane[slot])
    left = _flip_steps_left(ram.lane_angle, pivot, int64(ram.enemy_lane_ccw[slot]), up)
    if _RIM_PROGRAM <= ram.enemy_script_pc[slot] < _RIM_PROGRAM_END:
        steps = max(int64(ram.rim_flip_steps), 1)
        left = (left + steps - 1) // steps
    below = ((pivot - 1 - me) & 15) * LANE_FEATURES
    above = ((pivot - me) & 15) * LANE_FEATURES
    near = _nearness(int64(ram.enemy_depth[slot]))
    if up:
        out[below + at.LEAVING_UP] = _FULL
        target, group = above, above + at.FLIP_UP
    else:
        out[above + at.LEAVING_DOWN] = _FULL
        target, group = below, below + at.FLIP_DOWN
    out[group] = _FULL
    if _put_nearer(out, group + 1, near):
        out[group + 2] = _soon(left - 1, 16)
    if kind == PULSAR:
        out[target + at.FLIP_PULSAR] = _FULL
        _strike(ram, max(left - 1, _first_reach(ram, slot)), target, out)


@rule
def _rolling(ram: Ram, slot: int, up: bool, base: int, out: NDArray[np.int8]) -> None:
    second = int64(ram.enemy_lane_ccw[slot]) & 15
    steps = 8 - second if up else second
    loop = int64(ram.enemy_loop[slot])
    # One step in four ticks; the loop counter holds the ticks until the next one.
    wait = 4 if ram.enemy_script_pc[slot] == _ROLL_JUST_STEPPED else loop
    left = 4 * (steps - 1) + wait
    group = base + (at.ROLL_UP if up else at.ROLL_DOWN)
    out[group] = _FULL
    _put_nearer(out, group + 1, _soon(left - 1, 32))
    _put_nearer(out, base + at.ROLL_NEARNESS, _nearness(int64(ram.enemy_depth[slot])))


@rule
def _walking(ram: Ram, slot: int, up: bool, base: int, out: NDArray[np.int8]) -> None:
    group = base + (at.WALKER_UP if up else at.WALKER_DOWN)
    out[group] = _FULL
    _put_nearer(out, group + 1, _soon(int64(ram.enemy_loop[slot]) - 1, 4))


@rule
def _enemies(ram: Ram, me: int, out: NDArray[np.int8]) -> None:
    depth = ram.enemy_depth
    kinds = ram.enemy_kind
    lanes = ram.enemy_lane
    pc = ram.enemy_script_pc
    for slot in range(ENEMY_SLOTS - 1, -1, -1):
        if depth[slot] == 0:
            continue
        kind = int64(kinds[slot]) & KIND_MASK
        bit = int64(kinds[slot]) & KIND_CCW != 0
        base = ((int64(lanes[slot]) - me) & 15) * LANE_FEATURES
        if kinds[slot] & KIND_FLIPPING:
            if kind == FUSEBALL:
                _rolling(ram, slot, not bit, base, out)
            else:
                _flipping(ram, slot, bit, kind, me, out)
        elif _RIM_PROGRAM <= pc[slot] < _RIM_PROGRAM_END:
            _walking(ram, slot, bit, base, out)
        else:
            _standing(ram, slot, kind, base, out)


@rule
def _shots(ram: Ram, me: int, out: NDArray[np.int8]) -> None:
    depth = ram.player_shot_depth
    lanes = ram.player_shot_lane
    for slot in range(PLAYER_SHOT_SLOTS):
        if depth[slot] != 0:
            base = ((int64(lanes[slot]) - me) & 15) * LANE_FEATURES
            near = _nearness(int64(depth[slot]))
            out[base + at.OWN_SHOT] = _FULL
            _put_nearer(out, base + at.OWN_SHOT_NEAREST, near)
            farthest = out[base + at.OWN_SHOT_FARTHEST]
            if farthest == 0 or near < farthest:
                out[base + at.OWN_SHOT_FARTHEST] = near
    depth = ram.enemy_shot_depth
    lanes = ram.enemy_shot_lane
    fraction = ram.enemy_shot_frac
    speed = 0x10000 - (int64(ram.enemy_shot_speed_int) * 256 + ram.enemy_shot_speed_frac)
    for slot in range(ENEMY_SHOT_SLOTS):
        if depth[slot] != 0:
            base = ((int64(lanes[slot]) - me) & 15) * LANE_FEATURES
            if out[base + at.ENEMY_SHOT] != 0:
                out[base + at.ENEMY_SHOTS_MORE] = _FULL
            out[base + at.ENEMY_SHOT] = _FULL
            _put_nearer(out, base + at.ENEMY_SHOT_NEARNESS, _nearness(int64(depth[slot])))
            left = (int64(depth[slot]) - ram.player_depth) * 256 + fraction[slot]
            _put_nearer(out, base + at.ENEMY_SHOT_ARRIVAL, _soon(left // speed, 32))


@rule
def _nymphs(ram: Ram, me: int, out: NDArray[np.int8]) -> None:
    timers = ram.queue_depth
    lanes = ram.queue_lane
    count = int64(ram.queue_count)
    found = 0
    for i in range(QUEUE_SLOTS):
        if found == count:
            break
        timer = int64(timers[i])
        if timer == 0:
            continue
        found += 1
        lane = int64(lanes[i])
        if timer >= _NYMPH_SETTLED or (ram.well_open and lane > _LAST_LANE_OPEN):
            continue
        base = ((lane - me) & 15) * LANE_FEATURES
        out[base + at.NYMPH] = _FULL
        _put_nearer(out, base + at.NYMPH_HATCH, _soon(timer - 1, 64))


@rule
def _player(ram: Ram, out: NDArray[np.int8], g: int) -> int:
    lane = int64(ram.player_lane)
    out[g] = _flag(player_alive(ram))
    out[g + 1] = _flag(ram.game_state == STATE_PLAY)
    out[g + 2] = _flag(ram.game_state == STATE_WARP)
    lives = int64(ram.lives[ram.player_up & 1])
    out[g + 3] = _flag(lives <= 1)
    out[g + 4] = (2 * (int64(ram.rim_pos) & 15) - 15) * 8
    if ram.well_open:
        out[g + 5] = _FULL
        out[g + 6] = _FULL - 9 * min(lane, _LAST_LANE_OPEN)
        out[g + 7] = 1 + 9 * min(lane, _LAST_LANE_OPEN)
    out[g + 8] = _share(max(int64(ram.player_depth) - RIM_DEPTH, 0), 0xE0)
    if ram.game_state == STATE_WARP:
        speed = int64(ram.warp_speed_int) * 256 + ram.warp_speed_frac
        out[g + 9] = _share(speed, 24 * 256)
    shots = min(int64(ram.player_shot_count), PLAYER_SHOT_SLOTS)
    out[g + 10] = _share(shots, PLAYER_SHOT_SLOTS)
    out[g + 11] = _share(PLAYER_SHOT_SLOTS - shots, PLAYER_SHOT_SLOTS)
    out[g + 12] = _flag(ram.zap_uses == 0)
    out[g + 13] = _flag(ram.zap_uses == ZAPS_PER_LEVEL - 1)
    out[g + 14] = _flag(zap_legal(ram))
    if 0 < ram.zap_timer < 0x20:
        out[g + 15] = _FULL
        out[g + 16] = _share(int64(ram.zap_timer), 19)
    out[g + 17] = _share(max(lives - 1, 0), 5)
    return g + 18


@rule
def _level(ram: Ram, out: NDArray[np.int8], g: int) -> int:
    level = int64(ram.cur_wave) + 1
    out[g] = _share(level, 99)
    out[g + 1] = _share(level, 16)
    out[g + 2] = _share(level, 48)
    for program in range(len(_PROGRAM_STARTS)):
        out[g + 3 + program] = _flag(ram.flipper_script == _PROGRAM_STARTS[program])
    g += 9
    shot_speed = 0x10000 - (int64(ram.enemy_shot_speed_int) * 256 + ram.enemy_shot_speed_frac)
    out[g] = _share(_speed(ram, 0) & 0xFFFF, 2048)
    out[g + 1] = _share(_speed(ram, 3) & 0xFFFF, 2048)
    out[g + 2] = _share(shot_speed & 0xFFFF, 2048)
    out[g + 3] = _share(int64(ram.rim_flip_steps), 3)
    out[g + 4] = _share(int64(ram.enemy_fire_delay), 80)
    shots = min(int64(ram.enemy_shot_count), ENEMY_SHOT_SLOTS)
    slots = (int64(ram.enemy_shot_top_slot) + 1) & 0xFF
    out[g + 5] = _share(shots, ENEMY_SHOT_SLOTS)
    out[g + 6] = _share(slots, ENEMY_SHOT_SLOTS)
    if shots < slots:
        out[g + 7] = _FIRE_CHANCE[shots]
    out[g + 8] = _share(int64(ram.hit_range[0]), 12)
    out[g + 9] = _share(int64(ram.hit_range[3]), 12)
    out[g + 10] = _share(int64(ram.shot_shot_range), 12)
    return g + 11


@rule
def _clocks(ram: Ram, out: NDArray[np.int8], g: int) -> int:
    """The pulse clock and what pulsars and fuseballs do on this level."""
    phase = _signed_byte(int64(ram.pulse_phase))
    step = _signed_byte(int64(ram.pulse_step))
    out[g] = _flag(phase >= 0)
    out[g + 1] = _flag(step > 0)
    out[g + 2] = max(-_FULL, min(_FULL, phase * _FULL // 72))
    out[g + 3] = _share(abs(step), 8)
    out[g + 4] = _soon(_ticks_until_pulse(ram), 40)
    out[g + 5] = _share(max(int64(ram.pulse_depth) - RIM_DEPTH, 0), 0xE0)
    out[g + 6] = _share(int64(ram.pulsar_flip_delay), 64)
    out[g + 7] = _flag(ram.pulsar_fire != 0)
    out[g + 8] = _flag(ram.fuse_chase & 0x80 != 0)
    out[g + 9] = _flag(ram.fuse_chase & 0x40 != 0)
    out[g + 10] = _share(256 - int64(ram.fuse_move_threshold), 128)
    return g + 11


@rule
def _crowd(ram: Ram, out: NDArray[np.int8], g: int) -> int:
    queue = int64(ram.queue_count)
    out[g] = _share(queue, 16)
    out[g + 1] = _share(queue, 64)
    out[g + 2] = _flag(queue == 0)
    depth = ram.enemy_depth
    kinds = ram.enemy_kind
    pc = ram.enemy_script_pc
    alive = 0
    walkers = 0
    # Eighteen each: seven of a kind make 126, the code stays within its type.
    for slot in range(ENEMY_SLOTS):
        if depth[slot] != 0:
            alive += 1
            kind = min(int64(kinds[slot]) & KIND_MASK, FUSEBALL)
            out[g + 3 + kind] = min(_FULL, out[g + 3 + kind] + 18)
            if _RIM_PROGRAM <= pc[slot] < _RIM_PROGRAM_END:
                walkers += 1
    out[g + 8] = _share(alive, ENEMY_SLOTS)
    out[g + 9] = _flag(not anybody_alive(ram))
    out[g + 10] = _share(walkers, 4)
    out[g + 11] = _share(int64(ram.explosion_count), 8)
    spike = ram.spike_depth
    spikes = 0
    for lane in range(_LAST_LANE_OPEN + 1 if ram.well_open else LANES):
        if spike[lane] != 0:
            spikes += 1
    out[g + 12] = _share(spikes, 16)
    return g + 13


@rule
def _pending(
    spin: NDArray[np.int8], buttons: NDArray[np.uint8], delay: int, out: NDArray[np.int8], g: int
) -> None:
    out[g] = _share(delay, MAX_INPUT_DELAY)
    for tick in range(delay):
        here = g + 1 + 4 * tick
        out[here] = _FULL
        out[here + 1] = int64(spin[tick]) * _FULL // SPINNER_MAX
        out[here + 2] = _flag(buttons[tick] & 1 != 0)
        out[here + 3] = _flag(buttons[tick] & 2 != 0)


@rule
def write_features(
    ram: Ram,
    pending_spin: NDArray[np.int8],
    pending_buttons: NDArray[np.uint8],
    input_delay: int,
    out: NDArray[np.int8],
) -> None:
    """Write one game's observation codes into ``out``, int8 of shape ``(NUM_FEATURES,)``.

    ``pending_spin`` and ``pending_buttons`` (fire + 2*zap) hold the inputs that have been chosen
    but not yet put in, the next one first; the first ``input_delay`` (0-4) are read.
    """
    out[:] = 0
    me = int64(ram.player_lane) & 15
    _lanes(ram, me, out)
    _enemies(ram, me, out)
    _shots(ram, me, out)
    _nymphs(ram, me, out)
    g = _player(ram, out, GLOBALS_START)
    g = _level(ram, out, g)
    g = _clocks(ram, out, g)
    g = _crowd(ram, out, g)
    _pending(pending_spin, pending_buttons, input_delay, out, g)


@kernel
def _write_images(ram: Ram, out: NDArray[np.int8]) -> None:
    spin = np.zeros(MAX_INPUT_DELAY, np.int8)
    buttons = np.zeros(MAX_INPUT_DELAY, np.uint8)
    for i in range(len(ram)):
        write_features(ram[i], spin, buttons, 0, out[i])


def observe(ram: NDArray[np.void]) -> NDArray[np.int8]:
    """Observation codes of RAM images without pending inputs.

    ``ram`` has dtype ``RAM_DTYPE`` and shape ``(n,)``; the result has shape
    ``(n, NUM_FEATURES)``.
    """
    if ram.dtype != RAM_DTYPE or ram.ndim != 1:
        raise TypeError(
            f"observe() takes an array of RAM_DTYPE with one axis, got {ram.dtype.itemsize}-byte "
            f"items of shape {ram.shape}: convert bytes with arcade.memory.from_bytes()"
        )
    out = np.empty((len(ram), NUM_FEATURES), np.int8)
    _write_images(ram, out)
    return out


# 1/127 as a number of 16 bits, whose product with a code is exact, and what it lacks: the sum of
# the two products rounds to code / 127 for every code, at a third of a division's time.
_INVERSE = np.float32(round(2**22 / FEATURE_SCALE) / 2**22)
_INVERSE_REST = np.float32(1 / FEATURE_SCALE - float(_INVERSE))


_FLOATS_PER_LINE = 16


@rule
def write_floats(codes: NDArray[np.int8], out: NDArray[np.float32]) -> None:
    """Write ``codes / 127``; both arrays have one axis."""
    for i in range(len(codes)):
        code = np.float32(codes[i])
        out[i] = code * _INVERSE + code * _INVERSE_REST


@rule
def expect_floats(out: NDArray[np.float32], part: int) -> None:
    """Begin to bring third ``part`` (0-2) of ``out`` into the cache, before it is written.

    Many games' floats fit no cache.  Asked for in parts while a game is played, they are there
    in time; all at once they would hold up whatever else is read.
    """
    third = len(out) // (3 * _FLOATS_PER_LINE) + 1
    first = part * third * _FLOATS_PER_LINE
    stop = min(first + third * _FLOATS_PER_LINE, len(out))
    for index in range(first, stop, _FLOATS_PER_LINE):
        prefetch(out, index)


@kernel
def _write_all_floats(codes: NDArray[np.int8], out: NDArray[np.float32]) -> None:
    write_floats(codes, out)


def as_floats(codes: NDArray[np.int8]) -> NDArray[np.float32]:
    """Observation codes of any shape as the floats that the environment gives: ``codes / 127``."""
    out = np.empty(codes.shape, np.float32)
    _write_all_floats(np.ascontiguousarray(codes).reshape(-1), out.reshape(-1))
    return out

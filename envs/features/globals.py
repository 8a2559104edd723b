"""The observation of the whole game: player, level, clocks, crowd, pending inputs.

Each function writes its part from index ``g`` on and returns where the next one starts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.arcade.player import player_alive
from tempest_agent.envs.arcade.superzapper import ZAPS_PER_WAVE
from tempest_agent.envs.game_state.controls import anybody_alive, zap_legal
from tempest_agent.envs.game_state.motion import (
    PULSE_BOTTOM,
    enemy_shot_speed,
    is_walker,
    kind_of,
    kind_speed,
    signed_byte,
)
from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.inputs import MAX_INPUT_DELAY, SPINNER_MAX
from tempest_agent.envs.machine.memory import (
    ENEMY_SHOT_SLOTS,
    ENEMY_SLOTS,
    FLIPPER,
    LANES,
    OPEN_LANES,
    PLAYER_SHOT_SLOTS,
    RIM_DEPTH,
    SPIKER,
    STATE_PLAY,
    STATE_WARP,
    Ram,
)
from tempest_agent.envs.machine.programs import (
    P_AVOIDER,
    P_SPIKE_RIDER,
    P_SPIRAL,
    P_SPIRAL_ALTERNATE,
    P_STEP8_FLIP,
    P_STRAIGHT,
)

from .codes import FULL, flag, share, soon
from .layout import PLACE_CODE

_PROGRAM_STARTS = np.array(
    [P_STRAIGHT, P_STEP8_FLIP, P_SPIRAL, P_SPIRAL_ALTERNATE, P_SPIKE_RIDER, P_AVOIDER], np.int64
)
"""In the order of ``tables.PROGRAM_NAMES``."""

_FIRE_CHANCE = np.array([127, 16, 8, 3, 1], np.int64)
"""Chance of an enemy's shot by the number of shots in flight: 1, 32, 16, 6 and 1 in 256."""


@rule
def _ticks_until_pulse(ram: Ram) -> int:
    """Return the ticks that go by before the first one in which pulsars kill."""
    phase = signed_byte(int64(ram.pulse_phase))
    step = signed_byte(int64(ram.pulse_step))
    if phase >= 0:
        return 0
    ticks = 0
    if step < 0:
        ticks = (phase - PULSE_BOTTOM) // -step + 1
        phase += ticks * step
        step = -step
    if step == 0:
        return 255
    return ticks + (-phase + step - 1) // step


@rule
def write_player(ram: Ram, out: NDArray[np.int8], g: int) -> int:
    """Return the player's life, place, shots and superzapper."""
    lane = int64(ram.player_lane)
    out[g] = flag(player_alive(ram))
    out[g + 1] = flag(ram.game_state == STATE_PLAY)
    out[g + 2] = flag(ram.game_state == STATE_WARP)
    lives = int64(ram.lives[ram.player_up & 1])
    out[g + 3] = flag(lives <= 1)
    out[g + 4] = (2 * (int64(ram.rim_pos) & 15) - 15) * PLACE_CODE
    if ram.well_open:
        out[g + 5] = FULL
        out[g + 6] = FULL - 9 * min(lane, OPEN_LANES - 1)
        out[g + 7] = 1 + 9 * min(lane, OPEN_LANES - 1)
    out[g + 8] = share(max(int64(ram.player_depth) - RIM_DEPTH, 0), 0xE0)
    if ram.game_state == STATE_WARP:
        speed = int64(ram.warp_speed_int) * 256 + ram.warp_speed_frac
        out[g + 9] = share(speed, 24 * 256)
    shots = min(int64(ram.player_shot_count), PLAYER_SHOT_SLOTS)
    out[g + 10] = share(shots, PLAYER_SHOT_SLOTS)
    out[g + 11] = share(PLAYER_SHOT_SLOTS - shots, PLAYER_SHOT_SLOTS)
    out[g + 12] = flag(ram.zap_uses == 0)
    out[g + 13] = flag(ram.zap_uses == ZAPS_PER_WAVE - 1)
    out[g + 14] = flag(zap_legal(ram))
    if 0 < ram.zap_timer < 0x20:
        out[g + 15] = FULL
        out[g + 16] = share(int64(ram.zap_timer), 19)
    out[g + 17] = share(max(lives - 1, 0), 5)
    return g + 18


@rule
def write_level(ram: Ram, out: NDArray[np.int8], g: int) -> int:
    """Return the level's number, and its speeds, ranges and guns."""
    level = int64(ram.cur_wave) + 1
    out[g] = share(level, 99)
    out[g + 1] = share(level, 16)
    out[g + 2] = share(level, 48)
    for program in range(len(_PROGRAM_STARTS)):
        out[g + 3 + program] = flag(ram.flipper_script == _PROGRAM_STARTS[program])
    g += 9
    out[g] = share(kind_speed(ram, FLIPPER) & 0xFFFF, 2048)
    out[g + 1] = share(kind_speed(ram, SPIKER) & 0xFFFF, 2048)
    out[g + 2] = share(enemy_shot_speed(ram) & 0xFFFF, 2048)
    out[g + 3] = share(int64(ram.rim_flip_steps), 3)
    out[g + 4] = share(int64(ram.enemy_fire_delay), 80)
    shots = min(int64(ram.enemy_shot_count), ENEMY_SHOT_SLOTS)
    slots = (int64(ram.enemy_shot_top_slot) + 1) & 0xFF
    out[g + 5] = share(shots, ENEMY_SHOT_SLOTS)
    out[g + 6] = share(slots, ENEMY_SHOT_SLOTS)
    if shots < slots:
        out[g + 7] = _FIRE_CHANCE[shots]
    out[g + 8] = share(int64(ram.hit_range[0]), 12)
    out[g + 9] = share(int64(ram.hit_range[3]), 12)
    out[g + 10] = share(int64(ram.shot_shot_range), 12)
    return g + 11


@rule
def write_clocks(ram: Ram, out: NDArray[np.int8], g: int) -> int:
    """Return the pulse clock and what pulsars and fuseballs do on this level."""
    phase = signed_byte(int64(ram.pulse_phase))
    step = signed_byte(int64(ram.pulse_step))
    out[g] = flag(phase >= 0)
    out[g + 1] = flag(step > 0)
    out[g + 2] = max(-FULL, min(FULL, phase * FULL // 72))
    out[g + 3] = share(abs(step), 8)
    out[g + 4] = soon(_ticks_until_pulse(ram), 40)
    out[g + 5] = share(max(int64(ram.pulse_depth) - RIM_DEPTH, 0), 0xE0)
    out[g + 6] = share(int64(ram.pulsar_flip_delay), 64)
    out[g + 7] = flag(ram.pulsar_fire != 0)
    out[g + 8] = flag(ram.fuse_chase & 0x80 != 0)
    out[g + 9] = flag(ram.fuse_chase & 0x40 != 0)
    out[g + 10] = share(256 - int64(ram.fuse_move_threshold), 128)
    return g + 11


@rule
def write_crowd(ram: Ram, out: NDArray[np.int8], g: int) -> int:
    """Write how many there are: nymphs, enemies, walkers, explosions, spikes."""
    queue = int64(ram.queue_count)
    out[g] = share(queue, 16)
    out[g + 1] = share(queue, 64)
    out[g + 2] = flag(queue == 0)
    depth = ram.enemy_depth
    alive = 0
    walkers = 0
    # Eighteen each: seven of a kind make 126, the code stays within its type.
    for slot in range(ENEMY_SLOTS):
        if depth[slot] != 0:
            alive += 1
            kind = kind_of(ram, slot)
            out[g + 3 + kind] = min(FULL, out[g + 3 + kind] + 18)
            if is_walker(ram, slot):
                walkers += 1
    out[g + 8] = share(alive, ENEMY_SLOTS)
    out[g + 9] = flag(not anybody_alive(ram))
    out[g + 10] = share(walkers, 4)
    out[g + 11] = share(int64(ram.explosion_count), 8)
    spike = ram.spike_depth
    spikes = 0
    for lane in range(OPEN_LANES if ram.well_open else LANES):
        if spike[lane] != 0:
            spikes += 1
    out[g + 12] = share(spikes, 16)
    return g + 13


@rule
def write_pending(
    spin: NDArray[np.int8], buttons: NDArray[np.uint8], delay: int, out: NDArray[np.int8], g: int
) -> None:
    """Write the inputs that have not taken effect yet."""
    out[g] = share(delay, MAX_INPUT_DELAY)
    for tick in range(delay):
        here = g + 1 + 4 * tick
        out[here] = FULL
        out[here + 1] = int64(spin[tick]) * FULL // SPINNER_MAX
        out[here + 2] = flag(buttons[tick] & 1 != 0)
        out[here + 3] = flag(buttons[tick] & 2 != 0)

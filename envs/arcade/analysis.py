"""The last step of a play tick: is the wave over, or the life?"""

from __future__ import annotations

from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import (
    BOTTOM_DEPTH,
    BUTTON_START_1,
    BUTTON_START_2,
    ENEMY_SLOTS,
    LANES,
    MODE_RUNNING,
    RIM_DEPTH,
    STATE_END_LIFE,
    STATE_PAUSE,
    STATE_WARP,
    Ram,
)

from .level_select import FREE_PLAY_DEMO, FREE_PLAY_DEMO_MASK
from .player import player_alive
from .shots import clear_shots

DROP = 0x0F
ZOOM = 0x20
ZOOM_END = 0xFA
QUEUE_AFTER_DEATH_MAX = 0x3F
WARNED_LEVELS = 7
WARNING_TICKS = 0x1E
IN_WARP = 0x80


@rule
def analyze(ram: Ram) -> None:
    if not player_alive(ram):
        if (ram.player_shot_count | ram.enemy_shot_count | ram.explosion_count) == 0:
            drop_step(ram)
    elif ram.warp_flag == 0:
        if wave_is_over(ram):
            start_warp(ram)
            clear_shots(ram)
        if level_skip_pressed(ram):
            start_warp(ram)


@rule
def level_skip_pressed(ram: Ram) -> bool:
    """Return whether a start button ends the wave at once: free play with the demo switch."""
    return (
        (ram.buttons_now & (BUTTON_START_1 | BUTTON_START_2)) != 0
        and (ram.mode_flags & MODE_RUNNING) != 0
        and (ram.dsw1_image & FREE_PLAY_DEMO_MASK) == FREE_PLAY_DEMO
    )


@rule
def wave_is_over(ram: Ram) -> bool:
    """Return whether nobody waits, nothing explodes and nobody is below the rim."""
    if ram.queue_count != 0 or ram.explosion_count != 0:
        return False
    for slot in range(ENEMY_SLOTS):
        if ram.enemy_depth[slot] > RIM_DEPTH:
            return False
    return True


@rule
def drop_step(ram: Ram) -> None:
    """Let everything sink after a death; after the last one draw the eye back instead."""
    for slot in range(ENEMY_SLOTS):
        if ram.enemy_depth[slot] != 0:
            depth = int64(ram.enemy_depth[slot]) + DROP
            ram.enemy_depth[slot] = depth if depth < BOTTOM_DEPTH else 0
    if ram.lives[0] == 1:
        eye = ((int64(ram.eye_depth_hi) << 8) | int64(ram.eye_depth_lo)) - ZOOM
        ram.eye_depth_hi = (eye >> 8) & 0xFF
        ram.eye_depth_lo = eye & 0xFF
        finished = ((eye >> 8) & 0xFF) == ZOOM_END
    else:
        depth = int64(ram.player_depth) + DROP
        ram.player_depth = depth & 0xFF
        finished = depth >= BOTTOM_DEPTH
    if finished:
        end_life_drop(ram)


@rule
def end_life_drop(ram: Ram) -> None:
    """Put everybody alive back into the queue, as a number."""
    ram.game_state = STATE_END_LIFE
    clear_shots(ram)
    waiting = (
        int64(ram.enemies_in_well) + int64(ram.enemies_on_rim) + int64(ram.queue_count)
    ) & 0xFF
    ram.queue_count = min(waiting, QUEUE_AFTER_DEATH_MAX)


@rule
def start_warp(ram: Ram) -> None:
    """Leave the wave, on the first levels after a warning of the spikes."""
    ram.game_state = STATE_WARP
    ram.warp_flag |= IN_WARP
    ram.warp_speed_int = 2
    ram.warp_speed_frac = 0
    ram.player_depth_frac = 0
    ram.eye_depth_frac = 0
    spikes = int64(0)
    for lane in range(LANES):
        if ram.spike_depth[lane] != 0:
            spikes += 1
    ram.spike_flag = spikes
    if spikes != 0 and ram.cur_wave < WARNED_LEVELS:
        ram.game_state = STATE_PAUSE
        ram.pause_timer = WARNING_TICKS
        ram.next_state = STATE_WARP
        ram.spike_flag = 0x80
    ram.zap_timer = 0xFF

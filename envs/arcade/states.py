"""The short states around play: lives, pauses, the end of a wave and the next one's entry."""

from __future__ import annotations

from tempest_agent.envs.machine import tables as t
from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import (
    RIM_DEPTH,
    STATE_HIGH_SCORE_CHECK,
    STATE_LEVEL_ENTRY,
    STATE_NEW_LIFE,
    STATE_NEW_LIFE_2,
    STATE_PAUSE,
    STATE_PLAY,
    Ram,
)
from tempest_agent.envs.machine.randomness import Source

from .player import move_player
from .score import add_start_bonus
from .setup import set_up_life, set_up_wave

READY_TICKS = 0x14
LAST_LEVEL_INDEX = 0x62
ENTRY_SPEED = 0x18
STARS_FADE_EYE = 0xFC
STARS_FADING = 1
SCREEN_SLIDE = 64


@rule
def new_life(ram: Ram, source: Source) -> None:
    """Run state 02."""
    ram.display_state = 0
    ram.game_state = STATE_NEW_LIFE_2
    ram.next_state = STATE_NEW_LIFE_2
    ram.cur_wave = ram.wave_index[0]
    set_up_life(ram, source)


@rule
def new_life_2(ram: Ram) -> None:
    """Run state 1E."""
    ram.display_state = 0
    ram.next_state = STATE_PLAY
    ram.pause_timer = READY_TICKS
    ram.game_state = STATE_PAUSE


@rule
def end_life(ram: Ram) -> None:
    """Run state 06."""
    ram.pause_timer = 0
    ram.lives[0] -= 1
    if ram.lives[0] == 0:
        end_game(ram)
    else:
        ram.next_state = STATE_NEW_LIFE
        ram.game_state = STATE_PAUSE


@rule
def end_game(ram: Ram) -> None:
    """Run state 08, which follows the last death at once."""
    ram.last_game_top_wave = max(int64(ram.wave_index[0]) - 1, 0)
    ram.game_state = STATE_HIGH_SCORE_CHECK


@rule
def pause(ram: Ram) -> None:
    """Run state 0A; the claw can be turned meanwhile."""
    if (ram.frame_counter & ram.pause_mask) == 0:
        if ram.pause_timer != 0:
            ram.pause_timer -= 1
        if ram.pause_timer == 0:
            ram.game_state = ram.next_state
            ram.pause_mask = 0
    move_player(ram)


@rule
def end_wave(ram: Ram, source: Source) -> None:
    """Run state 0E: the next level, and a start bonus if one is pending."""
    if ram.wave_index[0] < LAST_LEVEL_INDEX:
        ram.wave_index[0] += 1
        ram.cur_wave += 1
    ram.game_state = STATE_LEVEL_ENTRY
    entry = int64(ram.start_bonus_index[0])
    if entry != 0:
        add_start_bonus(ram, t.START_BONUS[min(entry, t.LAST_ENTRY)])
    set_up_wave(ram, source)


@rule
def level_entry(ram: Ram) -> None:
    """Run state 18: the well comes near."""
    ram.player_depth = RIM_DEPTH
    slide_screen(ram)
    eye = ((int64(ram.eye_depth_hi) << 8) | int64(ram.eye_depth_lo)) + ENTRY_SPEED
    eye &= 0xFFFF
    high = eye >> 8
    if high >= STARS_FADE_EYE:
        ram.star_field = STARS_FADING
    home = 0xFF00 | int64(ram.eye_depth_home)
    if eye >= home or high == 0:
        eye = home
        ram.game_state = STATE_PLAY
        ram.start_bonus_index[0] = 0
    ram.eye_depth_hi = eye >> 8
    ram.eye_depth_lo = eye & 0xFF
    move_player(ram)


@rule
def slide_screen(ram: Ram) -> None:
    step = int64(ram.screen_z_step)
    if step >= 0x80:
        step -= 0x100
    position = (int64(ram.screen_z[1]) << 16) | (int64(ram.screen_z[0]) << 8)
    position = (position | int64(ram.screen_z_frac)) + SCREEN_SLIDE * step
    ram.screen_z_frac = position & 0xFF
    ram.screen_z[0] = (position >> 8) & 0xFF
    ram.screen_z[1] = (position >> 16) & 0xFF

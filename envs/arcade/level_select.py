"""The start of a game: scores cleared, and the screen on which a level is chosen."""

from __future__ import annotations

from tempest_agent.envs.machine import tables as t
from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import (
    BUTTON_FIRE,
    BUTTON_START_1,
    BUTTON_START_2,
    BUTTON_ZAP,
    STATE_LEVEL_SELECT,
    STATE_NEW_LIFE,
    Ram,
)
from tempest_agent.envs.machine.randomness import Source

from .setup import (
    reset_superzapper,
    set_up_approach,
    set_up_queue_and_spikes,
    set_up_wave_tables,
)

SECONDS = 0x10
TICKS_PER_SECOND = 20
TIME_OUT = 0x99
START_BUTTONS_BELOW = 8
RATING_TIED_TO_BEST = 0x04
FREE_PLAY_DEMO_MASK = 0x43
FREE_PLAY_DEMO = 0x40
NOT_CHOSEN = 0xFF
DISPLAY_LEVEL_SELECT = 0x08


@rule
def new_game(ram: Ram, source: Source) -> None:
    """Run state 00 of a one-player game, and the first step of the level select."""
    set_up_approach(ram, source)
    for digit in range(3):
        ram.score_p1[digit] = 0
        ram.score_p2[digit] = 0
    ram.player_up = 0
    ram.next_player = 0
    ram.lives[0] = ram.lives_per_game
    ram.lives[1] = 0
    ram.wave_index[0] = NOT_CHOSEN
    ram.star_field = 0
    ram.select_top_index = deepest_choice(ram)
    ram.last_game_top_wave = 0
    start_level_select(ram)
    level_select(ram, source)


@rule
def deepest_choice(ram: Ram) -> int:
    """Return the highest entry of the level select that this game offers."""
    reached = int64(0)
    for entry in range(len(t.START_LEVEL_INDEX)):
        if t.START_LEVEL_INDEX[entry] <= ram.last_game_top_wave:
            reached = int64(entry)
    offered = int64(4)
    if (ram.dsw3_image & RATING_TIED_TO_BEST) != 0:
        for digits in (0x30, 0x50, 0x70):
            if ram.best_score_top >= digits:
                offered += 1
    if (ram.dsw1_image & FREE_PLAY_DEMO_MASK) == FREE_PLAY_DEMO:
        offered = int64(27)
    return max(reached, offered)


@rule
def start_level_select(ram: Ram) -> None:
    ram.cur_wave = 0
    ram.game_state = STATE_LEVEL_SELECT
    ram.display_state = DISPLAY_LEVEL_SELECT
    ram.player_lane = 0
    ram.rim_pos = 0
    ram.spinner_accum = 0
    ram.pause_timer = SECONDS
    ram.select_second_timer = TICKS_PER_SECOND
    ram.eye_depth_hi = 0xFF
    ram.well_open = 0xFF


@rule
def level_select(ram: Ram, source: Source) -> None:
    """Run state 16: count down, move the cursor, choose on a press or when time is up."""
    chosen = count_down(ram)
    move_cursor(ram)
    buttons = BUTTON_FIRE | BUTTON_ZAP
    if ram.pause_timer < START_BUTTONS_BELOW:
        buttons |= BUTTON_START_1 | BUTTON_START_2
    if chosen or (ram.buttons_latched & buttons) != 0:
        ram.buttons_latched = 0
        entry = min(int64(ram.player_lane), t.LAST_ENTRY)
        choose_level(ram, source, int64(t.START_LEVEL_INDEX[entry]), entry)
    else:
        ram.buttons_latched &= 0x07


@rule
def count_down(ram: Ram) -> bool:
    """Count down by one tick; return True when the time is up."""
    if ram.select_second_timer > 0:
        ram.select_second_timer -= 1
        return False
    ram.select_second_timer = TICKS_PER_SECOND
    seconds = int64(ram.pause_timer)
    if seconds == 0:
        ram.pause_timer = TIME_OUT
        return True
    ram.pause_timer = seconds - 1 if (seconds & 0x0F) != 0 else seconds - 7
    return False


@rule
def move_cursor(ram: Ram) -> None:
    """Move the choice by the knob; positive counts raise it."""
    counts = int64(ram.spinner_accum)
    position = int64(ram.rim_pos) + ((8 * counts) & 0xFF)
    ram.rim_pos = position & 0xFF
    entry = int64(ram.player_lane) + (position >> 8)
    if counts >= 0x80:
        entry -= 1
    ram.player_lane = min(max(entry, 0), int64(ram.select_top_index))
    ram.spinner_accum = 0


@rule
def choose_level(ram: Ram, source: Source, level_index: int, entry: int) -> None:
    """Start at ``level_index``, with the bonus of the level select's ``entry`` pending."""
    ram.start_bonus_index[0] = entry
    ram.wave_index[0] = level_index
    ram.cur_wave = level_index
    set_up_wave_tables(ram, source)
    set_up_queue_and_spikes(ram)
    reset_superzapper(ram)
    ram.game_state = STATE_NEW_LIFE

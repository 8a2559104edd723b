"""Texts of play: scores, lives, level number, and the machine's messages."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import (
    MODE_IN_GAME,
    MODE_RUNNING,
    STATE_LEVEL_ENTRY,
    Ram,
)

from . import palette, shapes
from .beam import Beam, draw_picture
from .glyphs import PITCH, encoded, write_centred, write_glyph, write_number, write_text

# Where texts stand, in screen units: right or left sides, and base lines.
_SCORE_RIGHT, _SCORE_BASE, _SCORE_SIZE = -176.0, 363.0, 2.0
_SMALL_SCORE_RIGHT = -312.0
_SECOND_RIGHT, _SMALL_SECOND_RIGHT = 448.0, 360.0
_BEST_RIGHT, _INITIALS_LEFT, _BEST_BASE = -2.0, 30.0, 396.0
_LEVEL_RIGHT, _LEVEL_LEFT, _LEVEL_BASE = 48.0, -128.0, 360.0
_LIVES_LEFT, _LIVES_Z, _LIVES_PITCH, _MOST_LIVES = -448.0, 337.0, 60.0, 6
_NOTICE_BASE = 344.0
_AVOID_BASE, _RECHARGE_BASE = 0.0, -383.0
_BONUS_LEFT, _BONUS_BASE = -225.0, -475.0
_CREDITS_LEFT, _COIN_LEFT, _CREDITS_BASE = -386.0, 78.0, -510.0

_LEVEL = encoded("LEVEL")
_AVOID_SPIKES = encoded("AVOID SPIKES")
_RECHARGE = encoded("SUPERZAPPER RECHARGE")
_GAME_OVER = encoded("GAME OVER")
_INSERT_COINS = encoded("INSERT COINS")
_PRESS_START = encoded("PRESS START")
_PLAYER = encoded("PLAYER")
_BONUS_EVERY = encoded("BONUS EVERY")
_CREDITS = encoded("CREDITS")
_COIN_PLAY = encoded("1 COIN 1 PLAY")

_SPIKE_WARNING = 0x80
_NOTICE_TURN = 0x20
_DISPLAY_PLAYER_OVER = 0x0C
_DISPLAY_NEXT_PLAYER = 0x0E
_DISPLAY_PRESS_START = 0x10
_TEN_THOUSAND = 10_000

# The best of the machine's table: three letters and three score cells, lowest first.
BEST_LETTERS, BEST_SCORES = 0x61B, 0x71B
OWN_SCORE = -1
"""Instead of a score: show the image's own six digits."""


@rule
def digits(low: int, middle: int, high: int) -> int:
    """Return the value of three score cells, two decimal digits in each."""
    value = int64(0)
    for cell in (int64(high), int64(middle), int64(low)):
        value = value * 100 + (cell >> 4) * 10 + (cell & 0x0F)
    return value


@rule
def write_letters(
    beam: Beam, cells: NDArray[np.uint8], first: int, left: float, base: float, colour: int
) -> None:
    """Write three initials that lie last one first at ``first``; beyond Z stands a blank."""
    for place in range(3):
        letter = int64(cells[first + 2 - place])
        if letter < 26:
            write_glyph(beam, 65 + letter, left + PITCH * place, base, 1.0, colour)


@rule
def _draw_scores(beam: Beam, ram: Ram, score: int) -> None:
    """Draw the scores: large while that player plays, else small; the second if there is one."""
    running = ram.mode_flags & MODE_RUNNING != 0
    up = int64(ram.player_up) & 1
    first = digits(ram.score_p1[0], ram.score_p1[1], ram.score_p1[2])
    second = digits(ram.score_p2[0], ram.score_p2[1], ram.score_p2[2])
    two = ram.last_player != 0
    if score >= 0 and two and up == 1:
        second = score
    elif score >= 0:
        first = score
    if running and not (two and up == 1):
        write_number(beam, first, _SCORE_RIGHT, _SCORE_BASE, _SCORE_SIZE, palette.SPIKER)
    else:
        write_number(beam, first, _SMALL_SCORE_RIGHT, _SCORE_BASE, 1.0, palette.SPIKER)
    if two and running and up == 1:
        write_number(beam, second, _SECOND_RIGHT, _SCORE_BASE, _SCORE_SIZE, palette.SPIKER)
    elif two:
        write_number(beam, second, _SMALL_SECOND_RIGHT, _SCORE_BASE, 1.0, palette.SPIKER)


@rule
def _draw_best(beam: Beam, cells: NDArray[np.uint8]) -> None:
    """Draw the best score and its three initials, if the machine's table holds any."""
    best = digits(cells[BEST_SCORES], cells[BEST_SCORES + 1], cells[BEST_SCORES + 2])
    if best != 0:
        write_number(beam, best, _BEST_RIGHT, _BEST_BASE, 1.0, palette.SPIKER)
        write_letters(beam, cells, BEST_LETTERS, _INITIALS_LEFT, _BEST_BASE, palette.SPIKER)


@rule
def draw_lives(beam: Beam, ram: Ram) -> None:
    """Draw a small claw for each life beyond the one in play."""
    lives = int64(ram.lives[int64(ram.player_up) & 1])
    for place in range(min(lives - 1, _MOST_LIVES)):
        draw_picture(beam, shapes.LIFE_ICON, _LIVES_LEFT + _LIVES_PITCH * place, _LIVES_Z, 1.0)


@rule
def _draw_attract_texts(beam: Beam, ram: Ram) -> None:
    """Draw what the machine says while nobody plays."""
    if ram.display_state == _DISPLAY_PRESS_START or ram.credits != 0:
        write_centred(beam, _PRESS_START, _NOTICE_BASE, 1.0, palette.FLIPPER)
    elif ram.frame_counter & _NOTICE_TURN:
        write_centred(beam, _GAME_OVER, _NOTICE_BASE, 1.0, palette.SPIKER)
    else:
        write_centred(beam, _INSERT_COINS, _NOTICE_BASE, 1.0, palette.FLIPPER)
    if ram.bonus_life_interval != 0:
        points = int64(ram.bonus_life_interval) * _TEN_THOUSAND
        write_text(beam, _BONUS_EVERY, _BONUS_LEFT, _BONUS_BASE, 1.0, palette.PULSAR_OFF)
        right = _BONUS_LEFT + 18 * PITCH - 8.0
        write_number(beam, points, right, _BONUS_BASE, 1.0, palette.PULSAR_OFF)
    write_text(beam, _CREDITS, _CREDITS_LEFT, _CREDITS_BASE, 1.0, palette.SPIKER)
    right = _CREDITS_LEFT + 10 * PITCH - 8.0
    write_number(beam, ram.credits, right, _CREDITS_BASE, 1.0, palette.SPIKER)
    write_text(beam, _COIN_PLAY, _COIN_LEFT, _CREDITS_BASE, 1.0, palette.SPIKER)


@rule
def draw_header(beam: Beam, ram: Ram, cells: NDArray[np.uint8], score: int) -> None:
    """Draw the scores, the best, the lives, and the level or what attracts players.

    ``score`` replaces that of the player who plays, but for ``OWN_SCORE``; ``cells`` are the
    2,048 bytes of ``ram``.
    """
    _draw_scores(beam, ram, score)
    _draw_best(beam, cells)
    draw_lives(beam, ram)
    if ram.mode_flags & MODE_IN_GAME == 0:
        _draw_attract_texts(beam, ram)
        return
    level = int64(ram.cur_wave) + 1
    write_number(beam, level, _LEVEL_RIGHT, _LEVEL_BASE, 1.0, palette.BLUE_TEXT)
    if ram.game_state == STATE_LEVEL_ENTRY:
        write_text(beam, _LEVEL, _LEVEL_LEFT, _LEVEL_BASE, 1.0, palette.BLUE_TEXT)


@rule
def write_player(beam: Beam, player: int, base: float) -> None:
    """Write which player's turn it is, the first one's number being 0."""
    left = -206.0
    write_text(beam, _PLAYER, left, base, 2.0, palette.WHITE)
    write_glyph(beam, 49 + player, left + 16 * PITCH, base, 2.0, palette.WHITE)


@rule
def draw_messages(beam: Beam, ram: Ram) -> None:
    """Draw what the machine says over the well."""
    if ram.spike_flag == _SPIKE_WARNING:
        write_centred(beam, _AVOID_SPIKES, _AVOID_BASE, 2.0, palette.WHITE)
    if ram.mode_flags & MODE_IN_GAME == 0:
        return
    if ram.game_state == STATE_LEVEL_ENTRY:
        write_centred(beam, _RECHARGE, _RECHARGE_BASE, 1.0, palette.BLUE_TEXT)
    if ram.display_state == _DISPLAY_PLAYER_OVER or ram.display_state == _DISPLAY_NEXT_PLAYER:
        write_player(beam, int64(ram.player_up) & 1, 106.0)
    if ram.display_state == _DISPLAY_PLAYER_OVER:
        write_centred(beam, _GAME_OVER, _AVOID_BASE, 2.0, palette.WHITE)

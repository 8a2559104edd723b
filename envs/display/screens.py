"""The machine's screens without a well: level select and high scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import LANES, Ram
from tempest_agent.envs.machine.tables import (
    LAST_ENTRY,
    START_BONUS,
    START_LEVEL_INDEX,
    WELL_OF_LEVEL,
    WELL_OPEN,
    WELL_X,
    WELL_Z,
)

from . import palette
from .beam import BRIGHT, NORMAL, Beam, line
from .glyphs import encoded, write_centred, write_number, write_text
from .header import BEST_LETTERS, BEST_SCORES, digits, write_letters, write_player

# Level select: one column an entry, five at a time; places in screen units.
_COLUMNS_SHOWN = 5
_COLUMN_RIGHT = np.array((-209.0, -60.0, 92.0, 248.0, 408.0))
_BOX_LEFT, _BOX_RIGHT, _BOX_TOP, _BOX_BASE = -145.0, 8.0, -127.0, -288.0
_LEVEL_INSET, _WELL_INSET = 49.0, 57.0
_PLAYER_BASE, _LEVEL_BASE, _HOLE_BASE, _BONUS_BASE = 106.0, -158.0, -218.0, -278.0
_WELL_Z, _WELL_SCALE = -206.0, 0.25
_WORDS_LEFT = -469.0
_TIME_LEFT, _TIME_RIGHT, _TIME_BASE = -96.0, 40.0, -415.0
_WELL_COLOURS = np.array((6, 3, 1, 4, 0, 5, 5, 5))
"""Colour of a thumbnail, by the number of times that the sixteen wells have gone round."""

_RATE = encoded("RATE YOURSELF")
_SPIN = encoded("SPIN KNOB TO CHANGE")
_FIRE = encoded("PRESS FIRE TO SELECT")
_NOVICE, _EXPERT = encoded("NOVICE"), encoded("EXPERT")
_LEVEL, _HOLE, _BONUS = encoded("LEVEL"), encoded("HOLE"), encoded("BONUS")
_TIME = encoded("TIME")

# The display's own cells: first and last entry of the list on show.
_LIST_FIRST, _LIST_LAST = 0x7B, 0x7C

# High scores: rows of rank, initials and score.
_HIGH_SCORES = encoded("HIGH SCORES")
_TITLE_LEFT, _TITLE_BASE = -272.0, 224.0
_RANKS, _FIRST_ROW, _ROW_PITCH = 8, 160.0, 40.0
_RANK_RIGHT, _LETTERS_LEFT, _TABLE_RIGHT = -154.0, -114.0, 120.0


@rule
def _first_entry(cells: NDArray[np.uint8], chosen: int) -> int:
    """Return the leftmost entry on show: the display's own, or the one that a list which was
    only turned forward would have (the simulator has no display to keep it)."""
    first, last = int64(cells[_LIST_FIRST]), int64(cells[_LIST_LAST])
    if last - first == _COLUMNS_SHOWN - 1 and first <= chosen <= last <= LAST_ENTRY:
        return first
    return min(max(chosen - _COLUMNS_SHOWN + 1, 0), LAST_ENTRY - _COLUMNS_SHOWN + 1)


@rule
def _draw_thumbnail(beam: Beam, wave: int, x: float) -> None:
    """Draw the outline of a level's well around ``x``."""
    well = WELL_OF_LEVEL[wave % len(WELL_OF_LEVEL)]
    colour = _WELL_COLOURS[(wave >> 4) & 7]
    for lane in range(LANES - 1 if WELL_OPEN[well] else LANES):
        other = (lane + 1) % LANES
        line(
            beam,
            x + _WELL_SCALE * (float(WELL_X[well, lane]) - 128.0),
            _WELL_Z + _WELL_SCALE * (float(WELL_Z[well, lane]) - 128.0),
            x + _WELL_SCALE * (float(WELL_X[well, other]) - 128.0),
            _WELL_Z + _WELL_SCALE * (float(WELL_Z[well, other]) - 128.0),
            colour,
            NORMAL,
        )


@rule
def _draw_box(beam: Beam, right: float) -> None:
    """Draw the box around the chosen column."""
    x0, x1 = right + _BOX_LEFT, right + _BOX_RIGHT
    line(beam, x0, _BOX_BASE, x1, _BOX_BASE, palette.WHITE, BRIGHT)
    line(beam, x1, _BOX_BASE, x1, _BOX_TOP, palette.WHITE, BRIGHT)
    line(beam, x1, _BOX_TOP, x0, _BOX_TOP, palette.WHITE, BRIGHT)
    line(beam, x0, _BOX_TOP, x0, _BOX_BASE, palette.WHITE, BRIGHT)


@rule
def _draw_entries(beam: Beam, cells: NDArray[np.uint8], chosen: int, texts: bool) -> None:
    """Draw the five columns on show: level, shape of the well, and bonus."""
    first = _first_entry(cells, chosen)
    for column in range(_COLUMNS_SHOWN):
        entry = first + column
        right = _COLUMN_RIGHT[column]
        wave = int64(START_LEVEL_INDEX[entry])
        _draw_thumbnail(beam, wave, right - _WELL_INSET)
        if texts:
            level_right = right - _LEVEL_INSET
            write_number(beam, wave + 1, level_right, _LEVEL_BASE, 1.0, palette.SPIKER)
            write_number(beam, START_BONUS[entry], right, _BONUS_BASE, 1.0, palette.FLIPPER)
        if entry == chosen:
            _draw_box(beam, right)


@rule
def draw_level_select(beam: Beam, ram: Ram, cells: NDArray[np.uint8], texts: bool) -> None:
    """Draw the list of start levels, the chosen one in a box, and the seconds left."""
    _draw_entries(beam, cells, min(int64(ram.player_lane), LAST_ENTRY), texts)
    if not texts:
        return
    write_player(beam, int64(ram.player_up) & 1, _PLAYER_BASE)
    write_centred(beam, _RATE, 40.0, 1.0, palette.SPIKER)
    write_centred(beam, _SPIN, 0.0, 1.0, palette.PULSAR_OFF)
    write_centred(beam, _FIRE, -38.0, 1.0, palette.CLAW)
    write_text(beam, _NOVICE, -345.0, -118.0, 1.0, palette.FLIPPER)
    write_text(beam, _EXPERT, 297.0, -118.0, 1.0, palette.FLIPPER)
    write_text(beam, _LEVEL, _WORDS_LEFT, _LEVEL_BASE, 1.0, palette.SPIKER)
    write_text(beam, _HOLE, _WORDS_LEFT, _HOLE_BASE, 1.0, palette.SPIKER)
    write_text(beam, _BONUS, _WORDS_LEFT, _BONUS_BASE, 1.0, palette.SPIKER)
    write_text(beam, _TIME, _TIME_LEFT, _TIME_BASE, 1.0, palette.SPIKER)
    seconds = digits(ram.pause_timer, 0, 0)
    write_number(beam, seconds, _TIME_RIGHT, _TIME_BASE, 1.0, palette.SPIKER)


@rule
def draw_high_scores(beam: Beam, cells: NDArray[np.uint8]) -> None:
    """Draw the machine's table of the eight best games."""
    write_text(beam, _HIGH_SCORES, _TITLE_LEFT, _TITLE_BASE, 2.0, palette.FLIPPER)
    for rank in range(_RANKS):
        base = _FIRST_ROW - _ROW_PITCH * rank
        at = BEST_SCORES - 3 * rank
        score = digits(cells[at], cells[at + 1], cells[at + 2])
        write_number(beam, rank + 1, _RANK_RIGHT, base, 1.0, palette.BLUE_TEXT)
        write_letters(beam, cells, BEST_LETTERS - 3 * rank, _LETTERS_LEFT, base, palette.BLUE_TEXT)
        write_number(beam, score, _TABLE_RIGHT, base, 1.0, palette.BLUE_TEXT)

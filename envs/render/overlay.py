"""Score, lives, level number and the machine's messages."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.machine.memory import (
    MODE_IN_GAME,
    STATE_END_GAME,
    STATE_FIREWORK,
    STATE_HIGH_SCORE_CHECK,
    STATE_HIGH_SCORES,
    STATE_INITIALS,
    STATE_LEVEL_ENTRY,
    STATE_LEVEL_SELECT,
    Ram,
)

from . import palette, shapes
from .canvas import Canvas
from .glyphs import text_lines, text_width

OVER_STATES = frozenset(
    (STATE_END_GAME, STATE_HIGH_SCORE_CHECK, STATE_INITIALS, STATE_HIGH_SCORES, STATE_FIREWORK)
)

_SCORE_RIGHT, _SCORE_BASE = -176.0, 361.0
_BEST_LEFT, _BEST_BASE = -136.0, 394.0
_LEVEL_RIGHT, _LEVEL_BASE = 48.0, 360.0
_LIVES_LEFT, _LIVES_Z, _LIVES_PITCH = -448.0, 337.0, 60.0
_MESSAGE_BASE = -510.0
_OVER = ("GAME OVER", 3.0, -36.0)
_AVOID_SPIKES = 0x80
_BEST_NAME, _BEST_SCORE = slice(0x61B, 0x61E), slice(0x71B, 0x71E)


def digits(cells: list[int]) -> int:
    """Return the value of three score cells, lowest first, two decimal digits in each."""
    return sum(((c >> 4) * 10 + (c & 0x0F)) * 100**place for place, c in enumerate(cells))


def draw_overlay(canvas: Canvas, ram: Ram, cells: NDArray[np.uint8], score: int | None) -> None:
    """Draw the score (``score``, or the image's six digits), best, level, lives, messages.

    ``ram`` and ``cells`` are the same image, as a record and as 2,048 bytes.
    """
    player = int(ram["player_up"]) & 1
    if score is None:
        score = digits(ram["score_p2" if player else "score_p1"].tolist())
    text = str(score)
    left = _SCORE_RIGHT - text_width(text, 2.0)
    canvas.strokes(text_lines(text, left, _SCORE_BASE, 2.0), palette.SPIKER)
    _draw_best(canvas, cells)
    level = str(int(ram["cur_wave"]) + 1)
    left = _LEVEL_RIGHT - text_width(level)
    canvas.strokes(text_lines(level, left, _LEVEL_BASE), palette.BLUE_TEXT)
    draw_lives(canvas, ram)
    message, size, base = _message(ram)
    if message:
        left = -text_width(message, size) / 2.0
        canvas.strokes(text_lines(message, left, base, size), palette.SPIKER)


def draw_lives(canvas: Canvas, ram: Ram) -> None:
    """Draw a small claw for each life beyond the one in play."""
    lives = int(ram["lives"][int(ram["player_up"]) & 1])
    for place in range(min(lives - 1, 6)):
        corner = np.array((_LIVES_LEFT + _LIVES_PITCH * place, _LIVES_Z))
        canvas.stroke(corner + shapes.LIFE_ICON, palette.CLAW)


def _draw_best(canvas: Canvas, cells: NDArray[np.uint8]) -> None:
    """Draw the best score and its three initials, if the machine's table holds any."""
    best = digits(cells[_BEST_SCORE].tolist())
    if not best:
        return
    initials = "".join(chr(ord("A") + c) if c < 26 else " " for c in cells[_BEST_NAME][::-1])
    text = f"{best:>6} {initials}"
    canvas.strokes(text_lines(text, _BEST_LEFT, _BEST_BASE), palette.SPIKER)


def _message(ram: Ram) -> tuple[str, float, float]:
    """Return the text, size and base line of the message that the image's state shows."""
    state = int(ram["game_state"])
    in_game = bool(int(ram["mode_flags"]) & MODE_IN_GAME)
    if state == STATE_LEVEL_SELECT:
        return "SELECT LEVEL", 2.0, _MESSAGE_BASE
    if state in OVER_STATES or not in_game:
        return _OVER
    if int(ram["spike_flag"]) == _AVOID_SPIKES:
        return "AVOID SPIKES", 2.0, _MESSAGE_BASE
    if state == STATE_LEVEL_ENTRY:
        return "SUPERZAPPER RECHARGE", 1.5, _MESSAGE_BASE
    return "", 1.0, 0.0

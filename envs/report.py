"""The numbers of ``info``, written while a game's memory is still at hand."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arcade.compiled import int64, kernel, rule
from .arcade.memory import Ram
from .intrinsics import prefetch

REPORTED = (
    "score",
    "level",
    "lives",
    "ticks",
    "deaths",
    "idle_ticks",
    "executed_spin",
    "executed_buttons",
)
"""Names of a report's rows; ``describe_games`` says what they mean."""

REPORT_ROWS = len(REPORTED)

_COLUMNS_PER_LINE = 8


@rule
def write_report(ram: Ram, game: Any, report: NDArray[np.int64], at: int) -> bool:
    """Write one game's numbers into column ``at`` of ``report``.

    Returns whether ``info`` names a cause: a life was lost in this step, or the game is over.
    """
    deaths = int64(0)
    for cause in range(len(game.deaths)):
        deaths += game.deaths[cause]
    report[0, at] = game.score
    report[1, at] = int64(ram.cur_wave) + 1
    report[2, at] = ram.lives[ram.player_up & 1]
    report[3, at] = game.ticks
    report[4, at] = deaths
    report[5, at] = game.step_idle_ticks
    report[6, at] = game.executed_spin
    report[7, at] = game.executed_buttons
    return bool(game.step_death >= 0 or game.status != 0)


@rule
def expect_report(report: NDArray[np.int64], at: int, stop: int) -> None:
    """Begin to bring the columns that follow ``at``'s cache line into the cache."""
    ahead = at + _COLUMNS_PER_LINE
    if at % _COLUMNS_PER_LINE == 0 and ahead < stop:
        for row in range(len(report)):
            prefetch(report[row], ahead)


@kernel
def report_games(ram: NDArray[np.void], games: NDArray[np.void], report: NDArray[np.int64]) -> bool:
    """Write all games' numbers, int64 ``(REPORT_ROWS, num_games)``; whether any has a cause."""
    noted = False
    for i in range(len(ram)):
        noted |= write_report(ram[i], games[i], report, i)
    return noted

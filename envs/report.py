"""The numbers of ``info``, written while a game's memory is still at hand."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arcade.compiled import int64, kernel, rule
from .arcade.memory import Ram

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

REPORT_ROWS = len(REPORTED) + 1
"""The last row is not 0 where a life was lost in this step or the game is over."""


@rule
def write_report(ram: Ram, game: Any, report: NDArray[np.int64], at: int) -> None:
    """Write one game's numbers into column ``at`` of ``report``."""
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
    report[8, at] = game.step_death >= 0 or game.status != 0


@kernel
def report_games(ram: NDArray[np.void], games: NDArray[np.void], report: NDArray[np.int64]) -> None:
    """Write the numbers of all games, int64 ``(REPORT_ROWS, num_games)``."""
    for i in range(len(ram)):
        write_report(ram[i], games[i], report, i)

"""The numbers of ``info``, written while a game's memory is still at hand."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.machine.compiled import int64, kernel, rule
from tempest_agent.envs.machine.memory import Ram

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
"""Names of a report's numbers; ``describe_games`` says what they mean."""

REPORT_SIZE = len(REPORTED)


@rule
def write_report(ram: Ram, game: Any, report: NDArray[np.int64]) -> bool:
    """Write one game's numbers, ``(REPORT_SIZE,)``.

    Returns whether ``info`` names a cause: a life was lost in this step, or the game is over.
    """
    deaths = int64(0)
    for cause in range(len(game.deaths)):
        deaths += game.deaths[cause]
    report[0] = game.score
    report[1] = int64(ram.cur_wave) + 1
    report[2] = ram.lives[ram.player_up & 1]
    report[3] = game.ticks
    report[4] = deaths
    report[5] = game.step_idle_ticks
    report[6] = game.executed_spin
    report[7] = game.executed_buttons
    return bool(game.step_death >= 0 or game.status != 0)


@kernel
def report_games(ram: NDArray[np.void], games: NDArray[np.void], report: NDArray[np.int64]) -> bool:
    """Write all games' numbers, int64 ``(num_games, REPORT_SIZE)``; whether any has a cause."""
    noted = False
    for i in range(len(ram)):
        noted |= write_report(ram[i], games[i], report[i])
    return noted

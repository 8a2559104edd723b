"""The info dictionary of a step."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .game_step import LOST, TERMINATED, TRUNCATED
from .outcome import DEATH_CAUSES
from .report import REPORT_ROWS, REPORTED, report_games

TIME_LIMIT = "time_limit"
MACHINE_LOST = "machine_lost"
_CAUSES = np.array(DEATH_CAUSES, object)


def describe_games(games: NDArray[np.void], ram: NDArray[np.void]) -> dict[str, NDArray[Any]]:
    """What ``info`` always says, one entry per game.

    ``score`` (goes on beyond 999,999), ``level`` (1-99), ``lives`` (the one in play included),
    ``ticks`` of the game so far, ``deaths`` so far, ``idle_ticks`` of this step, ``death_cause``
    of a life lost in this step or ``""``, ``executed_spin`` (counts a tick) and
    ``executed_buttons`` (fire + 2*zap) as the machine got them in this step, and
    ``terminal_cause``: ``""`` while the game runs, the cause of the last death once it is over,
    ``"time_limit"`` when it was truncated, ``"machine_lost"`` when the MAME that played it failed.
    Causes are those of ``DEATH_CAUSES``.
    """
    report = np.empty((REPORT_ROWS, len(games)), np.int64)
    report_games(ram, games, report)
    return describe_report(report, games)


def describe_report(report: NDArray[np.int64], games: NDArray[np.void]) -> dict[str, NDArray[Any]]:
    """The same of ``games`` whose numbers are in ``report`` already; the arrays are its rows.

    ``death_cause`` and ``terminal_cause`` are read-only where they are empty throughout.
    """
    *rows, events = report
    info: dict[str, NDArray[Any]] = dict(zip(REPORTED, rows, strict=True))
    if np.count_nonzero(events):
        info["death_cause"] = _death_causes(games["step_death"])
        info["terminal_cause"] = _terminal_causes(games)
    else:
        info["death_cause"] = info["terminal_cause"] = _no_names(len(games))
    return info


@functools.lru_cache(maxsize=64)
def _no_names(count: int) -> NDArray[np.object_]:
    # Nothing has happened in most steps.  They share this array, which nobody can write into:
    # a new one would be a good part of what a step of many games costs besides the games.
    names = np.full(count, "", object)
    names.flags.writeable = False
    return names


def _death_causes(causes: NDArray[np.int8]) -> NDArray[np.object_]:
    names = _no_names(len(causes)).copy()
    died = np.flatnonzero(causes >= 0)
    names[died] = _CAUSES[causes[died]]
    return names


def _terminal_causes(games: NDArray[np.void]) -> NDArray[np.object_]:
    status = games["status"]
    causes = _no_names(len(games)).copy()
    over = status == TERMINATED
    causes[over] = _death_causes(games["last_death"][over])
    causes[status == TRUNCATED] = TIME_LIMIT
    causes[status == LOST] = MACHINE_LOST
    return causes

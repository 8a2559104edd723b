"""The info dictionary of a step."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.engine.game_step import LOST, TERMINATED, TRUNCATED
from tempest_agent.envs.engine.report import REPORT_SIZE, REPORTED, report_games
from tempest_agent.envs.game_state.death_cause import DEATH_CAUSES

TIME_LIMIT = "time_limit"
MACHINE_LOST = "machine_lost"
_CAUSES = np.array(DEATH_CAUSES, object)


def describe_games(games: NDArray[np.void], ram: NDArray[np.void]) -> dict[str, NDArray[Any]]:
    """Return what every ``info`` holds, one entry per game.

    ``score`` (continues beyond 999,999), ``level`` (1-99), ``lives`` (the one in play included),
    ``ticks`` of the game so far, ``deaths`` so far, ``idle_ticks`` of this step, ``death_cause``
    of a life lost in this step or ``""``, ``executed_spin`` (counts a tick) and
    ``executed_buttons`` (fire + 2*zap) as the machine got them in this step, and
    ``terminal_cause``: ``""`` while the game runs, the cause of the last death once it is over,
    ``"time_limit"`` when it was truncated, ``"machine_lost"`` when the MAME that played it failed.
    Causes are those of ``DEATH_CAUSES``.  The two are read-only where they are empty throughout.
    """
    report = np.empty((len(games), REPORT_SIZE), np.int64)
    noted = report_games(ram, games, report)
    info: dict[str, NDArray[Any]] = dict(zip(REPORTED, report.T, strict=True))
    empty = no_names(len(games))
    info["death_cause"], info["terminal_cause"] = cause_names(games) if noted else (empty, empty)
    return info


def cause_names(games: NDArray[np.void]) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
    """Return ``death_cause`` and ``terminal_cause`` of every game."""
    return _death_causes(games["step_death"]), _terminal_causes(games)


@functools.lru_cache(maxsize=64)
def no_names(count: int) -> NDArray[np.object_]:
    """Return ``count`` times ``""``, read-only: both causes where nothing happened.

    Nothing happens in most steps.  They share this array: a new one would be a good part of what
    a step of many games costs besides the games.
    """
    names = np.full(count, "", object)
    names.flags.writeable = False
    return names


def _death_causes(causes: NDArray[np.int8]) -> NDArray[np.object_]:
    names = no_names(len(causes))
    died = np.flatnonzero(causes >= 0)
    if len(died):
        names = names.copy()
        names[died] = _CAUSES[causes[died]]
    return names


def _terminal_causes(games: NDArray[np.void]) -> NDArray[np.object_]:
    status = games["status"]
    if not status.any():
        return no_names(len(games))
    causes = no_names(len(games)).copy()
    over = status == TERMINATED
    causes[over] = _death_causes(games["last_death"][over])
    causes[status == TRUNCATED] = TIME_LIMIT
    causes[status == LOST] = MACHINE_LOST
    return causes


def masked(arrays: dict[str, NDArray[Any]], mask: NDArray[np.bool_]) -> dict[str, Any]:
    """Return ``arrays`` with a copy of ``mask`` beside each; entries outside the mask are blank."""
    copy = mask.copy()
    if not mask.all():
        arrays = {name: _blank_elsewhere(values, mask) for name, values in arrays.items()}
    return {**arrays, **dict.fromkeys([f"_{name}" for name in arrays], copy)}


def _blank_elsewhere(values: NDArray[Any], mask: NDArray[np.bool_]) -> NDArray[Any]:
    blank: Any = None if values.dtype == object else values.dtype.type(0)
    return np.where(mask, values, blank)

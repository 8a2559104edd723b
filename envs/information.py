"""The info dictionary of a step."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .game_step import LOST, TERMINATED, TRUNCATED
from .outcome import DEATH_CAUSES

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
    lives = ram["lives"]
    second = ram["player_up"] & 1 != 0
    return {
        "score": games["score"].copy(),
        "level": ram["cur_wave"].astype(np.int64) + 1,
        "lives": np.where(second, lives[:, 1], lives[:, 0]).astype(np.int64),
        "ticks": games["ticks"].copy(),
        "deaths": sum(games["deaths"].T, np.zeros(len(games), np.int64)),
        "idle_ticks": games["step_idle_ticks"].astype(np.int64),
        "death_cause": _death_causes(games["step_death"]),
        "terminal_cause": _terminal_causes(games),
        "executed_spin": games["executed_spin"].astype(np.int64),
        "executed_buttons": games["executed_buttons"].astype(np.int64),
    }


@functools.lru_cache(maxsize=64)
def _no_names(count: int) -> NDArray[np.object_]:
    # Copied at every step: filling an array of objects takes ten times as long.
    return np.full(count, "", object)


def _death_causes(causes: NDArray[np.int8]) -> NDArray[np.object_]:
    names = _no_names(len(causes)).copy()
    died = np.flatnonzero(causes >= 0)
    names[died] = _CAUSES[causes[died]]
    return names


def _terminal_causes(games: NDArray[np.void]) -> NDArray[np.object_]:
    status = games["status"]
    causes = _no_names(len(games)).copy()
    if status.any():
        over = status == TERMINATED
        causes[over] = _death_causes(games["last_death"][over])
        causes[status == TRUNCATED] = TIME_LIMIT
        causes[status == LOST] = MACHINE_LOST
    return causes

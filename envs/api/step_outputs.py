"""What the steps of a vector environment give out, in memory that is used again.

Every step gives arrays and a dictionary that are the caller's to keep.  Making them costs little,
but after a step of many games whatever Python touches has left the processor's caches, and making
them anew touches a lot.  So a set of them that nobody holds any more is given out again.
"""

from __future__ import annotations

import functools
from collections import deque
from sys import getrefcount
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.engine.report import REPORT_SIZE, REPORTED

from .info import no_names
from .rewards import REWARD_PARTS

_KEPT = 3
# A loop holds what the step before gave, and asks for the next.


class OutputSet:
    """Arrays of one step, and the info dictionary of one in which nothing else is to be said."""

    __slots__ = ("alone", "arrays", "counted", "info", "returned")

    info: dict[str, Any]
    """To be copied, not to be given out."""

    arrays: tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.float64]]
    """``report``, ``ends`` and ``rewards`` of a ``StepOutput``."""

    returned: tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]
    """Rewards, terminated and truncated, of which views are to be given out."""

    def __init__(self, num_games: int) -> None:
        report = np.empty((num_games, REPORT_SIZE), np.int64)
        ends = np.empty((2, num_games), np.bool_)
        rewards = np.empty((2, num_games))
        columns = list(report.T)
        from_points = rewards[1]
        self.info = {
            **dict(zip(REPORTED, columns, strict=True)),
            "death_cause": no_names(num_games),
            "terminal_cause": no_names(num_games),
            **dict.fromkeys(REWARD_PARTS, _nothing(num_games)),
            "reward_points": from_points,
        }
        self.info |= dict.fromkeys([f"_{name}" for name in self.info], _everywhere(num_games))
        self.returned = (rewards[0], ends[0], ends[1])
        self.arrays = (report, ends, rewards)
        # Nobody holds them if as many references exist as now: views of a column count as the
        # report's.
        self.counted = (*self.arrays, from_points, *columns)
        del report, ends, rewards, columns, from_points
        self.alone = sum(map(getrefcount, self.counted))


class OutputSets:
    """Sets for the steps of ``num_games`` games; copies and pickles of it begin empty."""

    def __init__(self, num_games: int) -> None:
        self._num_games = num_games
        self._sets: deque[OutputSet] = deque(maxlen=_KEPT)

    def take(self) -> OutputSet:
        """Return a set that nobody holds, with arbitrary contents."""
        for each in self._sets:
            if sum(map(getrefcount, each.counted)) == each.alone:
                return each
        self._sets.append(OutputSet(self._num_games))
        return self._sets[-1]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_sets": deque(maxlen=_KEPT)}


@functools.lru_cache(maxsize=64)
def _nothing(num_games: int) -> NDArray[np.float64]:
    zeros = np.zeros(num_games)
    zeros.flags.writeable = False
    return zeros


@functools.lru_cache(maxsize=64)
def _everywhere(num_games: int) -> NDArray[np.bool_]:
    ones = np.ones(num_games, np.bool_)
    ones.flags.writeable = False
    return ones

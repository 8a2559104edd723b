"""Where training games begin: all levels at once, unlocked one by one, or where lives are lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tempest_agent.agent.games.interface import Games, Step
from tempest_agent.agent.replay.rows import AGENT
from tempest_agent.config import GameConfig
from tempest_agent.errors import UserError

DRAWS = 64
"""Entries that a distribution over levels is rounded to."""
HALF_LIFE = 1_000_000
"""Decisions after which a lost life counts half."""
PRIOR_DEATHS, PRIOR_DECISIONS = 1.0, 1000.0
"""What is assumed of a level before the student has been there: a life lost per 1,000 decisions."""


@runtime_checkable
class StartsAtLevels(Protocol):
    """Games whose start levels can be changed."""

    def levels(self) -> NDArray[np.int64]:
        """Levels that the games are on, ``(N,)``."""

    def start_at(self, levels: Sequence[int]) -> None:
        """Let new games draw one entry of ``levels`` each, with equal chances."""


class StartLevels:
    """The entries that new games draw their start level from.

    ``unlock``: the entries of ``game.start_levels`` up to the highest unlocked level.  At first
    that is the lowest; the next is unlocked when, of the last ``game.unlock_games`` teacher-free
    games that began on the highest one, a share of ``game.unlock_share`` has reached the next.

    ``deaths``: half of the chance as ``game.start_levels`` has it, the other half in proportion to
    the lives that the student loses per decision between a start level and the next.

    Args:
        game: the settings.
        free: bool ``(N,)``, the games in which the teacher never drives.
    """

    def __init__(self, game: GameConfig, free: NDArray[np.bool_]) -> None:
        self.game = game
        self._free = free
        self._levels = np.array(sorted(set(game.start_levels)), np.int64)
        counts = Counter(game.start_levels)
        self._base = np.array([counts[int(level)] for level in self._levels], np.float64)
        self._base /= self._base.sum()
        self.unlocked = 1
        """How many of the different levels games may begin on."""
        self._began_on = np.full(free.size, self._levels[0], np.int64)
        self._reached: list[bool] = []
        """Whether the last games that began on the highest level have reached the next."""
        self._deaths = np.zeros(self._levels.size)
        self._decisions = np.zeros(self._levels.size)
        self._games: StartsAtLevels | None = None
        self._applied: list[int] = []

    @property
    def is_on(self) -> bool:
        """Whether the start levels change at all."""
        return self.game.level_curriculum != "none"

    def entries(self) -> list[int]:
        """Levels with equal chances, one listed more often being likelier."""
        if self.game.level_curriculum == "unlock":
            highest = self._levels[self.unlocked - 1]
            return [level for level in self.game.start_levels if level <= highest]
        if self.game.level_curriculum == "deaths":
            rates = (self._deaths + PRIOR_DEATHS) / (self._decisions + PRIOR_DECISIONS)
            return self._rounded(0.5 * self._base + 0.5 * rates / rates.sum())
        return list(self.game.start_levels)

    def _rounded(self, chances: NDArray[np.float64]) -> list[int]:
        """``DRAWS`` entries nearest to ``chances``, by the largest remainders."""
        wanted = chances * DRAWS
        counts = np.floor(wanted).astype(np.int64)
        left = np.argsort(counts - wanted, kind="stable")[: DRAWS - int(counts.sum())]
        counts[left] += 1
        entries: list[int] = np.repeat(self._levels, counts).tolist()
        return entries

    def apply(self, games: Games) -> None:
        """Let new games of ``games`` begin on ``entries``, now and after each ``observe``.

        Raises:
            UserError: these games have no start levels.
        """
        if not self.is_on:
            return
        if not isinstance(games, StartsAtLevels):
            raise UserError(
                f"game.level_curriculum={self.game.level_curriculum} needs games with start "
                f"levels, and {type(games).__name__} has none; set game.level_curriculum=none"
            )
        self._games, self._applied = games, self.entries()
        games.start_at(self._applied)

    def forget(self, games: NDArray[np.bool_] | None = None) -> None:
        """``games`` (bool ``(N,)``, all if left out) were begun anew; on which level is unknown."""
        self._began_on[slice(None) if games is None else games] = 0

    def observe(self, who: NDArray[np.uint8], step: Step) -> None:
        """Take note of a decision of every game, ``who`` ``(N,)`` being its driver."""
        if self._games is None or step.level is None or step.death_cause is None:
            return
        if self.game.level_curriculum == "deaths":
            self._count(who, step.level, step.death_cause)
        if not step.game_over.any():
            return
        if self.game.level_curriculum == "unlock":
            self._unlock(step.level, step.game_over)
        self._began_on[step.game_over] = self._games.levels()[step.game_over]
        entries = self.entries()
        if entries != self._applied:
            self._games.start_at(entries)
            self._applied = entries

    def _count(
        self, who: NDArray[np.uint8], level: NDArray[np.int64], cause: NDArray[np.int8]
    ) -> None:
        own = who == AGENT
        band = np.maximum(np.searchsorted(self._levels, level, side="right") - 1, 0)
        keep = 0.5 ** (who.size / HALF_LIFE)
        size = self._levels.size
        self._deaths = self._deaths * keep + np.bincount(band[own & (cause >= 0)], minlength=size)
        self._decisions = self._decisions * keep + np.bincount(band[own], minlength=size)

    def _unlock(self, level: NDArray[np.int64], over: NDArray[np.bool_]) -> None:
        game = self.game
        for i in np.flatnonzero(over & self._free):
            if self.unlocked == self._levels.size:
                return
            if self._began_on[i] != self._levels[self.unlocked - 1]:
                continue
            self._reached.append(bool(level[i] >= self._levels[self.unlocked]))
            del self._reached[: -game.unlock_games]
            enough = len(self._reached) == game.unlock_games
            if enough and np.mean(self._reached) >= game.unlock_share:
                self.unlocked += 1
                self._reached = []

    def figures(self) -> dict[str, float]:
        """Mean and highest start level; nothing without a curriculum."""
        if not self.is_on:
            return {}
        entries = self.entries()
        return {
            "start_level_mean": float(np.mean(entries)),
            "start_level_max": float(max(entries)),
        }

    def state_dict(self) -> dict[str, Any]:
        return {
            "unlocked": self.unlocked,
            "began_on": self._began_on,
            "reached": list(self._reached),
            "deaths": self._deaths,
            "decisions": self._decisions,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.unlocked = int(state["unlocked"])
        self._began_on = np.asarray(state["began_on"]).astype(np.int64)
        self._reached = [bool(reached) for reached in state["reached"]]
        self._deaths = np.asarray(state["deaths"]).astype(np.float64)
        self._decisions = np.asarray(state["decisions"]).astype(np.float64)

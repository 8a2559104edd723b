"""The operator's switches, and the level that a game starts at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tempest_agent.envs.checks import check_flag, check_one_of, is_whole
from tempest_agent.envs.messages import shown

from .tables import START_LEVEL_INDEX

SWITCHES_DTYPE = np.dtype(
    [
        ("level_index", "u1"),
        ("lives", "u1"),
        ("bonus_life_interval", "u1"),
        ("difficulty", "u1"),
        ("start_bonus_index", "u1"),
    ]
)
"""One game's switches as compiled code takes them."""

LEVEL_MIN, LEVEL_MAX = 1, 99
LIVES = (2, 3, 4, 5)
BONUS_LIFE = (0, 10_000, 20_000, 30_000, 40_000, 50_000, 60_000, 70_000)
DIFFICULTIES = {"medium": 0, "easy": 1, "hard": 2}


@dataclass(frozen=True)
class Switches:
    """The machine's settings for one game; the defaults are those of the factory.

    ``start_level``: 1 to 99.  ``lives``: 2 to 5.  ``bonus_life``: points between bonus lives,
    10,000 to 70,000 in steps of 10,000, or 0 or ``"none"`` for none.  ``difficulty``: ``"easy"``,
    ``"medium"`` or ``"hard"`` (where levels 96 to 99 ask for more enemies than their queue holds:
    the count is cut to 64; the real machine's wave does not end).  ``start_bonus``: pay the
    machine's bonus for starting deep after the first finished wave, where its level select offers
    that level.

    Raises ``ValueError`` for any other value.
    """

    start_level: int = 1
    lives: int = 3
    bonus_life: int | str = 20_000
    difficulty: str = "medium"
    start_bonus: bool = False

    def __post_init__(self) -> None:
        level = self.start_level
        if not is_whole(level) or not LEVEL_MIN <= level <= LEVEL_MAX:
            raise ValueError(
                f"start_level={shown(level)}: the game has levels {LEVEL_MIN} to {LEVEL_MAX}; "
                f"choose a whole number in that range"
            )
        if not is_whole(self.lives) or self.lives not in LIVES:
            raise ValueError(
                f"lives={shown(self.lives)}: the machine's switches offer 2, 3, 4 or 5"
            )
        bonus = self.bonus_life
        none = isinstance(bonus, str) and bonus == "none"
        if not none and not (is_whole(bonus) and bonus in BONUS_LIFE):
            raise ValueError(
                f"bonus_life={shown(bonus)}: a life every 10000, 20000, ... 70000 points, "
                f"or 'none'; the machine has no other setting"
            )
        check_one_of("difficulty", self.difficulty, DIFFICULTIES)
        check_flag("start_bonus", self.start_bonus)

    def record(self) -> np.void:
        """Return the switches as one record of ``SWITCHES_DTYPE``."""
        index = self.start_level - 1
        entries = np.flatnonzero(index == START_LEVEL_INDEX)
        bonus_index = int(entries[0]) if self.start_bonus and len(entries) else 0
        interval = 0 if self.bonus_life == "none" else int(self.bonus_life) // 10_000
        difficulty = DIFFICULTIES[self.difficulty]
        filled = np.array([(index, self.lives, interval, difficulty, bonus_index)], SWITCHES_DTYPE)
        record: np.void = filled[0]
        return record

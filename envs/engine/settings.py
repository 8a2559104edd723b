"""Settings of the games of an environment, checked before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.checks import check_flag, check_whole
from tempest_agent.envs.machine.inputs import MAX_INPUT_DELAY
from tempest_agent.envs.machine.switches import SWITCHES_DTYPE, Switches
from tempest_agent.envs.messages import shown

StartLevel: TypeAlias = int | Sequence[int]

LARGEST_LIMIT = 2**62 - 1
MOST_TICKS = 1_000_000
"""Of one action: ten hours of play, longer than an unattended game lasts."""
MOST_LEVELS = 10_000
"""Entries of a list of start levels."""


@dataclass(frozen=True)
class GameSettings:
    """The machine's switches and how time passes between two decisions.

    ``start_level``: a level 1-99, or a list, tuple or range of levels from which every game
    draws its own with equal chances.  ``lives``, ``bonus_life``, ``difficulty``, ``start_bonus``:
    as in ``Switches``.

    ``frame_skip``: ticks that an action is held, up to a million.  ``skip_idle``: play ticks that
    need no decision within the step before (see ``GameBatch``).  ``max_ticks``, ``max_steps``: the
    game is truncated there; ``None``: never.  ``input_delay``: ticks between an action and its
    effect, 0 to 4.

    Raises ``ValueError`` for any other value.
    """

    start_level: StartLevel = 1
    lives: int = 3
    bonus_life: int | str = 20_000
    difficulty: str = "medium"
    start_bonus: bool = False
    frame_skip: int = 1
    skip_idle: bool = True
    max_ticks: int | None = None
    max_steps: int | None = None
    input_delay: int = 0

    def __post_init__(self) -> None:
        self._switches()
        check_whole("frame_skip", self.frame_skip, 1, MOST_TICKS, "1 decides every tick")
        check_whole("input_delay", self.input_delay, 0, MAX_INPUT_DELAY, "0 acts in the next tick")
        for name in ("max_ticks", "max_steps"):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name), 1, LARGEST_LIMIT, "None never cuts a game")
        check_flag("skip_idle", self.skip_idle)

    def _switches(self) -> list[Switches]:
        given: Any = self.start_level
        if isinstance(given, (str, bytes)):
            raise ValueError(
                f"start_level={shown(given)}: a number from 1 to 99, or a list of them"
            )
        if isinstance(given, np.ndarray):
            given = list(given) if given.ndim else given.item()
        levels = list(islice(given, MOST_LEVELS + 1)) if isinstance(given, Sequence) else [given]
        if not levels:
            raise ValueError(
                f"start_level={shown(self.start_level)} names no level: "
                "a range ends before its second number, so levels 1 to 9 are range(1, 10)"
            )
        if len(levels) > MOST_LEVELS:
            raise ValueError(
                f"start_level={shown(self.start_level)} names more than {MOST_LEVELS:,} levels: "
                "name each in proportion to its share"
            )
        return [
            Switches(level, self.lives, self.bonus_life, self.difficulty, self.start_bonus)
            for level in levels
        ]

    def records(self) -> NDArray[np.void]:
        """Return one ``SWITCHES_DTYPE`` record for each start level, shape ``(levels,)``."""
        switches = self._switches()
        records = np.zeros(len(switches), SWITCHES_DTYPE)
        for at, each in enumerate(switches):
            records[at] = each.record()
        return records

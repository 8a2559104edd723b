"""What a user may choose about the games of an environment, checked before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .arcade.options import OPTIONS_DTYPE, Options
from .feature_layout import MAX_INPUT_DELAY

StartLevel: TypeAlias = int | Sequence[int]

LARGEST_LIMIT = 2**62 - 1


@dataclass(frozen=True)
class GameSettings:
    """The machine's switches and how time passes between two decisions.

    ``start_level``: a level 1-99, or a list, tuple or range of levels from which every game
    draws its own with equal chances.  ``lives``, ``bonus_life``, ``difficulty``, ``start_bonus``:
    as in ``Options``.

    ``frame_skip``: ticks that an action is held.  ``skip_idle``: play ticks that need no decision
    within the step before (see ``GameBatch``).  ``max_ticks``, ``max_steps``: the game is
    truncated there; ``None``: never.  ``input_delay``: ticks between an action and its effect,
    0 to 4.

    Raises ``ValueError`` or ``TypeError`` for any other value.
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
        self._options()
        _whole("frame_skip", self.frame_skip, 1, None, "1 decides every tick")
        _whole("input_delay", self.input_delay, 0, MAX_INPUT_DELAY, "0 acts in the next tick")
        if self.max_ticks is not None:
            _whole("max_ticks", self.max_ticks, 1, LARGEST_LIMIT, "None never cuts a game")
        if self.max_steps is not None:
            _whole("max_steps", self.max_steps, 1, LARGEST_LIMIT, "None never cuts a game")
        if not isinstance(self.skip_idle, (bool, np.bool_)):
            raise TypeError(f"skip_idle={self.skip_idle!r}: True or False")

    def _options(self) -> list[Options]:
        levels = self.start_level
        if isinstance(levels, (str, bytes)):
            raise ValueError(f"start_level={levels!r}: a number from 1 to 99, or a list of them")
        if not isinstance(levels, (Sequence, np.ndarray)):
            levels = [levels]
        if len(levels) == 0:
            raise ValueError(
                f"start_level={self.start_level!r} names no level: "
                "a range ends before its second number, so levels 1 to 9 are range(1, 10)"
            )
        return [
            Options(level, self.lives, self.bonus_life, self.difficulty, self.start_bonus)
            for level in levels
        ]

    def records(self) -> NDArray[np.void]:
        """One ``OPTIONS_DTYPE`` record for each start level, shape ``(levels,)``."""
        options = self._options()
        records = np.zeros(len(options), OPTIONS_DTYPE)
        for at, option in enumerate(options):
            records[at] = option.record()
        return records


def _whole(name: str, value: object, low: int, high: int | None, hint: str) -> None:
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_))
    if not whole or value < low or (high is not None and value > high):  # type: ignore[operator]
        limit = f"of at least {low}" if high is None else f"from {low} to {high}"
        raise ValueError(f"{name}={value!r}: a whole number {limit} is needed; {hint}")

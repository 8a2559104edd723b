"""Parameter types and options shared by commands, checked before anything is played."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tempest_agent.config import LARGEST
from tempest_agent.envs.messages import shown

if TYPE_CHECKING:
    _ParamType = click.ParamType[int | str]
    _LevelsType = click.ParamType[tuple[int, ...]]
    _PathType = click.ParamType[Path]
else:  # Not generic in older versions of click.
    _ParamType = _LevelsType = _PathType = click.ParamType


class WholeNumber(click.IntRange):
    """A whole number, also as 3_000_000 or 3e6 (as in configuration files)."""

    name = "integer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, str) and "e" in value.lower():
            try:
                number = float(value)
            except ValueError:
                number = 0.5
            if number.is_integer() and abs(number) < 2**53:
                value = int(number)
        return int(super().convert(value, param, ctx))


class Count(WholeNumber):
    """A whole number of at least 1."""

    def __init__(self) -> None:
        super().__init__(min=1)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number = super().convert(value, param, ctx)
        if number > LARGEST:
            self.fail(f"{number} is too large: at most {LARGEST}", param, ctx)
        return number


class PathName(_PathType):
    """The path of a file or folder; an empty one, which would be the current folder, is refused."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        if str(value) == "" or "\0" in str(value):
            self.fail(f"{shown(value)} is no path (an unset variable?): give one", param, ctx)
        return Path(os.fspath(value))


LEVELS = WholeNumber(1, 99)
SEED = WholeNumber(0, 2**63 - 1)
INPUT_DELAY = WholeNumber(0, 4)
PATH = PathName()
COUNT = Count()


class LevelList(_LevelsType):
    """Start levels, one or more separated by commas, each once."""

    name = "levels"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        parts: list[Any] = [part.strip() for part in str(value).split(",")]
        if not all(parts):
            self.fail(f"{shown(value)} has a level missing: write levels as in 1,17,33", param, ctx)
        levels = tuple(int(LEVELS.convert(part, param, ctx)) for part in parts)
        for level in levels:
            if levels.count(level) > 1:
                self.fail(f"level {level} is in {shown(value)} twice: give it once", param, ctx)
        return levels


class BonusLife(_ParamType):
    """``none``, or the points between bonus lives that the machine's switches offer."""

    name = "points"
    POINTS = tuple(range(10_000, 80_000, 10_000))

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | str:
        text = str(value).lower()
        if text in ("none", "0"):
            return "none"
        points = {
            text: each for each in self.POINTS for text in (f"{each}", f"{each:_}", f"{each:,}")
        }
        if text in points:
            return points[text]
        hint = f"; did you mean {text}0000?" if text in tuple("1234567") else ""
        self.fail(f"{shown(value)}: use none, or 10000, 20000, ... 70000 points{hint}", param, ctx)


PLAYERS = "CHECKPOINT|latest|champion|expert|planner|novice|novice-strong|random"
"""The argument that names a player in ``--help``."""

seed_option = click.option(
    "--seed", type=SEED, default=0, show_default=True, help="Seed of the games."
)
level_option = click.option(
    "--level", type=LEVELS, default=1, show_default=True, help="Level to start from."
)
max_ticks_option = click.option(
    "--max-ticks",
    type=COUNT,
    default=30_000,
    show_default=True,
    help="Ticks after which a game is truncated (27.34 per second).",
)
input_delay_option = click.option(
    "--input-delay",
    type=INPUT_DELAY,
    default=0,
    show_default=True,
    help="Ticks between an action and its effect.",
)
bonus_life_option = click.option(
    "--bonus-life",
    type=BonusLife(),
    default=20_000,
    show_default=True,
    help="Points between bonus lives, or none.",
)

"""Options of ``eval`` that choose whole sets of games, and what contradicts them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from tempest_agent.commands.options.types import PATH
from tempest_agent.errors import UserError

if TYPE_CHECKING:
    from tempest_agent.evaluation.games import EvaluationGames
    from tempest_agent.evaluation.players import PlayerChoice
    from tempest_agent.evaluation.protocol import Part

F = TypeVar("F", bound=Callable[..., Any])

WHOLE = "all"
"""Of the parts of the protocol."""

_OWN_TO_THE_PROTOCOL = {
    "levels": "--level",
    "input_delay": "--input-delay",
    "bonus_life": "--bonus-life",
    "endurance": "--endurance",
}

_OPTIONS = (
    click.option(
        "--endurance",
        is_flag=True,
        help="Play without bonus lives, each game at most 300,000 ticks (or --max-ticks).",
    ),
    click.option(
        "--standard",
        type=click.Choice([WHOLE, "standard", "bands", "endurance", "delays"]),
        help="Measure by the protocol, or one part of it: standard games, late starts by bands of "
        "levels, endurance, input delays of 1 and 2. --episodes 5 plays a twentieth of each.",
    ),
    click.option(
        "--card",
        type=PATH,
        help="Markdown file to write about a checkpoint, for --standard all.",
    ),
)


def protocol_options(command: F) -> F:
    """Add ``--endurance``, ``--standard`` and ``--card`` to ``command``."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def games_to_play(
    games: EvaluationGames, levels: Sequence[int], standard: str | None, endurance: bool
) -> list[Part]:
    """Return the parts that are played: one a level, or those of the protocol.

    ``games`` are what the other options ask for.  Raises ``UserError`` for options that contradict
    each other.
    """
    from tempest_agent.evaluation.games import ENDURANCE_MAX_TICKS
    from tempest_agent.evaluation.protocol import Part, protocol_parts

    if standard is not None:
        for parameter, option in _OWN_TO_THE_PROTOCOL.items():
            if _given(parameter):
                raise UserError(
                    f"--standard {standard} has its own games: leave {option} out, or --standard"
                )
        max_ticks = games.max_ticks if _given("max_ticks") else None
        return protocol_parts(standard, games.seed, games.machine, games.episodes, max_ticks)
    if endurance:
        if _given("bonus_life") and games.bonus_life != "none":
            raise UserError(
                f"--endurance plays without bonus lives: leave --bonus-life {games.bonus_life} out"
            )
        max_ticks = games.max_ticks if _given("max_ticks") else ENDURANCE_MAX_TICKS
        games = replace(games, bonus_life="none", max_ticks=max_ticks)
    return [Part(f"from level {level}", replace(games, level=level)) for level in levels]


def require_card_subject(players: Sequence[PlayerChoice], standard: str | None) -> None:
    """Raise ``UserError`` unless a card can be made: the whole protocol, one checkpoint."""
    if standard != WHOLE:
        raise UserError(f"--card holds the whole protocol: add --standard {WHOLE}")
    if len(players) != 1:
        names = ", ".join(player.name for player in players)
        raise UserError(f"--card describes one checkpoint, not {names}: make them one by one")
    if players[0].sha256 is None:
        raise UserError(
            f"--card describes a checkpoint, and {players[0].name} is a scripted player: "
            "leave --card out"
        )


def _given(parameter: str) -> bool:
    """Return whether the user gave a parameter of the present command."""
    source = click.get_current_context().get_parameter_source(parameter)
    return source not in (None, ParameterSource.DEFAULT)

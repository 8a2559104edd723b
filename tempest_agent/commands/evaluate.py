"""``tempest-agent eval``: score players."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tempest_agent.commands.options.backend import (
    backend_option,
    introduce_machine,
    machine_from,
)
from tempest_agent.commands.options.evaluations import (
    draw_evaluations,
    draw_protocols,
    print_evaluations,
    print_protocols,
)
from tempest_agent.commands.options.output import json_option, only_results_on_stdout
from tempest_agent.commands.options.protocol import (
    games_to_play,
    protocol_options,
    require_card_subject,
)
from tempest_agent.commands.options.types import (
    COUNT,
    PATH,
    PLAYERS,
    LevelList,
    WholeNumber,
    bonus_life_option,
    input_delay_option,
    max_ticks_option,
    seed_option,
)
from tempest_agent.envs.mame.errors import machine_errors
from tempest_agent.errors import UserError

if TYPE_CHECKING:
    from tempest_agent.console.progress import Progress
    from tempest_agent.evaluation.outcomes import Outcomes
    from tempest_agent.evaluation.players import PlayerChoice
    from tempest_agent.evaluation.protocol import Part


@click.command("eval")
@click.argument("policies", nargs=-1, metavar=f"[{PLAYERS}]...")
@click.option("--episodes", type=COUNT, default=100, show_default=True, help="Games to play.")
@seed_option
@click.option(
    "--level",
    "levels",
    type=LevelList(),
    default="1",
    show_default=True,
    help="Level to start from (1 to 99), or several: 1,17,33.",
)
@backend_option
@max_ticks_option
@input_delay_option
@bonus_life_option
@protocol_options
@click.option(
    "--threads",
    type=WholeNumber(1, 64),
    default=lambda: min(2, os.cpu_count() or 1),
    help="Threads that share the games (each with its own MAME for --backend mame); the scores do "
    "not depend on it.  [default: 2]",
)
@click.option(
    "--plot",
    type=PATH,
    help="Picture to write: .png, .svg or .pdf (needs matplotlib).",
)
@json_option
def evaluate(
    policies: tuple[str, ...],
    episodes: int,
    seed: int,
    levels: tuple[int, ...],
    backend: str,
    max_ticks: int,
    input_delay: int,
    bonus_life: int | str,
    endurance: bool,
    standard: str | None,
    card: Path | None,
    threads: int,
    plot: Path | None,
    as_json: bool,
    **machine_options: Any,
) -> None:
    """Play a fixed set of greedy games, each to its end, and print the raw scores.

    Without options this is the standard evaluation: 100 games from level 1 with the machine's
    default switches, each truncated after 30,000 ticks (18 minutes of play). Without a name it
    scores `latest`.

    Several players, or several start levels, play the same games and are compared in one table,
    each player with the first one; with --standard all they are measured by the whole protocol.
    """
    policies = policies or ("latest",)
    results: list[dict[str, Any]] = []
    plan: list[tuple[Part, PlayerChoice]] = []
    several = standard is not None or len(policies) * len(levels) > 1
    try:
        with only_results_on_stdout(), machine_errors():
            from tempest_agent.evaluation.card import require_card, write_card
            from tempest_agent.evaluation.games import EvaluationGames
            from tempest_agent.plots.figure_files import require_picture

            machine = machine_from(backend, **machine_options)
            if machine is not None:
                introduce_machine(machine)
            players = _players(policies)
            games = EvaluationGames(
                episodes, seed, levels[0], max_ticks, input_delay, bonus_life, machine
            )
            parts = games_to_play(games, levels, standard, endurance)
            if card is not None:
                require_card_subject(players, standard)
                require_card(card)
            if plot is not None:
                require_picture(plot, "--plot")
            for player in players:
                _introduce(player, None if standard else input_delay)
            # Part by part, so that results can be compared after Ctrl-C.
            plan = [(part, player) for part in parts for player in players]
            _play_all(plan, threads, results)
            if standard is None:
                if plot is not None:
                    draw_evaluations(results, plot)
            else:
                protocols = _protocols(standard, plan, results)
                if plot is not None:
                    draw_protocols(protocols, plot)
                if card is not None:
                    write_card(card, players[0], protocols[0])
                    click.echo(f"card: {card}", err=True)
    except KeyboardInterrupt:
        if several and plan:
            done = sum(not result.get("interrupted") for result in results)
            click.echo(f"{done} of {len(plan)} evaluations are complete", err=True)
        raise
    finally:
        # Print the played games even after Ctrl-C, a lost machine or a full disk.
        if results and standard is not None:
            print_protocols(_protocols(standard, plan, results), as_json)
        elif results:
            print_evaluations(results, several, as_json)


def _players(names: Sequence[str]) -> list[PlayerChoice]:
    """Return the players of these names, all checked before the first one plays."""
    from tempest_agent.evaluation.players import find_player

    players = [find_player(name) for name in names]
    found = [player.name for player in players]
    for name in found:
        if found.count(name) > 1:
            raise UserError(f"the player {name} is given twice; give each player once")
    return players


def _introduce(player: PlayerChoice, input_delay: int | None) -> None:
    """Print what plays, and a note if it was trained with another delay than ``input_delay``."""
    click.echo(player.description, err=True)
    if input_delay is not None and player.trained_delay not in (None, input_delay):
        click.echo(
            f"note: it was trained with an input delay of {player.trained_delay} ticks "
            f"and plays with {input_delay} (--input-delay)",
            err=True,
        )


def _protocols(
    standard: str, plan: Sequence[tuple[Part, PlayerChoice]], results: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    from tempest_agent.evaluation.protocol import protocols_of

    return protocols_of(standard, [part.name for part, _ in plan], results)


def _play_all(
    plan: Sequence[tuple[Part, PlayerChoice]], threads: int, results: list[dict[str, Any]]
) -> None:
    """Play every part with its player, and append each result to ``results``.

    If interrupted, append the result of the complete games of that part, if there are any.
    """
    from tempest_agent.console.progress import Progress

    before, later = 0, sum(part.games.most_ticks for part, _ in plan)
    with Progress(later, "ticks", f"eval {plan[0][1].name}") as progress:
        for number, (part, player) in enumerate(plan, 1):
            label = f"eval {player.name}"
            if len(plan) > 1:
                label += f" {part.name} ({number} of {len(plan)})"
            progress.rename(label)
            later -= part.games.most_ticks
            before += _play(part, player, threads, label, progress, before, later, results)


def _play(
    part: Part,
    player: PlayerChoice,
    threads: int,
    label: str,
    progress: Progress,
    before: int,
    later: int,
    results: list[dict[str, Any]],
) -> int:
    """Play one part and return what it counts in the progress, which is ``before`` already.

    ``later``: expected ticks of the parts to come.
    """
    from tempest_agent.evaluation.games import play_games
    from tempest_agent.evaluation.outcomes import joined
    from tempest_agent.evaluation.report import evaluation_result

    games = part.games
    began = time.monotonic()
    complete: list[Outcomes] = []

    def expected() -> int:
        # Games on a real machine are played in turn: finished ones improve the estimate.
        return games.expected_ticks(
            [int(each.ticks[0]) for each in complete] if games.machine else []
        )

    def report(ticks: int) -> None:
        progress.update(before + ticks, before + expected() + later)

    def add(outcomes: Outcomes, **more: bool) -> None:
        seconds = time.monotonic() - began
        result = evaluation_result(player, games, outcomes, seconds)
        results.append(result | more)
        if outcomes.repeated:
            progress.message(
                f"warning: {len(outcomes.repeated)} of {len(outcomes.scores)} games repeat an "
                "earlier one tick by tick; they count once in the intervals"
            )

    try:
        outcomes = play_games(player, games, threads, report, complete)
    except BaseException:
        left = joined(complete) if complete else None
        if left is not None and len(left.scores):
            progress.message(
                f"{label}: interrupted; {len(left.scores)} of {games.episodes} games are "
                "complete, and the results cover these"
                + ("" if games.machine else " (short games finish first)")
            )
            add(left, interrupted=True)
        raise
    add(outcomes)
    return expected()

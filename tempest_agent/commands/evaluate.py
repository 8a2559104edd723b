"""``tempest-agent eval``: score players."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tempest_agent.commands.options.backend import (
    backend_option,
    introduce_machine,
    machine_from,
)
from tempest_agent.commands.options.output import (
    json_option,
    only_results_on_stdout,
    print_columns,
    print_json,
    print_table,
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
    from tempest_agent.evaluation.games import EvaluationGames, Outcomes
    from tempest_agent.evaluation.players import PlayerChoice


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
    each player with the first one.
    """
    policies = policies or ("latest",)
    results: list[dict[str, Any]] = []
    several = len(policies) * len(levels) > 1
    try:
        with only_results_on_stdout(), machine_errors():
            from tempest_agent.evaluation.games import EvaluationGames
            from tempest_agent.plots.figure_files import require_picture

            machine = machine_from(backend, **machine_options)
            if machine is not None:
                introduce_machine(machine)
            players = _players(policies)
            games = EvaluationGames(
                episodes, seed, levels[0], max_ticks, input_delay, bonus_life, machine
            )
            if plot is not None:
                require_picture(plot, "--plot")
            for player in players:
                _introduce(player, input_delay)
            # Level by level, so that results can be compared after Ctrl-C.
            plan = [(replace(games, level=level), player) for level in levels for player in players]
            for number, (at_level, player) in enumerate(plan, 1):
                label = f"eval {player.name}"
                if several:
                    label += f" from level {at_level.level} ({number} of {len(plan)})"
                _play(player, at_level, threads, label, results)
            if plot is not None:
                _draw(results, plot)
    except KeyboardInterrupt:
        if several:
            done = sum(not result.get("interrupted") for result in results)
            asked = len(policies) * len(levels)
            click.echo(f"{done} of {asked} evaluations are complete", err=True)
        raise
    finally:
        # Print the played games even after Ctrl-C, a lost machine or a full disk.
        if results:
            _print_results(results, several, as_json)


def _players(names: Sequence[str]) -> list[PlayerChoice]:
    """Return the players of these names, all checked before the first one plays."""
    from tempest_agent.evaluation.players import find_player

    players = [find_player(name) for name in names]
    found = [player.name for player in players]
    for name in found:
        if found.count(name) > 1:
            raise UserError(f"the player {name} is given twice; give each player once")
    return players


def _introduce(player: PlayerChoice, input_delay: int) -> None:
    click.echo(player.description, err=True)
    trained = player.trained_delays
    if trained is not None and input_delay not in trained:
        click.echo(
            f"note: it was trained with an input delay of {' or '.join(map(str, trained))} ticks "
            f"and plays with {input_delay} (--input-delay)",
            err=True,
        )


def _play(
    player: PlayerChoice,
    games: EvaluationGames,
    threads: int,
    label: str,
    results: list[dict[str, Any]],
) -> None:
    """Play ``games`` and append the result to ``results``.

    If interrupted, append the result of the complete games, if there are any.
    """
    from tempest_agent.console.progress import Progress
    from tempest_agent.evaluation.games import joined, play_games
    from tempest_agent.evaluation.report import evaluation_result

    began = time.monotonic()
    complete: list[Outcomes] = []

    def add(outcomes: Outcomes, **more: bool) -> None:
        seconds = time.monotonic() - began
        results.append(evaluation_result(player, games, outcomes, seconds) | more)
        if outcomes.repeated:
            click.echo(
                f"warning: {len(outcomes.repeated)} of {len(outcomes.scores)} games repeat an "
                "earlier one tick by tick; they count once in the interval",
                err=True,
            )

    with Progress(games.episodes * games.max_ticks, "ticks", label) as progress:

        def report(ticks: int) -> None:
            # Games on a real machine are played in turn: finished ones improve the estimate.
            lengths = [int(part.ticks[0]) for part in complete] if games.machine else []
            progress.update(ticks, games.expected_ticks(lengths))

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


def _draw(results: Sequence[Mapping[str, Any]], path: Path) -> None:
    from tempest_agent.plots.comparison import comparison_figure
    from tempest_agent.plots.figure_files import save_figure

    save_figure(comparison_figure(results), path, "--plot")
    click.echo(f"plot: {path}", err=True)


def _print_results(results: Sequence[dict[str, Any]], several: bool, as_json: bool) -> None:
    """Print one evaluation, or ``several`` with their comparison."""
    from tempest_agent.evaluation import report
    from tempest_agent.evaluation.comparison import compare

    if not several:
        if as_json:
            print_json(results[0])
        else:
            print_table(report.result_rows(results[0]), report.result_title(results[0]))
        return
    comparison = compare([result for result in results if not result.get("interrupted")])
    if as_json:
        print_json({"results": results, "comparison": comparison})
    else:
        click.echo(report.comparison_title(results))
        print_columns(*report.comparison_table(results, comparison))

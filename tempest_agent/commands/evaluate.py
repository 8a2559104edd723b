"""``tempest-agent eval``: how good a player is."""

from __future__ import annotations

import os
import time
from typing import Any

import click

from tempest_agent.commands.machine import backend_option, machine_errors, machine_from
from tempest_agent.commands.output import (
    json_option,
    only_results_on_stdout,
    print_json,
    print_table,
)
from tempest_agent.commands.parameters import COUNT, INPUT_DELAY, LEVELS, SEED, BonusLife


@click.command("eval")
@click.argument("policy", metavar="CHECKPOINT|latest|expert|planner|novice|novice-strong|random")
@click.option("--episodes", type=COUNT, default=100, show_default=True, help="Games to play.")
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of the games.")
@click.option("--level", type=LEVELS, default=1, show_default=True, help="Level to start from.")
@backend_option
@click.option(
    "--max-ticks",
    type=COUNT,
    default=30_000,
    show_default=True,
    help="Ticks after which a game is cut (27.34 a second).",
)
@click.option(
    "--input-delay",
    type=INPUT_DELAY,
    default=0,
    show_default=True,
    help="Ticks between an action and its effect.",
)
@click.option(
    "--bonus-life",
    type=BonusLife(),
    default=20_000,
    show_default=True,
    help="Points between bonus lives, or none.",
)
@click.option(
    "--threads",
    type=click.IntRange(1, 64),
    default=lambda: min(2, os.cpu_count() or 1),
    help="The games are divided over this many threads, each with a MAME of its own where asked "
    "for; the scores are the same.  [default: 2]",
)
@json_option
def evaluate(
    policy: str,
    episodes: int,
    seed: int,
    level: int,
    backend: str,
    max_ticks: int,
    input_delay: int,
    bonus_life: int | str,
    threads: int,
    as_json: bool,
    **machine_options: Any,
) -> None:
    """Play a fixed set of greedy games, each to its end, and print the raw scores.

    Without options this is the standard evaluation: 100 games from level 1 with the machine's
    default switches, each cut after 30,000 ticks (18 minutes of play).
    """
    with only_results_on_stdout(), machine_errors():
        from tempest_agent.evaluation import Games, play_games, summary
        from tempest_agent.players import find_player
        from tempest_agent.progress import Progress

        machine = machine_from(backend, **machine_options)
        player = find_player(policy)
        games = Games(episodes, seed, level, max_ticks, input_delay, bonus_life, machine)
        click.echo(player.description, err=True)
        if player.trained_delay not in (None, input_delay):
            click.echo(
                f"note: it was trained with an input delay of {player.trained_delay} ticks "
                f"and plays with {input_delay} (--input-delay)",
                err=True,
            )
        began = time.monotonic()
        with Progress(episodes * max_ticks, "ticks", f"eval {player.name}") as progress:
            outcomes = play_games(player, games, threads, progress.update)
        result = {
            "policy": player.name,
            "episodes": episodes,
            **summary(outcomes),
            "seed": seed,
            "level": level,
            "max_ticks": max_ticks,
            "input_delay": input_delay,
            "bonus_life": bonus_life,
            "frame_skip": player.frame_skip,
            "backend": backend,
            "checkpoint_sha256": player.sha256,
            "checkpoint_step": player.step,
            "seconds": round(time.monotonic() - began, 3),
        }
    if as_json:
        print_json(result)
    else:
        print_table(_rows(result), _title(result))


def _title(result: dict[str, Any]) -> str:
    return (
        f"{result['policy']}: {result['episodes']} games from level {result['level']}, "
        f"seed {result['seed']}, at most {result['max_ticks']:,} ticks each"
    )


def _rows(result: dict[str, Any]) -> list[tuple[str, str]]:
    low, high = result["score_iqm_ci95"]
    deaths = [f"{cause} {n:,}" for cause, n in result["deaths"].items() if n]
    return [
        ("score, IQM", f"{result['score_iqm']:,.0f}  (95 %: {low:,.0f} to {high:,.0f})"),
        (
            "score",
            f"mean {result['score_mean']:,.0f}, median {result['score_median']:,.0f}, "
            f"best {result['score_max']:,}",
        ),
        ("level", f"mean {result['level_mean']:.1f}, highest {result['level_max']}"),
        ("ticks", f"mean {result['ticks_mean']:,.0f}, {result['truncated']} games cut"),
        ("points", f"{result['points_per_1000_ticks']:,.0f} per 1,000 ticks"),
        (
            "deaths",
            f"{result['deaths_per_1000_ticks']:.3f} per 1,000 ticks: {', '.join(deaths) or 'none'}",
        ),
    ]

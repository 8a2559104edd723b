"""``tempest-agent demonstrate``: record a player's games as a Minari data set."""

from __future__ import annotations

import signal
import threading
from contextlib import closing
from typing import Any

import click

from tempest_agent.commands.options.output import (
    EXIT_INTERRUPTED,
    json_option,
    only_results_on_stdout,
    print_json,
)
from tempest_agent.commands.options.types import (
    COUNT,
    PLAYERS,
    bonus_life_option,
    input_delay_option,
    level_option,
    max_ticks_option,
    seed_option,
)


@click.command()
@click.argument("policy", metavar=PLAYERS)
@click.option("--dataset", required=True, help="Name of the data set, such as tempest/expert-v0.")
@click.option("--episodes", type=COUNT, default=10, show_default=True, help="Games to record.")
@seed_option
@level_option
@max_ticks_option
@input_delay_option
@bonus_life_option
@click.option("--force", is_flag=True, help="Replace a data set of that name.")
@json_option
@click.pass_context
def demonstrate(
    context: click.Context,
    policy: str,
    dataset: str,
    episodes: int,
    seed: int,
    level: int,
    max_ticks: int,
    input_delay: int,
    bonus_life: int | str,
    force: bool,
    as_json: bool,
) -> None:
    """Record games of a player as a Minari data set.

    Data sets are stored in the folder MINARI_DATASETS_PATH, by default ~/.minari/datasets. Ctrl-C
    keeps the complete games. `train --set replay.demonstrations=NAME` starts with them.
    """
    with only_results_on_stdout():
        from tempest_agent.console.progress import Progress
        from tempest_agent.demonstrations.recorder import Recorder
        from tempest_agent.evaluation.games import EvaluationGames
        from tempest_agent.evaluation.players import find_player

        games = EvaluationGames(episodes, seed, level, max_ticks, input_delay, bonus_life)
        recorder = Recorder(find_player(policy), games, dataset, force)
        stop = threading.Event()
        lengths: list[int] = []
        last = 0

        def ask(_number: int, _frame: Any) -> None:
            stop.set()

        # An interrupted write would damage complete games, so the current tick is finished.
        before = signal.signal(signal.SIGINT, ask)
        try:
            label = f"demonstrate {policy}"
            with closing(recorder), Progress(episodes * max_ticks, "ticks", label) as progress:

                def on_tick(ticks: int) -> bool:
                    nonlocal last
                    last = ticks
                    progress.update(sum(lengths) + ticks, games.expected_ticks(lengths))
                    return not stop.is_set()

                while len(lengths) < episodes and recorder.record(len(lengths), on_tick):
                    lengths.append(last)
        finally:
            signal.signal(signal.SIGINT, before)
        done = len(lengths)
    if as_json:
        print_json(
            {"dataset": dataset, "policy": policy, "episodes": done, "stopped": stop.is_set()}
        )
    elif done:
        click.echo(f"{dataset}: {done} games of {policy}; read it with minari.load_dataset")
    if stop.is_set() and done < episodes:
        click.echo(f"tempest-agent: interrupted, {done} complete games are kept", err=True)
        context.exit(EXIT_INTERRUPTED)

"""``tempest-agent record``: record your own machine, for ``verify``."""

from __future__ import annotations

import dataclasses
from itertools import count
from pathlib import Path
from typing import Any

import click

from tempest_agent.commands.options.backend import (
    introduce_machine,
    machine_from,
    rom_options,
)
from tempest_agent.commands.options.output import only_results_on_stdout
from tempest_agent.commands.options.types import COUNT, PATH, level_option, seed_option
from tempest_agent.envs.mame.errors import machine_errors
from tempest_agent.errors import UserError


@click.command()
@click.argument("out", metavar="OUT.npz", type=PATH)
@click.option(
    "--policy", default="expert", show_default=True, help="expert, random, or as in eval."
)
@level_option
@click.option("--ticks", type=COUNT, default=2000, show_default=True, help="Ticks to record.")
@seed_option
@rom_options
def record(
    out: Path, policy: str, level: int, ticks: int, seed: int, **machine_options: Any
) -> None:
    """Play the real game in MAME and record every tick of it.

    `tempest-agent verify OUT.npz` then compares the simulator with it, byte by byte. When a game is
    over another one starts.
    """
    from tempest_agent.envs.recordings.recording import MOST_TICKS

    if out.suffix != ".npz":
        raise UserError(f"{out} is not the name of a recording: it must end in .npz")
    if not out.parent.is_dir():
        raise UserError(f"there is no folder {out.parent} to put {out.name} in: make it first")
    if ticks > MOST_TICKS:
        raise UserError(f"--ticks {ticks}: a recording has at most {MOST_TICKS:,}; make several")
    machine = machine_from("mame", **machine_options)
    assert machine is not None
    introduce_machine(machine)
    with only_results_on_stdout(), machine_errors():
        from tempest_agent.console.progress import Progress
        from tempest_agent.envs.engine.settings import LARGEST_LIMIT
        from tempest_agent.envs.mame.recorder import Recorder, RecordingBatch, write_recording
        from tempest_agent.evaluation.games import EvaluationGames
        from tempest_agent.evaluation.playback import play_ticks_of
        from tempest_agent.evaluation.players import find_player

        choice = find_player(policy)
        # A restarted machine would leave a gap in the recording.
        machine = dataclasses.replace(machine, max_restarts=0)
        games = EvaluationGames(seed=seed, level=level, max_ticks=LARGEST_LIMIT)
        recorder = Recorder(ticks)
        settings = games.settings(1, skip_idle=False)
        batch = RecordingBatch(settings, machine, recorder, choice.sees_features)
        with batch, Progress(ticks, "ticks", "record") as progress:
            for number in count():
                for _ in play_ticks_of(batch, choice, games, number):
                    progress.update(len(recorder.logs))
                    if recorder.complete:
                        break
                if recorder.complete:
                    break
        meta = {
            "mame": f"mame={batch.version} rom={batch.rom_set}",
            "rom": batch.rom_set,
            "level": level,
            "policy": choice.name,
            "seed": seed,
            "level_override": None,
            "lives_poke": None,
            "controls": "written into RAM at the start of each tick",
            "random_bytes": machine.random_bytes,
            "games": number + 1,
        }
        write_recording(out, recorder.arrays(meta))
    click.echo(f"{out}: {ticks:,} ticks; compare with: tempest-agent verify {out}")

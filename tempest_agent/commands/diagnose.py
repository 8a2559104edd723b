"""``tempest-agent diagnose``: find symptoms of training problems in a run."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tempest_agent.commands.options.output import (
    json_option,
    only_results_on_stdout,
    print_json,
)
from tempest_agent.commands.options.types import PATH
from tempest_agent.envs.messages import printable

if TYPE_CHECKING:
    from tempest_agent.stability.diagnosis import Diagnosis

WIDTH = 88


@click.command()
@click.argument("run_dir", type=PATH)
@json_option
def diagnose(run_dir: Path, as_json: bool) -> None:
    """Read the metrics of the run in RUN_DIR and print symptoms, evidence, causes and remedies.

    The run may be finished, running or interrupted. The exit code is 0 whatever is found.
    """
    with only_results_on_stdout():
        from tempest_agent.stability.diagnosis import diagnose as examine_run

        diagnosis = examine_run(run_dir)
    if as_json:
        print_json(diagnosis.to_dict())
    else:
        _print(diagnosis)


def _print(diagnosis: Diagnosis) -> None:
    click.echo(
        f"{printable(diagnosis.run, 200)}: {diagnosis.state}, {diagnosis.steps:,} decisions, "
        f"{diagnosis.lines} log rows"
    )
    for note in diagnosis.notes:
        click.echo(f"note: {note}")
    for entry in diagnosis.to_dict()["symptoms"]:
        click.echo(f"\n{entry['name']}{'' if entry['present'] else ' (past)'}")
        for name in ("evidence", "cause", "remedy"):
            text = textwrap.wrap(entry[name], WIDTH - 12)
            click.echo(f"  {name:<9} " + ("\n" + " " * 12).join(text))
    if diagnosis.guard:
        click.echo("\nevents of the guard")
        for event in diagnosis.guard:
            what = " ".join(event[k] for k in ("kind", "symptom", "remedy") if event[k])
            words = printable(f"{what}: {event['detail']}", 300).rstrip(": ")
            click.echo(f"  {event['step']:>12,}  {words}")
    click.echo(f"\nverdict: {diagnosis.verdict}: {diagnosis.summary}")

"""``tempest-agent verify``: compare the simulator with recordings of the real machine."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from tempest_agent.commands.options.output import (
    json_option,
    only_results_on_stdout,
    print_json,
    print_table,
)
from tempest_agent.commands.options.types import PATH
from tempest_agent.errors import UserError

EXIT_DIFFERENT = 1


@click.command()
@click.argument("traces", nargs=-1, required=True, type=PATH)
@json_option
@click.pass_context
def verify(context: click.Context, /, traces: tuple[Path, ...], as_json: bool) -> None:
    """Replay recordings of the real machine (TRACES, .npz files) and compare every byte.

    Each tick is played once from the recorded image with the recorded inputs and random bytes,
    and each recording once more free-running from its first image to its end. The exit code is 1
    if the simulator differs.
    """
    for trace in traces:
        if not trace.is_file():
            what = "is not a regular file" if trace.exists() else "is not there"
            raise UserError(f"{trace} {what}: give one or more recordings (.npz)")
        if not zipfile.is_zipfile(trace):
            raise UserError(f"{trace} is damaged or no recording: give .npz files of the recorder")
    with only_results_on_stdout():
        from tempest_agent.envs.recordings.recording import RecordingError
        from tempest_agent.envs.recordings.verify import verify_files

        try:
            result = verify_files(traces)
        except RecordingError as error:
            raise UserError(
                f"{error}; give files made by the recorder, and copy a damaged one again"
            ) from error
    if as_json:
        print_json(result)
    else:
        print_table(_rows(result), f"{len(traces)} recording(s) against the simulator")
    missed = result["ticks"] - result["exact_ticks"]
    drifted = sum(run["first_difference"] is not None for run in result["free_run"])
    if missed or drifted:
        click.echo(
            f"tempest-agent: the simulator differs from {missed:,} of {result['ticks']:,} recorded "
            f"ticks, and in {drifted} of {len(result['free_run'])} free runs",
            err=True,
        )
        context.exit(EXIT_DIFFERENT)


def _rows(result: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "ticks", f"{result['ticks']:,} covered, {result['ticks_not_covered']:,} not covered"
    if result["ticks"]:
        yield "exact", f"{result['exact_ticks']:,} ({100 * result['exact_fraction']:.4f} %)"
    for state, counts in result["by_state"].items():
        yield f"  {state}", f"{counts['exact']:,} of {counts['ticks']:,}"
    for miss in result["first_mismatches"]:
        yield (
            "mismatch",
            f"{miss['file']} tick {miss['tick']} ({miss['state']}): {miss['name']} "
            f"(address {miss['address']}) expected {miss['expected']}, got {miss['got']}",
        )
    for run in result["free_run"]:
        first = run["first_difference"]
        end = "equal to the end" if first is None else f"first difference at tick {first}"
        yield "free run", f"{run['file']}: {run['ticks']:,} ticks, {end}"

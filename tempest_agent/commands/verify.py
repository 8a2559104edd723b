"""``tempest-agent verify``: recordings of the real machine through the simulator."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np

from tempest_agent.commands.output import (
    json_option,
    only_results_on_stdout,
    print_json,
    print_table,
)
from tempest_agent.errors import UserError

NEEDED_ARRAYS = (
    "ram",
    "seen_spin",
    "seen_latched",
    "seen_held",
    "random_value",
    "random_pc",
    "random_offsets",
)


@click.command()
@click.argument("traces", nargs=-1, required=True, type=click.Path(path_type=Path))
@json_option
def verify(traces: tuple[Path, ...], as_json: bool) -> None:
    """Replay recordings of the real machine (TRACES, .npz files) and compare every byte.

    Each tick is played once from the recorded image with the recorded inputs and random bytes,
    and each recording once more free-running from its first image to its end.
    """
    for trace in traces:
        check_trace(trace)
    with only_results_on_stdout():
        from tempest_agent.envs.arcade.verify import verify_files

        result = verify_files(traces)
    if as_json:
        print_json(result)
    else:
        print_table(_rows(result), f"{len(traces)} recording(s) against the simulator")


def check_trace(path: Path) -> None:
    """Raise ``UserError`` unless ``path`` is a recording with all the arrays needed."""
    if not path.is_file():
        raise UserError(f"{path} is not a file: give one or more recordings (.npz)")
    try:
        with np.load(path, allow_pickle=False) as arrays:
            missing = [name for name in NEEDED_ARRAYS if name not in arrays.files]
            shape = arrays["ram"].shape if "ram" in arrays.files else ()
    except (OSError, ValueError, AttributeError, zipfile.BadZipFile) as error:
        raise UserError(
            f"{path} cannot be read as a recording (.npz): it is damaged or of another kind; "
            "record it again or copy it anew"
        ) from error
    if missing:
        raise UserError(
            f"{path} is no recording of the machine: it lacks {', '.join(missing)}; "
            "give a file made by the recorder"
        )
    if len(shape) != 2 or shape[1] != 2048 or shape[0] < 2:
        raise UserError(
            f"{path}: its array 'ram' has shape {shape}, not (ticks, 2048) with 2 ticks or more"
        )


def _rows(result: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "ticks", f"{result['ticks']:,} covered, {result['ticks_not_covered']:,} not covered"
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

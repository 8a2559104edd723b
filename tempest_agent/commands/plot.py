"""``tempest-agent plot``: draw the curves of one or more runs."""

from __future__ import annotations

from pathlib import Path

import click

from tempest_agent.commands.options.types import PATH
from tempest_agent.errors import UserError


@click.command()
@click.argument("runs", nargs=-1, required=True, type=PATH)
@click.option(
    "--out",
    type=PATH,
    default="curves.png",
    show_default=True,
    help="Picture to write: .png, .svg or .pdf.",
)
def plot(runs: tuple[Path, ...], out: Path) -> None:
    """Draw the curves of runs (their folders): score, teacher's share, values, loss, deaths.

    Needs matplotlib: pip install 'tempest-agent[plots]'.
    """
    from tempest_agent.plots.figure_files import check_format, require_matplotlib, save_figure
    from tempest_agent.plots.training_curves import figure_of, read_curves, training_panels

    check_format(out)
    require_matplotlib()
    if len({run.resolve() for run in runs}) < len(runs):
        raise UserError("a run is given twice; give each run once")
    names = [run.name or str(run.resolve()) for run in runs]
    # Runs of the same name in different folders are labelled by their paths.
    unique = len(set(names)) == len(names)
    curves = {
        name if unique else str(run): read_curves(run)
        for name, run in zip(names, runs, strict=True)
    }
    save_figure(figure_of(curves, training_panels()), out)
    click.echo(out)

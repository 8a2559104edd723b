"""``tempest-agent study``: train a set of runs that answers a question, with figure and table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tempest_agent.commands.options.output import (
    EXIT_INTERRUPTED,
    json_option,
    only_results_on_stdout,
    print_json,
)
from tempest_agent.commands.options.types import COUNT, PATH, SEED
from tempest_agent.errors import UserError, unknown_name

STUDIES = ("stability",)
DRAWN = ("default", "unstable", "recovery", "guarded", "bare", "bare_guarded")


@click.command()
@click.argument("name", metavar="stability")
@click.option("--steps", type=COUNT, default=80_000, show_default=True, help="Steps of each run.")
@click.option("--seed", type=SEED, default=1, show_default=True, help="Seed of all runs.")
@click.option(
    "--out",
    type=PATH,
    help="Folder of the study.  [default: runs/study-stability-sSEED]",
)
@json_option
@click.pass_context
def study(
    context: click.Context, /, name: str, steps: int, seed: int, out: Path | None, as_json: bool
) -> None:
    """Provoke a divergence: unstable settings, their recovery, the guard, the defaults.

    Ctrl-C saves; the same command continues. The figure is stability.png in the study's folder.
    """
    if name not in STUDIES:
        raise UserError(unknown_name("study", name, STUDIES))
    folder = out or Path("runs") / f"study-stability-s{seed}"
    with only_results_on_stdout():
        from tempest_agent.plots.figure_files import INSTALL, has_matplotlib, save_figure
        from tempest_agent.plots.study import study_figure
        from tempest_agent.sweep.stability_study import run_study

        if not has_matplotlib():
            click.echo(f"no figure will be drawn: {INSTALL}", err=True)
        result = run_study(folder, steps, seed, lambda text: click.echo(text, err=True))
        drawn = [run for run in DRAWN if run in result["runs"]]
        result["figure"] = None
        if drawn and has_matplotlib():
            result["figure"] = str(folder / "stability.png")
            save_figure(study_figure(folder, drawn), folder / "stability.png")
    if as_json:
        print_json(result)
    else:
        _print(result)
    if result["stopped"]:
        click.echo("stopped; the same command continues", err=True)
        context.exit(EXIT_INTERRUPTED)


def _print(result: dict[str, Any]) -> None:
    heading = ("run", "Q highest", "Q end", "loss", "reward", "score", "greedy", "verdict")
    rows = [heading]
    for name, run in result["runs"].items():
        greedy = run["greedy_iqm"]
        complete = run["steps"] >= result["steps"]
        rows.append(
            (
                name if complete else f"{name} (until {run['steps']:,})",
                _number(run["q_highest"]),
                _number(run["q_mean_end"]),
                " to ".join(map(_number, run["loss"])),
                " to ".join(map(_number, run["reward_agent"])),
                _number(run["teacher_free_score"]),
                _number(greedy[-1] if greedy else None),
                ", ".join((run["verdict"], *run["symptoms"])),
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())
    if result["figure"]:
        click.echo(f"figure: {result['figure']}")


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"

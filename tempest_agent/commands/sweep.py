"""``tempest-agent sweep``: train variants of a configuration and compare them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tempest_agent.commands.options.output import (
    json_option,
    only_results_on_stdout,
    print_json,
)
from tempest_agent.commands.options.types import COUNT, PATH, WholeNumber
from tempest_agent.envs.messages import shown
from tempest_agent.errors import UserError

if TYPE_CHECKING:
    from tempest_agent.runs.lock import RunLock
    from tempest_agent.sweep.executor import Executor
    from tempest_agent.sweep.plan import Plan

SWEEPS_FOLDER = "sweeps"
EXIT_FAILED = 1


@click.command()
@click.argument("source", metavar="CONFIG")
@click.option(
    "--variants",
    "variants_file",
    metavar="NAME_OR_FILE",
    help="Variants: a list that comes with the package (ablation) or a YAML file, "
    "NAME: {section.key: value} on each line.",
)
@click.option(
    "--variant",
    "variant_texts",
    multiple=True,
    metavar="NAME:key=value,key=value",
    help="One variant; may be given several times.",
)
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="section.key=value",
    help="Change one setting of all runs; may be given several times.",
)
@click.option(
    "--seeds",
    type=WholeNumber(1, 10_000),
    default=3,
    show_default=True,
    help="Runs of each variant, by seed.",
)
@click.option("--steps", type=COUNT, help="Steps of each run.")
@click.option(
    "--episodes", type=COUNT, default=16, show_default=True, help="Games that score each run."
)
@click.option(
    "--max-ticks",
    type=COUNT,
    default=10_000,
    show_default=True,
    help="Ticks after which such a game is truncated.",
)
@click.option(
    "--out",
    type=PATH,
    help="Folder of the sweep.  [default: sweeps/CONFIG]",
)
@click.option(
    "--jobs",
    type=COUNT,
    help="Runs at the same time.  [default: 1; on Ray as many as there is room for]",
)
@click.option(
    "--ray-address",
    metavar="local|auto|HOST:PORT",
    help="Run on Ray: a new cluster on this machine, the running one, or the one at that address "
    "(pip install 'tempest-agent[ray]').",
)
@click.option(
    "--gpus",
    type=click.FloatRange(0.0),
    help="Share of a GPU that each run reserves on Ray.  [default: 1 with run.device=cuda, else 0]",
)
@json_option
@click.pass_context
def sweep(
    context: click.Context,
    /,
    source: str,
    variants_file: str | None,
    variant_texts: tuple[str, ...],
    overrides: tuple[str, ...],
    seeds: int,
    steps: int | None,
    episodes: int,
    max_ticks: int,
    out: Path | None,
    jobs: int | None,
    ray_address: str | None,
    gpus: float | None,
    as_json: bool,
) -> None:
    """Train a configuration and variants of it with several seeds, and compare the players.

    Every run is a `train` of its own. Each final player is scored by the same greedy games, which
    training has not seen. The table shows the raw score as interquartile mean with its interval,
    and the probability that a game scores more than one of the unchanged configuration. Table,
    statistics and plot go to the folder of the sweep.

    The same command continues a stopped sweep: finished runs are kept, unfinished ones resumed.
    Variants and seeds may be added.
    """
    with only_results_on_stdout():
        chosen = list(overrides) if steps is None else [f"run.steps={steps}", *overrides]
        plan = _plan(source, chosen, variants_file, variant_texts, seeds, episodes, max_ticks)
        folder = out or Path(SWEEPS_FOLDER) / Path(source).stem
        executor = _executor(jobs, ray_address, gpus)
        figures, complete = _run(plan, folder.absolute(), executor)
    if as_json:
        print_json(figures)
    else:
        from tempest_agent.sweep.report import markdown, title

        click.echo(f"{title(figures)}\n\n{markdown(figures)}")
    if not complete:
        click.echo("some runs failed (see above); the same command tries them again", err=True)
        context.exit(EXIT_FAILED)


def _plan(
    source: str,
    overrides: list[str],
    variants_file: str | None,
    variant_texts: tuple[str, ...],
    seeds: int,
    episodes: int,
    max_ticks: int,
) -> Plan:
    from tempest_agent.config import load_config
    from tempest_agent.sweep.plan import load_variants, make_plan, parse_variant

    variants = load_variants(variants_file) if variants_file is not None else {}
    for text in variant_texts:
        name, changes = parse_variant(text)
        if name in variants:
            raise UserError(f"two variants are named {shown(name)}: give one of them another name")
        variants[name] = changes
    return make_plan(load_config(source, overrides), variants, seeds, episodes, max_ticks)


def _executor(jobs: int | None, ray_address: str | None, gpus: float | None) -> Executor:
    """Return what runs the processes.

    Raises:
        UserError: Ray is not installed, or a share of a GPU is given without Ray.
    """
    if ray_address is None:
        if gpus is not None:
            raise UserError(f"--gpus {gpus:g} is a share on Ray: give --ray-address too (local)")
        from tempest_agent.sweep.executor import LocalProcesses

        return LocalProcesses(jobs or 1)
    from tempest_agent.sweep.ray_executor import RayTasks, import_ray

    import_ray()  # Before a folder is made.
    return RayTasks(ray_address, jobs, gpus)


def _run(plan: Plan, out: Path, executor: Executor) -> tuple[dict[str, Any], bool]:
    """Train all runs; return the data of the table, and whether every run is in it."""
    from tempest_agent.files.atomic_files import replacing
    from tempest_agent.files.own_files import require_writable
    from tempest_agent.plots.figure_files import INSTALL, has_matplotlib, save_figure
    from tempest_agent.plots.sweep import sweep_figure
    from tempest_agent.sweep.plan import keep_plan
    from tempest_agent.sweep.report import markdown, table, title
    from tempest_agent.sweep.session import run_all

    require_writable(out)
    lock = _locked(out)
    try:
        keep_plan(out, plan)
        results, complete = run_all(plan, out, executor)
        figures = table(plan, results)
        with replacing(out / "results.json") as file:
            file.write((json.dumps(figures, indent=1) + "\n").encode())
        with replacing(out / "table.md") as file:
            file.write(f"{title(figures)}\n\n{markdown(figures)}\n".encode())
        if has_matplotlib():
            save_figure(sweep_figure(figures, title(figures)), out / "plot.png")
        else:
            click.echo(f"no plot.png: {INSTALL}", err=True)
    finally:
        lock.release()
    return figures, complete


def _locked(out: Path) -> RunLock:
    from tempest_agent.runs.lock import RunLock

    try:
        return RunLock(out)
    except UserError as error:
        raise UserError(
            f"another sweep is running in {out}: stop it first (Ctrl-C), or give another --out"
        ) from error

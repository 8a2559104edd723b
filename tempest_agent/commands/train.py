"""``tempest-agent train``: a run from its settings to its checkpoints."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from tempest_agent.commands.options.backend import backend_option, machine_from
from tempest_agent.commands.options.output import (
    json_option,
    only_results_on_stdout,
    print_json,
    print_table,
)
from tempest_agent.commands.options.types import COUNT, PATH, SEED, WholeNumber
from tempest_agent.errors import UserError

if TYPE_CHECKING:
    from tempest_agent.config import Config
    from tempest_agent.training.session import Session

EXIT_INTERRUPTED = 130
_MACHINE_OPTIONS = ("backend", "any_roms", "random_bytes")
NEWEST = "newest run"
DEFAULT = "default"
"""Configuration of a run for which none is named."""


@click.command()
@click.option(
    "--config",
    "source",
    metavar="NAME_OR_FILE",
    help="Settings: a name in configs/ (default, quick, ...) or a YAML file.",
)
@click.option("--steps", type=COUNT, help="Decisions of the whole run, over all games.")
@click.option("--seed", type=SEED, help="Seed of everything random.")
@click.option("--device", metavar="auto|cpu|cuda", help="Where the network is trained.")
@click.option("--envs", type=COUNT, help="Games played side by side.")
@click.option(
    "--actors",
    type=WholeNumber(0),
    help="Processes that play these games while this one learns (needs the extra: ray).",
)
@click.option(
    "--ray-address",
    metavar="auto|HOST:PORT",
    help="Ray cluster for the actors.  [default: one on this machine, for this run alone]",
)
@click.option(
    "--run-dir",
    type=PATH,
    help="Folder of the run, new or empty.  [default: runs/NAME-TIME-sSEED]",
)
@click.option(
    "--resume",
    is_flag=False,
    flag_value=NEWEST,
    metavar="[PATH]",
    help="Resume a run: its folder, a checkpoint in it, or nothing for the newest run.",
)
@click.option(
    "--from",
    "start",
    type=PATH,
    metavar="CHECKPOINT",
    help="Start a new run with the networks of a checkpoint (step_*.pt); all else is new.",
)
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="section.key=value",
    help="Change one setting; may be given several times.",
)
@click.option(
    "--eval-games",
    type=WholeNumber(0, 100_000),
    default=8,
    show_default=True,
    help="Greedy games played at every checkpoint; 0 for none.",
)
@click.option("--verbose", "-v", is_flag=True, help="Print all metrics of each log row as a table.")
@backend_option
@json_option
@click.pass_context
def train(
    context: click.Context,
    /,
    source: str | None,
    steps: int | None,
    seed: int | None,
    device: str | None,
    envs: int | None,
    actors: int | None,
    ray_address: str | None,
    run_dir: Path | None,
    resume: str | None,
    start: Path | None,
    overrides: tuple[str, ...],
    eval_games: int,
    verbose: bool,
    as_json: bool,
    **machine_options: Any,
) -> None:
    """Train an agent; configuration, metrics and checkpoints go to the run's own folder.

    The newest checkpoint is also copied to checkpoints/latest.pt. Ctrl-C saves a checkpoint and
    ends the run with exit code 130; --resume continues as if it had not been interrupted (on the
    real game, and with actors, with new games).
    """
    flags = {"run.steps": steps, "run.seed": seed, "run.device": device, "run.num_envs": envs}
    flags["actors.count"] = actors
    chosen = [f"{key}={value}" for key, value in flags.items() if value is not None]
    local = _local_settings(ray_address, machine_options["rom_path"], machine_options["mame_path"])
    if resume is not None:
        _refuse_changes(context)
    else:
        chosen += [*_machine_settings(machine_options), *local]
    with only_results_on_stdout():
        if resume is None:
            config = _config(source, [*chosen, *overrides])
            if config.game.backend == "sim":
                machine_from(**{**machine_options, "backend": "sim"})
        from tempest_agent.agent.ranks.process_group import join
        from tempest_agent.training.session import Session, follow

        replicas = join()
        if not replicas.is_first:
            context.exit(EXIT_INTERRUPTED if follow(replicas) else 0)
        if resume is None:
            session = Session.new(config, run_dir, eval_games, verbose, start, replicas=replicas)
        else:
            path = None if resume == NEWEST else PATH.convert(resume, None, context)
            session = Session.resumed(
                path or run_dir,
                steps,
                eval_games,
                device,
                verbose,
                actors={} if actors is None else {"count": actors},
                local=[*local, *overrides],
                replicas=replicas,
            )
        result = session.run()
    if as_json:
        print_json(result)
    else:
        print_table(_rows(result, session), "training")
    if result["stopped"]:
        click.echo(f"stopped; resume with: {session.resume_command}", err=True)
        context.exit(EXIT_INTERRUPTED)


def _rows(result: dict[str, Any], session: Session) -> Iterator[tuple[str, str]]:
    """Yield the result as people read it, and what to do next."""
    from tempest_agent.console.progress import duration, speed
    from tempest_agent.evaluation.checkpoint_games import EVAL_MAX_TICKS

    greedy = session.last_greedy
    if greedy is not None:
        yield (
            "greedy games",
            f"IQM {greedy['score_iqm']:,.0f}, level {greedy['level_mean']:.1f} "
            f"(cut after {EVAL_MAX_TICKS:,} ticks)",
        )
    yield "decisions", f"{result['steps']:,} of {session.total_steps:,}"
    yield "updates", f"{result['updates']:,}"
    yield (
        "speed",
        f"{speed(result['env_steps_per_second'])} decisions/s, "
        f"{speed(result['samples_per_second'])} samples/s (what comes before the first decision, "
        f"mostly compiling, is not counted), {duration(result['seconds'])} in all",
    )
    yield (
        "expert",
        f"{result['expert_ratio']:.2f} of the decisions, epsilon {result['epsilon']:.3f}",
    )
    yield "checkpoint", result["checkpoint"]
    yield "curves", f"tensorboard --logdir {shlex.quote(result['run_dir'])}"
    if not result["stopped"]:
        yield "score it", "tempest-agent eval latest"
        yield "watch it", "tempest-agent play latest --record game.mp4"


def _refuse_changes(context: click.Context) -> None:
    from tempest_agent.config import local_settings

    flags = {"source": "config", "start": "from"}
    given = [
        f"--{flags.get(name, name.replace('_', '-'))}"
        for name in ("source", "start", "seed", "envs", *_MACHINE_OPTIONS)
        if context.get_parameter_source(name) == ParameterSource.COMMANDLINE
    ]
    keys = [override.partition("=")[0].strip() for override in context.params["overrides"]]
    given += [f"--set {key}" for key in keys if key not in local_settings()]
    if given:
        raise UserError(
            f"{given[0]} cannot be changed while resuming: a run keeps its settings; leave it out "
            "(only --steps, --device, --actors, --ray-address, --rom-path and --mame may change), "
            "or start a new run without --resume"
        )
    if context.params["resume"] != NEWEST and context.params["run_dir"] is not None:
        raise UserError("--resume PATH and --run-dir both name a run: give one of them")


def _machine_settings(options: Mapping[str, Any]) -> list[str]:
    """Return the given options of the real machine as settings, without ``_local_settings``."""
    settings = ["game.backend=mame"] if options["backend"] == "mame" else []
    if options["random_bytes"] is not None:
        settings.append(f"game.random_bytes={options['random_bytes']}")
    if options["any_roms"]:
        settings.append("game.strict_roms=false")
    return settings


def _local_settings(
    ray_address: str | None, rom_path: Path | None, mame_path: str | None
) -> list[str]:
    """Return the options that no file may set, as settings."""
    given = {
        "actors.ray_address": ray_address,
        "game.rom_path": None if rom_path is None else str(rom_path.absolute()),
        "game.mame_path": mame_path,
    }
    return [
        f"{key}={json.dumps(value, ensure_ascii=False)}"
        for key, value in given.items()
        if value is not None
    ]


def _config(source: str | None, overrides: list[str]) -> Config:
    from tempest_agent.config import ConfigError, load_config, without_auto

    try:
        return without_auto(load_config(DEFAULT if source is None else source, overrides))
    except ConfigError as error:
        raise UserError(str(error)) from error

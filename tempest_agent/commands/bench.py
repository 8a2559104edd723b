"""``tempest-agent bench``: measure speed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from tempest_agent.bench.figures import Figure
from tempest_agent.commands.options.backend import (
    backend_option,
    introduce_machine,
    machine_from,
)
from tempest_agent.commands.options.output import (
    json_option,
    only_results_on_stdout,
    print_json,
    print_table,
)
from tempest_agent.envs.mame.errors import machine_errors
from tempest_agent.errors import UserError

TARGETS = ("env", "render", "learner", "replay", "train")
"""Modules of ``tempest_agent.bench`` with a function ``measure``."""


@click.command()
@click.argument("target", type=click.Choice(TARGETS), default="env")
@backend_option
@json_option
def bench(target: str, backend: str, as_json: bool, **machine_options: Any) -> None:
    """Measure the speed of a part: env (default), render, learner, replay or train.

    Ratios are to a baseline measured in the same run.  `bench env --backend mame` measures the
    cost of the bridge to the real game.
    """
    if backend != "sim" and target != "env":
        raise UserError(f"bench {target} measures the simulator only: leave --backend out")
    machine = machine_from(backend, **machine_options)
    if machine is not None:
        introduce_machine(machine)
    with only_results_on_stdout(), machine_errors():
        if machine is not None:
            figures: dict[str, Figure] = import_module("tempest_agent.bench.mame").measure(machine)
        else:
            figures = import_module(f"tempest_agent.bench.{target}").measure()
    if as_json:
        print_json({"name": target, "figures": figures})
    else:
        print_table([(name, _text(entry)) for name, entry in figures.items()], f"bench {target}")


def _text(entry: Figure) -> str:
    if entry["value"] is None:
        return f"not measured ({entry['unit']})"
    text = f"{entry['value']:,.4g} {entry['unit']}"
    if entry["value"] >= 1000:
        text = f"{entry['value']:,.0f} {entry['unit']}"
    if entry["ratio"] is not None:
        text += f"; {entry['ratio']:,.3g} times the baseline of {entry['baseline']:,.4g}"
    return text

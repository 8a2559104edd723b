"""Command-line options of the real machine."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tempest_agent.commands.options.types import PATH
from tempest_agent.envs.mame.errors import machine_errors
from tempest_agent.errors import UserError

if TYPE_CHECKING:
    from tempest_agent.envs.mame.mame_options import MameOptions

F = TypeVar("F", bound=Callable[..., Any])

_ROM_OPTIONS = (
    click.option(
        "--rom-path",
        type=PATH,
        help="Folder with your own tempest.zip or tempest1.zip, for --backend mame.",
    ),
    click.option("--mame", "mame_path", help="The program MAME.  [default: the installed one]"),
    click.option("--any-roms", is_flag=True, help="Accept ROM files with wrong checksums."),
    click.option(
        "--random-bytes",
        type=click.Choice(["machine", "simulator"]),
        help="Source of the real game's random bytes: its own chips, or the simulator's stream.  "
        "[default: machine]",
    ),
)


def rom_options(command: F) -> F:
    """Add the options of the real machine to ``command``, as keywords for ``machine_from``."""
    for option in reversed(_ROM_OPTIONS):
        command = option(command)
    return command


def backend_option(command: F) -> F:
    """Add the option ``--backend`` and the options of the real machine."""
    option = click.option(
        "--backend",
        type=click.Choice(["sim", "mame"]),
        default="sim",
        show_default=True,
        help="What the games run on: the simulator, or the real game in MAME.",
    )
    return option(rom_options(command))


def machine_from(
    backend: str,
    rom_path: Path | None,
    mame_path: str | None,
    any_roms: bool,
    random_bytes: str | None,
    *,
    window: bool = False,
) -> MameOptions | None:
    """Return the options of the requested machine; None for the simulator.

    Raises ``UserError`` for options that contradict each other, and if MAME or a usable ROM set is
    missing.
    """
    from tempest_agent.envs.mame.mame_options import MameOptions

    if backend == "sim":
        given = {"--rom-path": rom_path, "--mame": mame_path, "--any-roms": any_roms}
        given["--random-bytes"] = random_bytes
        for name, value in given.items():
            if value:
                raise UserError(f"{name} is for the real game only: add --backend mame")
        return None
    from tempest_agent.envs.mame.roms import find_rom_set

    options: dict[str, Any] = {
        "rom_path": rom_path,
        "mame_path": mame_path,
        "strict_roms": not any_roms,
        "random_bytes": random_bytes,
        "mame_window": window,
        # Nobody who closes MAME's window wants another one.
        "max_restarts": 0 if window else None,
    }
    with machine_errors():
        machine = MameOptions.from_mapping(options, "--rom-path")
        return dataclasses.replace(machine, rom_set=find_rom_set(machine))


def introduce_machine(machine: MameOptions) -> None:
    """Print which ROM set is played."""
    from tempest_agent.envs.mame.mame_options import ROM_SETS

    name = str(machine.rom_set)
    click.echo(f"ROM set {name} (Tempest {ROM_SETS[name]}) on MAME", err=True)


def require_display() -> None:
    """Raise ``UserError`` if there is no display for MAME's window."""
    if sys.platform == "linux" and not (
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    ):
        raise UserError(
            "MAME's window needs a display and there is none (DISPLAY is not set): "
            "leave --render out, or film the game with --record FILE.mp4"
        )

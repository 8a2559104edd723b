"""The real machine as the configuration names it, and its errors as the user reads them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tempest_agent.config import GameConfig
from tempest_agent.envs.mame.errors import MachineError, MameError
from tempest_agent.envs.mame.mame_options import MameOptions
from tempest_agent.errors import UserError


def machine_of(game: GameConfig) -> MameOptions | None:
    """The machine that ``game`` is played on; ``None`` for the simulator.

    Raises ``UserError`` where no ROMs are named.
    """
    if game.backend == "sim":
        return None
    if not game.rom_path:
        raise UserError(
            "game.backend=mame needs game.rom_path (--rom-path), the folder with your own "
            "tempest.zip or tempest1.zip"
        )
    return MameOptions(
        game.rom_path,
        mame_path=game.mame_path or None,
        strict_roms=game.strict_roms,
        random_bytes=game.random_bytes,
    )


@contextmanager
def machine_errors() -> Iterator[None]:
    """Turn what goes wrong with MAME into one line for the user."""
    try:
        yield
    except MameError as error:
        raise UserError(str(error)) from error
    except MachineError as error:
        raise UserError(f"{error}; the machine failed too often in a row") from error

"""The real machine that a run's configuration asks for."""

from __future__ import annotations

from tempest_agent.config import GameConfig
from tempest_agent.envs.mame.errors import machine_errors
from tempest_agent.envs.mame.mame_options import MameOptions


def machine_of(game: GameConfig) -> MameOptions | None:
    """Return the machine that ``game`` is played on; ``None`` for the simulator.

    Raises ``UserError`` if no ROMs are named.
    """
    if game.backend == "sim":
        return None
    given = {
        "rom_path": game.rom_path or None,
        "mame_path": game.mame_path or None,
        "strict_roms": game.strict_roms,
        "random_bytes": game.random_bytes,
    }
    with machine_errors():
        return MameOptions.from_mapping(given, "game.rom_path (--rom-path)")

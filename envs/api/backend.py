"""What the games run on: the simulator, or MAME."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from tempest_agent.envs.checks import check_one_of
from tempest_agent.envs.engine.batch import GameBatch
from tempest_agent.envs.engine.settings import GameSettings
from tempest_agent.envs.mame.mame_batch import MameBatch
from tempest_agent.envs.mame.mame_options import MameOptions
from tempest_agent.envs.messages import shown

BACKENDS = ("sim", "mame")
MACHINE_OPTIONS = tuple(field.name for field in dataclasses.fields(MameOptions))
"""Names of the options that only ``backend="mame"`` takes."""


def machine_options(backend: str, given: Mapping[str, Any]) -> MameOptions | None:
    """Return the options of ``backend``: ``None`` for the simulator.

    Raises ``ValueError`` for an unknown backend, options of the other one, and a missing
    ``rom_path``.
    """
    check_one_of("backend", backend, BACKENDS)
    if backend == "sim":
        if given:
            name = next(iter(given))
            raise ValueError(
                f"{name}={shown(given[name])} is for the real game only: add backend='mame'"
            )
        return None
    return MameOptions.from_mapping(given)


def make_batch(
    num_games: int,
    settings: GameSettings | None = None,
    machine: MameOptions | None = None,
    *,
    autoreset: bool = False,
    observe: bool = True,
    plain: bool = False,
    num_threads: int = 1,
) -> GameBatch:
    """Make ``num_games`` games on the simulator, or on real machines if ``machine`` is given."""
    if machine is not None:
        return MameBatch(
            num_games, settings, machine, autoreset=autoreset, observe=observe, plain=plain
        )
    return GameBatch(
        num_games,
        settings,
        autoreset=autoreset,
        observe=observe,
        plain=plain,
        num_threads=num_threads,
    )

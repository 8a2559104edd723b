"""MAME with the test program, for the tests that need the real thing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tempest_agent.envs.mame.errors import MameError
from tempest_agent.envs.mame.mame_options import MameOptions, find_mame

from .program import write_rom_set


def _mame_is_missing() -> bool:
    try:
        find_mame(None)
    except MameError:
        return True
    return False


# Where the project is checked automatically, a missing MAME is a failure: the tests run and say so.
needs_mame = pytest.mark.skipif(
    _mame_is_missing() and not os.environ.get("CI"),
    reason="MAME is not installed (apt-get install mame)",
)


def rom_set(factory: pytest.TempPathFactory) -> Path:
    """A folder with the test program as ROM set."""
    return write_rom_set(factory.mktemp("roms"))


def machine(roms: Path, **options: Any) -> MameOptions:
    """Options for the test program, whose checksums are not the game's."""
    return MameOptions(roms, **{"strict_roms": False, **options})

"""Options of the machine itself, checked before MAME is started."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tempest_agent.envs.checks import check_flag, check_number, check_one_of, check_whole
from tempest_agent.envs.messages import shown

from .errors import MameError

ROM_SETS = {
    "tempest1": "rev 1",
    "tempest": "rev 3, revised hardware",
    "tempest1r": "rev 1, revised hardware",
    "tempest2": "rev 2",
    "tempest3": "rev 3",
}
"""The sets that can be played, by MAME's names; of several in one folder the first is taken."""
RANDOM_SOURCES = ("machine", "simulator")
LONGEST_WAIT = 86_400.0
"""Seconds of a time limit."""
MOST_RESTARTS = 1_000_000
_USUAL_FOLDERS = (
    "/usr/games", "/usr/local/games", "/usr/local/bin", "/opt/homebrew/bin", "/opt/local/bin",
)  # fmt: skip
"""Where systems put MAME, in everybody's ``PATH`` or not."""


@dataclass(frozen=True)
class MameOptions:
    """How MAME is run.

    ``rom_path``: the folder with a ROM set of Tempest (``tempest.zip``, ``tempest1.zip``, a folder
    of such a name, or the files themselves), or the zip file.  ``rom_set``: MAME's name of the set
    to play, a key of ``ROM_SETS``; by default the one that MAME finds there.  ``mame_path``: the
    program MAME, by default the one that is installed.  ``strict_roms``: refuse files whose
    checksums MAME does not know.  ``random_bytes``: ``"machine"`` plays with the POKEYs' own bytes;
    ``"simulator"`` answers the reads that matter to play from the simulator's generator, so that a
    game is the simulator's game of the same seed.  ``mame_window``: show MAME's own window, at the
    game's speed.

    ``start_timeout`` and ``answer_timeout``: seconds until a MAME that does not answer counts as
    hanging.  ``max_restarts``: how often in a row a failed MAME is restarted.
    ``save_states``: start games from a save state, or (``False``) by a new start from attract mode.
    """

    rom_path: str | Path
    mame_path: str | Path | None = None
    strict_roms: bool = True
    random_bytes: str = "machine"
    mame_window: bool = False
    start_timeout: float = 60.0
    answer_timeout: float = 10.0
    max_restarts: int = 3
    save_states: bool = True
    rom_set: str | None = None

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any], folder: str = "rom_path") -> MameOptions:
        """Return the options in ``given``; entries that are ``None`` keep their defaults.

        ``folder``: what the user calls ``rom_path``.  Raises ``MameError`` if that is missing.
        """
        if given.get("rom_path") is None:
            raise MameError(
                f"the real game needs {folder}, the folder with your own tempest.zip or "
                "tempest1.zip"
            )
        return cls(**{name: value for name, value in given.items() if value is not None})

    def __post_init__(self) -> None:
        try:
            self._check()
        except ValueError as error:
            raise MameError(str(error)) from error

    def _check(self) -> None:
        for name in ("rom_path", "mame_path"):
            path = getattr(self, name)
            installed = name == "mame_path" and path is None
            if not installed and not isinstance(path, (str, Path)):
                raise MameError(f"{name}={shown(path)}: a path is needed")
        check_one_of("random_bytes", self.random_bytes, RANDOM_SOURCES)
        if self.rom_set is not None:
            check_one_of("rom_set", self.rom_set, ROM_SETS)
        for name in ("strict_roms", "mame_window", "save_states"):
            check_flag(name, getattr(self, name))
        for name in ("start_timeout", "answer_timeout"):
            seconds = getattr(self, name)
            check_number(name, seconds)
            if not 0 < seconds <= LONGEST_WAIT:
                raise MameError(
                    f"{name}={shown(seconds)}: a time in seconds above 0, "
                    f"at most {LONGEST_WAIT:,.0f}"
                )
        check_whole("max_restarts", self.max_restarts, 0, MOST_RESTARTS, "0 fails at once")


def find_mame(chosen: str | Path | None) -> Path:
    """Return the MAME executable; ``MameError`` if there is none."""
    places = os.pathsep.join([os.environ.get("PATH", os.defpath), *_USUAL_FOLDERS])
    found = shutil.which(os.path.expanduser(chosen or "mame"), path=places)
    if found is not None:
        return Path(found)
    if chosen is not None:
        raise MameError(f"{shown(Path(chosen))} is no executable file: give MAME's own path")
    raise MameError(
        f"MAME is not installed (no 'mame' in PATH, {', '.join(_USUAL_FOLDERS)}): "
        "install it with 'apt-get install mame', or give its path"
    )

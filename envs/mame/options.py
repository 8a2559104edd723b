"""What may be chosen about the machine itself, checked before MAME is started."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from ..checks import check_flag, check_number, check_one_of, check_whole
from ..messages import shown
from .errors import MameError

ROM_SET = "tempest1"
FIRST_ROM = "136002-113.d1"
RANDOM_SOURCES = ("machine", "simulator")
LONGEST_WAIT = 86_400.0
"""Seconds of a time limit."""
MOST_RESTARTS = 1_000_000
_USUAL_PLACES = ("/usr/games/mame", "/usr/local/bin/mame")


@dataclass(frozen=True)
class MameOptions:
    """How MAME is run.

    ``rom_path``: the folder with the ROM set ``tempest1`` (``tempest1.zip``, a folder of that
    name, or the 20 files themselves), or the zip file.  ``mame_path``: the program MAME, by
    default the one that is installed.  ``strict_roms``: refuse files whose checksums MAME does
    not know.  ``random_bytes``: ``"machine"`` plays with the POKEYs' own bytes; ``"simulator"``
    answers the reads that matter to play from the simulator's generator, so that a game is the
    simulator's game of the same seed.  ``mame_window``: show MAME's own window, at the game's
    speed.

    ``start_timeout`` and ``answer_timeout``: seconds until a MAME that does not answer counts as
    hanging.  ``max_restarts``: how often in a row a failed MAME is started anew.
    ``save_states``: begin games from a save state, or (``False``) by a new start from attract mode.
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
    """The MAME executable; ``MameError`` where there is none."""
    if chosen is not None:
        found = shutil.which(str(chosen))
        if found is None:
            raise MameError(f"{shown(Path(chosen))} is no executable file: give MAME's own path")
        return Path(found)
    for place in ("mame", *_USUAL_PLACES):
        found = shutil.which(place)
        if found is not None:
            return Path(found)
    raise MameError(
        "MAME is not installed (no 'mame' in PATH or in /usr/games): "
        "install it with 'apt-get install mame', or give its path"
    )


def link_roms(rom_path: str | Path, folder: Path) -> None:
    """Make ``folder`` a ROM folder of MAME's with nothing but links to the user's files.

    MAME's own path option splits at semicolons and wants the set's name; links do not.
    Raises ``MameError`` where ``rom_path`` holds no set ``tempest1``.
    """
    path = Path(rom_path).expanduser().absolute()
    if not path.exists():
        raise MameError(
            f"rom_path={shown(Path(rom_path))} does not exist: give the folder with {ROM_SET}.zip"
        )
    folder.mkdir()
    if not path.is_dir():
        if path.suffix.lower() not in {".zip", ".7z"}:
            raise MameError(
                f"rom_path={shown(Path(rom_path))} is no folder and no zip: give the folder with "
                f"{ROM_SET}.zip"
            )
        (folder / f"{ROM_SET}{path.suffix.lower()}").symlink_to(path)
        return
    if (path / FIRST_ROM).is_file():
        (folder / ROM_SET).symlink_to(path)
        return
    # A merged set keeps the clone's files in the parent's archive.
    names = [f"{game}{ending}" for game in (ROM_SET, "tempest") for ending in ("", ".zip", ".7z")]
    present = [name for name in names if (path / name).exists()]
    for name in present:
        (folder / name).symlink_to(path / name)
    if not present:
        inside = sorted(each.name for each in path.iterdir())[:5]
        listing = f"it holds {', '.join(inside)}" if inside else "it is empty"
        raise MameError(
            f"rom_path={shown(Path(rom_path))} has no ROM set '{ROM_SET}' (Tempest rev 1): "
            f"{listing}; put {ROM_SET}.zip there, or give the folder in which it is"
        )

"""What may be chosen about the machine itself, checked before MAME is started."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from .errors import MameError

ROM_SET = "tempest1"
FIRST_ROM = "136002-113.d1"
RANDOM_SOURCES = ("machine", "simulator")
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
        if self.random_bytes not in RANDOM_SOURCES:
            raise MameError(
                f"random_bytes={self.random_bytes!r}: 'machine' for the POKEYs' own bytes, "
                "'simulator' for the simulator's"
            )
        for name in ("start_timeout", "answer_timeout"):
            if not getattr(self, name) > 0:
                raise MameError(f"{name}={getattr(self, name)!r}: a time in seconds above 0")
        if self.max_restarts < 0:
            raise MameError(f"max_restarts={self.max_restarts!r}: 0 or more")


def find_mame(chosen: str | Path | None) -> Path:
    """The MAME executable; ``MameError`` where there is none."""
    if chosen is not None:
        found = shutil.which(str(chosen))
        if found is None:
            raise MameError(f"{str(chosen)!r} is no executable file: give MAME's own path")
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
            f"rom_path={str(rom_path)!r} does not exist: give the folder with {ROM_SET}.zip"
        )
    folder.mkdir()
    if not path.is_dir():
        if path.suffix.lower() not in {".zip", ".7z"}:
            raise MameError(
                f"rom_path={str(rom_path)!r} is no folder and no zip: give the folder with "
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
            f"rom_path={str(rom_path)!r} has no ROM set {ROM_SET!r} (Tempest rev 1): {listing}; "
            f"put {ROM_SET}.zip there, or give the folder in which it is"
        )

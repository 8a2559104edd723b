"""Which ROM set a folder holds: MAME itself is asked, by the files' content."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

from tempest_agent.envs.messages import printable, shown

from .errors import MameError
from .mame_options import ROM_SETS, MameOptions, find_mame
from .output import ask

ARCHIVES = (".zip", ".7z")
HOME_PREFIX = "tempest-agent-mame-"
_ROM_FILES = "136002-*"
"""How the files of every set are called."""

_MANY = 20
"""Archives of other names in a folder: with more of them it is a collection, none is opened."""

_ASK_SECONDS = 90.0
_FAULT = re.compile(r"^(\w+) *: (\S+) \(\d+ bytes\) - (NOT FOUND|\w+)", re.MULTILINE)
_VERDICT = re.compile(r"^romset (\w+) .*is (good|best available|bad)$", re.MULTILINE)
_MAME = re.compile(r"\bromsets? ")


def make_home(rom_path: str | Path) -> Path:
    """Return a private folder for one MAME, with the user's ROM files below it (``rom_folders``).

    Raises ``MameError`` where ``rom_path`` holds no ROM files of the game.
    """
    try:
        places = _places(rom_path)
    except OSError as error:
        raise MameError(
            f"rom_path={shown(Path(rom_path))} cannot be read: {error.strerror}; give the "
            "folder with your own ROM files"
        ) from error
    try:
        home = Path(tempfile.mkdtemp(prefix=HOME_PREFIX))
    except OSError as error:
        raise MameError(
            f"MAME's private folder cannot be made: {error}; set TMPDIR to a folder that "
            "can be written"
        ) from error
    try:
        # MAME's own path option wants each set's name and splits at semicolons; links do not.
        for number, place in enumerate(places):
            folder = home / "roms" / str(number)
            folder.mkdir(parents=True)
            ending = "" if place.is_dir() else place.suffix.lower()
            for name in ROM_SETS:
                (folder / f"{name}{ending}").symlink_to(place)
    except BaseException:
        shutil.rmtree(home, ignore_errors=True)
        raise
    return home


def rom_folders(home: Path) -> str:
    """Return MAME's ROM path below ``home``: all ROM files under the name of every set."""
    return ";".join(str(folder) for folder in sorted((home / "roms").iterdir()))


def _places(rom_path: str | Path) -> list[Path]:
    """Return the folders and archives below ``rom_path`` that may hold a set."""
    path = Path(os.path.expanduser(rom_path)).absolute()
    given = f"rom_path={shown(Path(rom_path))}"
    if not path.exists():
        raise MameError(f"{given} does not exist: give the folder with your own tempest.zip")
    if not path.is_dir():
        if path.suffix.lower() not in ARCHIVES:
            raise MameError(
                f"{given} is no folder and no zip: give the folder with your own tempest.zip"
            )
        return [path]
    loose = [path] if any(path.glob(_ROM_FILES)) else []
    named = [path / f"{name}{ending}" for name in ROM_SETS for ending in ("", *ARCHIVES)]
    places = loose + [place for place in named if place.exists()]
    if places:
        return places
    inside = sorted(path.iterdir())
    archives = [each for each in inside if each.suffix.lower() in ARCHIVES and each.is_file()]
    if 0 < len(archives) <= _MANY:
        return archives
    names = [printable(each.name, 60) for each in inside[:5]]
    listing = f"it holds {', '.join(names)}" if names else "it is empty"
    raise MameError(
        f"{given} has no ROM set of Tempest ({', '.join(ROM_SETS)}): {listing}; "
        "put tempest.zip or tempest1.zip there, or give the folder in which it is"
    )


def find_rom_set(options: MameOptions) -> str:
    """Return MAME's name of the set in ``options.rom_path`` that is to be played.

    MAME compares names and checksums with its own list.  Raises ``MameError`` if there is no
    MAME, if no set is complete, and, with ``strict_roms``, if a file differs.
    """
    executable = find_mame(options.mame_path)
    home = make_home(options.rom_path)
    try:
        arguments = ["-noreadconfig", "-inipath", str(home), "-homepath", str(home)]
        arguments += ["-rompath", rom_folders(home), "-verifyroms", "tempest*"]
        command = [str(executable), *arguments]
        said = ask(command, home, min(_ASK_SECONDS, options.start_timeout))
    finally:
        shutil.rmtree(home, ignore_errors=True)
    if not _MAME.search(said):
        words = printable(" ".join(said.split()), 200)
        answer = f"says '{words}'" if words else "says nothing"
        raise MameError(
            f"{shown(executable)} is no MAME that knows Tempest: asked to check the ROM files it "
            f"{answer}; give MAME's own path, or install it (apt-get install mame)"
        )
    return _chosen(said, options)


def _chosen(said: str, options: MameOptions) -> str:
    wanted = [options.rom_set] if options.rom_set is not None else list(ROM_SETS)
    verdicts = {name: verdict for name, verdict in _VERDICT.findall(said) if name in wanted}
    for name in ROM_SETS:
        if verdicts.get(name, "bad") != "bad":
            return name
    given = f"rom_path={shown(Path(options.rom_path))}"
    if not verdicts:
        raise MameError(
            f"{given}: MAME finds no ROM set of Tempest in it ({', '.join(wanted)}): give the "
            "folder with tempest.zip or tempest1.zip"
        )
    missing: dict[str, list[str]] = {name: [] for name in ROM_SETS if name in verdicts}
    wrong: dict[str, list[str]] = {name: [] for name in missing}
    for name, file, fault in _FAULT.findall(said):
        if name in missing:
            (missing if fault == "NOT FOUND" else wrong)[name].append(printable(file, 60))
    nearest = min(missing, key=lambda name: (len(missing[name]), len(wrong[name])))
    known = f"the set {nearest} (Tempest {ROM_SETS[nearest]})"
    absent, different = missing[nearest], wrong[nearest] or ["a file"]
    if absent:
        raise MameError(
            f"{given}: {known} is incomplete or another one, MAME does not find {absent[0]} "
            f"({len(absent)} files in all): get the whole set"
        )
    if options.strict_roms:
        others = f" (and {len(different) - 1} more)" if len(different) > 1 else ""
        raise MameError(
            f"{given}: {different[0]}{others} differs from {known} (wrong checksum): get a set "
            "that MAME knows, or allow it with strict_roms=False (--any-roms)"
        )
    return nearest

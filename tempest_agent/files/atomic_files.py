"""Files that are written whole or not at all, and what interrupted writes leave behind."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


def publish(source: Path, target: Path) -> None:
    """Copy ``source`` to ``target``, where a complete file is found at any moment."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as copy, source.open("rb") as file:
        shutil.copyfileobj(file, copy)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file that replaces ``path`` once it is complete and on the disk.

    If ``path`` is a link, the link is replaced, not its target.
    """
    # A kill leaves this file behind; ``remove_leftovers`` recognises its name.
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with unfinished.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException as error:
        with suppress(OSError):  # Where nothing can be written, nothing can be removed.
            unfinished.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename in (None, str(unfinished)):
            error.filename = str(path)  # A full disk does not say which file it was.
        raise


def remove_leftovers(folder: Path, names: str, age: float = 0.0) -> None:
    """Remove the temporary files that killed processes left in ``replacing``.

    Args:
        folder: where to look; it may be missing.
        names: regular expression of the names of the files to be replaced.
        age: least seconds since the last write.  0 if no other process writes there; otherwise
            (every run writes ``checkpoints/latest.pt``) longer than writing a file can take.
    """
    unfinished = _unfinished(names)
    for path in folder.glob(".*"):
        if unfinished.fullmatch(path.name) is None:
            continue
        try:
            if time.time() - path.stat().st_mtime >= age:
                path.unlink()
        except FileNotFoundError:
            continue  # Just renamed by its writer, or removed by another process.


def set_aside(path: Path) -> Path:
    """Rename a damaged file to ``NAME.bad`` (or ``NAME.bad2`` ...) and return the new path."""
    bad = path.with_name(f"{path.name}.bad")
    number = 1
    while bad.exists():
        number += 1
        bad = path.with_name(f"{path.name}.bad{number}")
    return path.rename(bad)


def lasting_names(folder: Path, written: str) -> Iterator[str]:
    """Yield the names in ``folder`` that ``remove_leftovers(folder, written)`` would keep."""
    unfinished = _unfinished(written)
    return (path.name for path in folder.iterdir() if unfinished.fullmatch(path.name) is None)


def _unfinished(names: str) -> re.Pattern[str]:
    """Return the pattern of the temporary names of ``replacing`` for files of these ``names``."""
    return re.compile(rf"\.(?:{names})\.[a-z0-9_]{{8}}")

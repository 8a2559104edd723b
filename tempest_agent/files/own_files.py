"""Write the program's own files safely at names where somebody else may have put a link."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from pathlib import Path

from tempest_agent.errors import UserError
from tempest_agent.files.system_errors import system_reason

_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""No symbolic link, and no pipe that waits for its other end."""

LINK_ERRORS = (errno.ELOOP, errno.ENXIO)
"""Errors of opening a link, or a pipe without a reader, with these flags."""


class LinkedFileError(UserError):
    """A link is in the place of a file to be written; its target is unchanged."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(
            f"{path} is a link or no plain file, and nothing is written through it: "
            "remove it, or move it elsewhere"
        )


def open_own(path: str, flags: int) -> int:
    """Open ``path`` for writing, as an ``opener`` of ``open``, but never through a link.

    Hard links count too: their file has another name somewhere.

    Raises:
        LinkedFileError: it is a link, a pipe or a device; nothing was changed.
    """
    try:
        file = os.open(path, (flags & ~os.O_TRUNC) | _NO_FOLLOW, 0o666)
    except OSError as error:
        if error.errno in LINK_ERRORS:
            raise LinkedFileError(path) from error
        raise
    try:
        require_own(file, path)
        if flags & os.O_TRUNC:
            os.ftruncate(file, 0)
    except BaseException:
        os.close(file)
        raise
    return file


def require_own(file: int, path: str | Path) -> None:
    """Raise ``LinkedFileError`` if the open ``file`` has other names or is not a regular file."""
    found = os.fstat(file)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        raise LinkedFileError(path)


def require_own_folder(folder: Path) -> None:
    """Raise ``UserError`` if ``folder``, inside a run, is a link."""
    if folder.is_symlink():
        raise UserError(
            f"{folder} is a link to {os.readlink(folder)}, and nothing is written through it: put "
            "the folder itself there (a run may be moved, and linked, as a whole)"
        )


def require_writable(folder: Path) -> None:
    """Create ``folder`` if needed; raise ``UserError`` if no file can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except FileExistsError as error:
        raise UserError(f"{folder} is a file: give a folder") from error
    except OSError as error:
        raise UserError(
            f"cannot write to {folder}: {system_reason(error)}; "
            "choose a folder of your own, or change its permissions"
        ) from error

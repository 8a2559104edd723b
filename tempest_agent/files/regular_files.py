"""Read files that may come from somebody else: only regular ones, up to a size.

A named pipe would block its reader, and a device has no end.
"""

from __future__ import annotations

import csv
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tempest_agent.envs.messages import shown
from tempest_agent.envs.plain_json import parse_json
from tempest_agent.errors import UserError, one_line

LARGEST_LOG = 100_000_000
"""Bytes of a run's log: some hundred thousand rows."""
LARGEST_RECORD = 10_000_000
"""Bytes of a command's JSON output, or of ``run.json``."""

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def read_regular(path: Path, largest: int) -> bytes:
    """Return the content of the file ``path``.

    Raises:
        UserError: it is no regular file, or has more than ``largest`` bytes.
        OSError: it cannot be read.
    """
    # Never block on a pipe or a terminal.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
    handle = os.open(path, flags | getattr(os, "O_BINARY", 0))
    try:
        mode = os.fstat(handle).st_mode
        if not stat.S_ISREG(mode):
            kind = _KINDS.get(stat.S_IFMT(mode), "something else")
            raise UserError(f"{shown(path)} is not a regular file but {kind}")
        with os.fdopen(handle, "rb", closefd=False) as file:
            content = file.read(largest + 1) or b""  # Some system files return None.
    finally:
        os.close(handle)
    if len(content) > largest:
        raise UserError(f"{shown(path)} is too large: more than {largest:,} bytes")
    return content


def read_lines(path: Path) -> list[str]:
    """Return the lines of a log, invalid UTF-8 replaced.

    Raises:
        UserError: as ``read_regular``.
        OSError: as ``read_regular``.
    """
    return read_regular(path, LARGEST_LOG).decode("utf-8", errors="replace").split("\n")


def read_table(path: Path) -> Iterator[list[str]]:
    """Yield the fields of each line of a CSV file; none for a line that is not CSV.

    Raises:
        UserError: as ``read_regular``.
        OSError: as ``read_regular``.
    """
    for line in read_lines(path):
        try:
            # Line by line, so that an unclosed quote damages one line only.
            fields = next(csv.reader([line.rstrip("\r").replace("\0", "\ufffd")]), [])
        except csv.Error:  # Such as a field of more than 131,072 characters.
            fields = []
        if fields or line.strip():
            yield fields


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in the file ``path``.

    Raises:
        UserError: as ``read_regular``, or it holds something else.
        OSError: as ``read_regular``.
    """
    try:
        tree = parse_json(read_regular(path, LARGEST_RECORD).decode("utf-8"))
    except ValueError as error:
        raise UserError(f"{shown(path)} is damaged: {one_line(error)}") from error
    if not isinstance(tree, dict):
        raise UserError(f"{shown(path)} is damaged: it holds no JSON object")
    return tree

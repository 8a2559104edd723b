"""Foreign ZIP archives (``.npz``, ``.pt``): their unpacked size is known before they are read.

A small file may declare, or hide, more than memory holds.  So the sizes in the archive's directory
are compared with what its kind of file can need, arrays with the sizes of their entries, and
nothing is read beyond them.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from .messages import shown

MOST_ENTRIES = 100_000
DEFLATED = 1100
"""Greatest compression ratio of deflate, about."""

UNREADABLE = (OSError, EOFError, ValueError, LookupError, NotImplementedError, RuntimeError,
              zipfile.BadZipFile, zlib.error)  # fmt: skip
"""Exceptions of reading a damaged archive, depending on the wrong bytes."""

_KINDS = "biufU"
"""Numbers and text: ``dtype.kind`` of arrays that may be read."""
_PIECE = 1 << 20


class ArchiveError(ValueError):
    """An archive that is refused; the message is one line without the file's name."""


def sizes(archive: zipfile.ZipFile, *, packed: bool = True) -> dict[str, int]:
    """Return what each entry of ``archive`` unpacks to, in bytes, as its directory declares.

    Args:
        archive: open for reading.
        packed: whether entries may be compressed.

    Raises:
        ArchiveError: entries as no writer of this program's formats makes them.
        zipfile.BadZipFile: a directory that cannot be true.
    """
    entries = archive.infolist()
    if len(entries) > MOST_ENTRIES:
        raise ArchiveError(f"it has {len(entries):,} entries, at most {MOST_ENTRIES:,} are read")
    ways = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) if packed else (zipfile.ZIP_STORED,)
    found: dict[str, int] = {}
    for entry in entries:
        name = entry.filename[:80]
        if entry.compress_type not in ways or entry.flag_bits & 1:
            raise ArchiveError(f"its entry {shown(name)} is compressed in a way that is not read")
        stored = entry.compress_type == zipfile.ZIP_STORED
        most = entry.compress_size * (1 if stored else DEFLATED)
        if entry.file_size > most or entry.filename in found:
            raise zipfile.BadZipFile(
                f"entry {shown(name)} is not as large as it says, or there twice"
            )
        found[entry.filename] = entry.file_size
    # Entries that share their data would unpack to more than the sum of their parts.
    if sum(entry.compress_size for entry in entries) > Path(str(archive.filename)).stat().st_size:
        raise zipfile.BadZipFile("its entries overlap")
    return found


def read_arrays(
    path: str | Path, largest: Mapping[str, int], together: int
) -> dict[str, NDArray[Any]]:
    """Return the arrays of an ``.npz`` that ``largest`` names; others are skipped.

    Args:
        path: of the file.
        largest: bytes that each array may take.
        together: bytes that all of them may take.

    Raises:
        ArchiveError: they would take more, or are no plain numbers or text.
        OSError, EOFError, ...: ``UNREADABLE``, for damaged files.
    """
    if not Path(path).is_file():  # A pipe would wait for its writer.
        raise FileNotFoundError("there is no such file")
    with zipfile.ZipFile(path) as archive:
        declared = sizes(archive)
        wanted = {name: declared[f"{name}.npy"] for name in largest if f"{name}.npy" in declared}
        for name, size in wanted.items():
            _check_size(f"its array {shown(name)} unpacks", size, largest[name])
        _check_size("it unpacks", sum(wanted.values()), together)
        arrays = {}
        for name, size in wanted.items():
            with archive.open(f"{name}.npy") as entry:
                arrays[name] = _read_array(name, entry, size)
    return arrays


_HEADER = 20_000
"""Bytes of an array's description at most."""


def _check_size(what: str, size: int, most: int) -> None:
    if size > most + _HEADER:
        raise ArchiveError(f"{what} to {size:,} bytes, and such a file needs at most {most:,}")


def _read_array(name: str, entry: IO[bytes], size: int) -> NDArray[Any]:
    """Return an array as it was written by ``numpy.save``, if it is as large as its entry."""
    version = np.lib.format.read_magic(entry)
    if version == (1, 0):
        shape, by_column, dtype = np.lib.format.read_array_header_1_0(entry)
    elif version == (2, 0):
        shape, by_column, dtype = np.lib.format.read_array_header_2_0(entry)
    else:
        raise ArchiveError(f"its array {shown(name)} is of a newer format, {version}")
    if dtype.kind not in _KINDS or dtype.itemsize == 0 or dtype.hasobject:
        raise ArchiveError(
            f"its array {shown(name)} is {str(dtype)[:40]}, neither numbers nor text"
        )
    count = 1
    for length in shape:
        count *= length
    if any(length < 0 for length in shape) or count * dtype.itemsize != size - entry.tell():
        while entry.read(_PIECE):  # A wrong checksum, at the end, says that it was damaged.
            pass
        raise ArchiveError(
            f"its array {shown(name)} says that it is {shown(shape)} and is of another size"
        )
    data = bytearray(count * dtype.itemsize)
    view = memoryview(data)
    for first in range(0, len(data), _PIECE):
        piece = entry.read(min(_PIECE, len(data) - first))
        if len(piece) != len(view[first : first + _PIECE]):
            raise EOFError(f"array {shown(name)} is cut short")
        view[first : first + len(piece)] = piece
    # The checksum is compared where the end is read.
    entry.read(1)
    return np.ndarray(shape, dtype, data, order="F" if by_column else "C")

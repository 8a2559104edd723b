"""The archive that a checkpoint is: read as a tree of plain values, whoever made it.

``torch.load(weights_only=True)`` runs nothing, but it makes more than a checkpoint has: objects of
any size from a few bytes, tensors that are views of next to nothing, lists without end in lists.
So the instructions are looked through before they are carried out, tensors are maps of the file
until all of them are known to fit, and what is not a plain value is refused.
"""

from __future__ import annotations

import pickletools
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tempest_agent.envs.archives import ArchiveError, sizes
from tempest_agent.errors import UserError

from .file_kinds import kind_of_archive

LARGEST_STRUCTURE = 2**26
"""Bytes of everything but the tensors: twice what a long run of the shortest games takes."""
MOST_PARTS = 4_000_000
"""Lists, tables, tensors and references in it, which take about 100 bytes each."""
DEEPEST = 24
LONGEST_TEXT = 100_000
LARGEST_WHOLE = 2**128
"""States of random generators are that large."""


_INSTRUCTIONS = frozenset((
    "PROTO", "STOP", "MARK", "NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2",
    "LONG1", "BINFLOAT", "BINUNICODE", "EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE", "TUPLE",
    "TUPLE1", "TUPLE2", "TUPLE3", "APPEND", "APPENDS", "SETITEM", "SETITEMS", "BINPUT",
    "LONG_BINPUT", "BINGET", "LONG_BINGET", "GLOBAL", "BINPERSID", "REDUCE",
))  # fmt: skip
"""Of those that a pickle may hold, the ones that ``torch.save`` makes of tensors and plain
values."""
_PARTS = frozenset(("MARK", "EMPTY_DICT", "EMPTY_LIST", "REDUCE", "BINPUT", "LONG_BINPUT"))
_NAMES = frozenset(
    {"collections OrderedDict", "_codecs encode", "torch.storage UntypedStorage"}
    | {f"torch._utils _rebuild_tensor_v{version}" for version in (2, 3)}
)
"""What those instructions may name, besides the types of numbers."""

_DTYPES = (
    "float16", "bfloat16", "float32", "float64", "bool", "uint8", "int8", "uint16", "int16",
    "uint32", "int32", "uint64", "int64",
)  # fmt: skip
_STORAGES = (
    "Half", "BFloat16", "Float", "Double", "Bool", "Byte", "Char", "Short", "Int", "Long",
)  # fmt: skip


class ForeignFileError(UserError):
    """A file that is whole, and was not written as a checkpoint of this program."""


def no_checkpoint(path: Path, what: str) -> str:
    """One line about the file ``path``, which is ``what``."""
    return f"{path} is not a checkpoint of tempest-agent{what}; give a *.pt file that train wrote"


def load_plain(path: Path) -> Any:
    """The tree in the archive ``path``; its tensors are maps of the file (see ``in_memory``).

    Raises:
        ForeignFileError: another archive, or more in it than tensors and plain values.
        OSError, RuntimeError, ...: what reading a damaged file ends in.
    """
    try:
        instructions = _look_through(path)
        tree = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        # A value may be there twice; what has more of them than that has lists that share lists.
        _Budget(2 * instructions, 2 * path.stat().st_size).take(tree, 0)
    except ArchiveError as error:
        raise ForeignFileError(no_checkpoint(path, f": {error}")) from error
    return tree


def in_memory(value: Any) -> Any:
    """``value`` with tensors that have memory of their own."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: in_memory(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(in_memory(item) for item in value)
    return value


def _look_through(path: Path) -> int:
    """The number of instructions in the archive, which may be carried out.

    Raises:
        ArchiveError: no checkpoint has them.
    """
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        structures = [name for name in names if name.endswith("/data.pkl")]
        if len(structures) != 1:
            raise ArchiveError(f"it is {kind_of_archive(names)}")
        if sizes(archive, packed=False)[structures[0]] > LARGEST_STRUCTURE:
            raise ArchiveError(f"it holds over {LARGEST_STRUCTURE:,} bytes besides its tensors")
        instructions = archive.read(structures[0])
    count = parts = 0
    for instruction, argument, _ in pickletools.genops(instructions):
        count += 1
        parts += instruction.name in _PARTS
        if parts > MOST_PARTS:
            raise ArchiveError(f"it holds over {MOST_PARTS:,} lists and tables")
        if instruction.name not in _INSTRUCTIONS or (
            instruction.name == "GLOBAL" and not _is_known(str(argument))
        ):
            raise ArchiveError("it holds more than tensors and plain values")
    return count


def _is_known(name: str) -> bool:
    kind = name.removeprefix("torch ")
    return name in _NAMES or kind in _DTYPES or kind.removesuffix("Storage") in _STORAGES


class _Budget:
    """What may still come in a tree."""

    def __init__(self, values: int, size: int) -> None:
        self._values, self._bytes = values, size

    def take(self, value: Any, depth: int) -> None:
        """Raises ``ArchiveError`` for ``value`` if it is too much, or not plain."""
        self._values -= 1
        if self._values < 0 or depth > DEEPEST:
            raise ArchiveError(f"it holds lists nested over {DEEPEST} deep or shared by others")
        if isinstance(value, Tensor):
            self._take_tensor(value)
        elif isinstance(value, dict):
            for key, item in value.items():
                if not isinstance(key, str | int):
                    raise ArchiveError("it has keys that are neither text nor numbers")
                self.take(key, depth + 1)
                self.take(item, depth + 1)
        elif isinstance(value, list | tuple):
            for item in value:
                self.take(item, depth + 1)
        elif isinstance(value, str | bytes):
            if len(value) > LONGEST_TEXT:
                raise ArchiveError(f"it holds a text of over {LONGEST_TEXT:,} letters")
        elif isinstance(value, int):
            if abs(value) > LARGEST_WHOLE:
                raise ArchiveError("it holds a number of over 128 bits")
        elif value is not None and not isinstance(value, float):
            raise ArchiveError("it holds more than tensors and plain values")

    def _take_tensor(self, value: Tensor) -> None:
        plain = type(value) is Tensor and value.layout == torch.strided
        if not plain or value.device.type != "cpu" or str(value.dtype)[6:] not in _DTYPES:
            raise ArchiveError("it holds tensors of another kind than checkpoints have")
        size = value.numel() * value.element_size()
        if size > value.untyped_storage().nbytes():
            raise ArchiveError("it holds a tensor that is larger than its data")
        self._bytes -= size
        if self._bytes < 0:
            raise ArchiveError("it holds tensors that are together larger than the file")

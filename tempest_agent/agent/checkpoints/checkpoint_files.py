"""Checkpoint files: written whole or not at all, readable without running anything.

A checkpoint ``*.pt`` holds only tensors and plain Python values, so ``torch.load`` reads it with
``weights_only=True`` and a crafted file cannot execute code.  The replay is kept beside it in an
``.npz`` without objects.  Both are written to a temporary file, forced to the disk, and only then
given their name; the replay first, so a checkpoint never names a snapshot that is not there.
Both are ZIP archives, whose checksums are compared before anything in them is used.
"""

from __future__ import annotations

import io
import logging
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tempest_agent.envs.archives import UNREADABLE, ArchiveError, read_arrays
from tempest_agent.envs.messages import shown
from tempest_agent.errors import UserError, one_line
from tempest_agent.files.atomic_files import remove_leftovers, replacing, set_aside
from tempest_agent.files.system_errors import machine_failure
from tempest_agent.runs.file_names import CHECKPOINT_FILES, checkpoint_step

from .checkpoint_archive import ForeignFileError, in_memory, load_plain, no_checkpoint
from .checkpoint_schema import check_content
from .file_kinds import kind_of
from .schema_checks import MisfitError

FORMAT = "tempest-agent checkpoint"
SCHEMA = 1
SUFFIX = ".pt"

_UNREADABLE = (*UNREADABLE, AttributeError, TypeError, MemoryError, struct.error)
"""What reading a damaged archive ends in, depending on which of its bytes are wrong."""

_ARCHIVE = b"PK\x03\x04"
"""How an archive begins."""

log = logging.getLogger("tempest_agent")


class DamagedCheckpointError(UserError):
    """A file that was cut or changed after it had been written, or never was a checkpoint."""


def pack(value: Any) -> Any:
    """``value`` with arrays as tensors and NumPy scalars as Python's; only safe types remain.

    Raises:
        TypeError: something that ``torch.load(weights_only=True)`` would refuse.
    """
    if isinstance(value, Tensor):
        return value.detach().cpu()
    if isinstance(value, np.ndarray):
        return torch.from_numpy(np.array(value))
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {pack_key(key): pack(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(pack(item) for item in value)
    if isinstance(value, list):
        return [pack(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    raise TypeError(f"{type(value).__name__} cannot be stored in a checkpoint; use plain types")


def pack_key(key: Any) -> str | int:
    """A dictionary key, text or number."""
    if isinstance(key, str | int):
        return key
    raise TypeError(f"key {shown(key)} cannot be stored in a checkpoint; use text or numbers")


def with_suffix(path: str | Path) -> Path:
    """``path``, with the suffix of checkpoints where it has none."""
    path = Path(path)
    return path if path.suffix else path.with_suffix(SUFFIX)


def existing(path: Path) -> Path:
    """``path``, or with the suffix of checkpoints where only that is a file."""
    longer = with_suffix(path)
    return longer if longer.is_file() else path


def write_checkpoint(path: Path, content: Mapping[str, Any]) -> None:
    """Write ``content`` to ``path``; the file there before stays until the new one is complete.

    Raises:
        UserError: the disk is full or the folder cannot be written.
    """
    # By way of memory: torch's own writer does not say why it cannot write.
    whole = io.BytesIO()
    torch.save({"format": FORMAT, "schema": SCHEMA, **pack(content)}, whole)
    try:
        with replacing(path) as file:
            file.write(whole.getbuffer())
    except OSError as error:
        raise UserError(
            f"cannot write the checkpoint {path}: {error.strerror}; free some space or check the "
            "folder's permissions (earlier checkpoints are untouched)"
        ) from error


def read_checkpoint(path: str | Path) -> dict[str, Any]:
    """The content of a checkpoint, tensors on the CPU.

    Raises:
        DamagedCheckpointError: damaged (also where only the numbers of a tensor are), or no
            archive at all.
        ForeignFileError: whole, and not written by this program, or changed since.
        UserError: no such file, one of a newer version, or one that the machine cannot read now.
    """
    path = Path(path)
    if path.is_dir():
        raise UserError(f"{path} is a folder; give a checkpoint file (*.pt) inside it")
    if path.exists() and not path.is_file():
        raise UserError(no_checkpoint(path, " but a pipe or a device"))
    if not path.is_file():
        raise UserError(f"no checkpoint {path}; check the name, or train one first")
    try:
        _check_archive(path)
        content = load_plain(path)
    except _UNREADABLE as error:
        _require_machine(path, error)
        raise DamagedCheckpointError(
            f"{path} is damaged or not a checkpoint ({one_line(error)[:120]}); "
            "use an earlier one from the same folder"
        ) from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ForeignFileError(no_checkpoint(path, " but holds tensors of another program"))
    version = content.get("schema")
    if version != SCHEMA:
        raise UserError(
            f"{path} has checkpoint version {shown(version)}, this program reads {SCHEMA}; update "
            "tempest-agent"
        )
    try:
        check_content(content)
    except MisfitError as error:
        raise ForeignFileError(
            f"{path} does not fit this version of tempest-agent: {error}; use the version that "
            "wrote it, or another file"
        ) from error
    whole: dict[str, Any] = in_memory(content)
    return whole


def write_replay(
    path: Path, stamp: str, arrays: Mapping[str, NDArray[Any]], *, compressed: bool = False
) -> None:
    """Write a replay snapshot; ``stamp`` ties it to its checkpoint.

    Args:
        path: of the ``.npz``.
        stamp: found in the checkpoint too.
        arrays: what ``ReplayBuffer.arrays`` gave.
        compressed: deflate it, which takes longer; ``read_replay`` reads both.

    Raises:
        UserError: the disk is full or the folder cannot be written.
    """
    try:
        with replacing(path) as file:
            _write_arrays(file, {"stamp": np.array(stamp), **arrays}, compressed)
    except OSError as error:
        raise UserError(
            f"cannot write the replay snapshot {path}: {one_line(error)}; free some space, or set "
            "run.save_replay=false"
        ) from error


def _write_arrays(file: IO[bytes], arrays: Mapping[str, NDArray[Any]], compressed: bool) -> None:
    """An ``.npz``.  NumPy's own compresses harder: three times as long for a third less."""
    method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(file, "w", method, compresslevel=1) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asanyarray(array), allow_pickle=False)


def read_replay(
    path: Path, stamp: str, largest: Mapping[str, int]
) -> dict[str, NDArray[Any]] | None:
    """The arrays of a snapshot; None if it is missing, damaged or another checkpoint's.

    Args:
        path: of the ``.npz``.
        stamp: of the checkpoint.
        largest: the arrays that are read, and the bytes that each may take.

    Raises:
        ForeignFileError: they would take more.
        UserError: the machine cannot read it now.
    """
    try:
        arrays = read_arrays(path, {"stamp": 1000, **largest}, sum(largest.values()))
    except ArchiveError as error:
        raise ForeignFileError(
            f"{path} is not the replay of this run: {error}; move it away to resume without"
        ) from error
    except (FileNotFoundError, NotADirectoryError):
        return None
    except _UNREADABLE as error:
        failure = error
    else:
        return None if str(arrays.pop("stamp", "")) != stamp else arrays
    if not _is_damaged(path):
        _require_machine(path, failure)
    return None


def _require_machine(path: Path, error: BaseException) -> None:
    """Raise ``UserError`` if ``error`` is a failure of the machine, not of the file's bytes."""
    why = machine_failure(error)
    if why is not None:
        raise UserError(
            f"cannot read {path}: {why}; it is left as it is: try again when the machine can"
        ) from error


def _is_damaged(path: Path) -> bool:
    """Check the archive ``path``: a wrong byte in it may ask for more memory than there is."""
    try:
        _check_archive(path)
    except _UNREADABLE as error:
        return machine_failure(error) is None
    return False


def newest_checkpoint(folder: Path, *, clear: bool = False) -> Path:
    """The newest ``step_*.pt`` in ``folder`` that is whole; damaged ones are named in the log.

    That is the one with most decisions: resuming from a checkpoint moves all later ones away.

    Args:
        folder: of the checkpoints of one run.
        clear: rename damaged files to ``NAME.bad``, so that they are not met again.

    Raises:
        UserError: there is none, the newest is of a newer version, or the machine cannot read it
            now; in the last case no file is renamed.
    """
    damaged: list[Path] = []
    newest: Path | None = None
    for path in sorted(folder.glob("step_*.pt"), key=checkpoint_step, reverse=True):
        try:
            read_checkpoint(path)
        except DamagedCheckpointError:
            damaged.append(path)
            continue
        newest = path
        break
    for path in damaged:
        # A full disk or a crash of the machine must not end the run.
        done = f"set aside as {set_aside(path).name}" if clear else "passed over"
        log.warning("%s is damaged: %s, going back to an earlier checkpoint", path, done)
    if newest is None:
        raise UserError(f"no usable checkpoint (step_*.pt) in {folder}; nothing to resume from")
    return newest


def take_back(folder: Path) -> None:
    """Rename whole checkpoints that were set aside back to their names.

    Raises:
        UserError: the machine cannot read one of them now.
    """
    for path in sorted(folder.glob("step_*.pt.bad*")):
        name = path.with_name(path.name.partition(".bad")[0])
        if name.exists():
            continue
        try:
            read_checkpoint(path)
        except DamagedCheckpointError:
            continue
        path.rename(name)
        log.warning("%s is whole: it is %s again", path, name.name)


def prune(folder: Path, keep: int, written: Path) -> None:
    """Remove all but the ``keep`` newest ``step_*.pt``, and replays but the newest one's.

    The file ``written`` last stays with its replay also where others have more steps.  What a
    killed process left half written goes too, so nobody may be writing here.
    """
    remove_leftovers(folder, CHECKPOINT_FILES)
    found = sorted(folder.glob("step_*.pt"), key=checkpoint_step)
    for path in found[:-keep]:
        if path != written:
            path.unlink(missing_ok=True)
    replays = {path.stem.replace("step_", "replay_") for path in (*found[-1:], written)}
    for path in folder.glob("replay_*.npz"):
        if path.stem not in replays:
            path.unlink(missing_ok=True)


def _check_archive(path: Path) -> None:
    """Raise ``BadZipFile`` where the file is cut short or a stored checksum does not fit.

    ``torch.load`` says the one in terms of its own parts and ignores the other.
    """
    with path.open("rb") as file:
        beginning = file.read(len(_ARCHIVE))
        if not beginning:
            raise zipfile.BadZipFile("it is empty")
        try:
            archive = zipfile.ZipFile(file)
        except zipfile.BadZipFile as error:
            # Which it also calls a file that the disk would not give.
            if isinstance(error.__context__, OSError) and machine_failure(error.__context__):
                raise error.__context__ from None
            if beginning == _ARCHIVE:
                raise zipfile.BadZipFile("its end is missing") from error
            raise DamagedCheckpointError(no_checkpoint(path, f" but {kind_of(path)}")) from error
        with archive:
            damaged = archive.testzip()
    if damaged is not None:
        raise zipfile.BadZipFile(f"wrong checksum of {damaged}")

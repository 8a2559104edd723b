"""The checkpoints of one training run: what is in its folder, and what each file is for."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from tempest_agent.errors import UserError, one_line
from tempest_agent.files.atomic_files import publish
from tempest_agent.files.system_errors import machine_failure

from .checkpoint_files import (
    DamagedCheckpointError,
    newest_checkpoint,
    read_checkpoint,
    read_replay,
    write_replay,
)
from .checkpoint_schema import RUN, require_entries

BEST, GOOD = "best.pt", "good.pt"
"""Copies of the checkpoint whose teacher-free games scored most, and of the last one without
symptoms."""

MISFITS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What comes of content that is checked, and does not fit what it is loaded into."""

log = logging.getLogger("tempest_agent")


def checkpoint_at(path: Path) -> Path:
    """``path``, or the newest usable checkpoint of the run whose folder it is.

    Raises:
        UserError: there is none.
    """
    if not path.is_dir():
        return path
    inner = path / "checkpoints"
    return newest_checkpoint(inner if inner.is_dir() else path)


def read_run(path: Path, use: str) -> dict[str, Any]:
    """What the training checkpoint at ``path`` holds; ``use`` says what it is for.

    Raises:
        UserError: no usable checkpoint, or only a player.
    """
    content = read_checkpoint(path)
    if content.get("player_only"):
        raise UserError(f"{path} holds only a player, not a training run; {use} a run's step_*.pt")
    require_entries(path, content, RUN)
    return content


@contextmanager
def fitting(path: Path) -> Iterator[None]:
    """Say of what is wrong with the content of a checkpoint that it is the checkpoint's."""
    try:
        yield
    except MISFITS as error:
        if machine_failure(error) is not None:
            raise
        raise UserError(
            f"{path} does not fit this version of tempest-agent "
            f"({one_line(error)}); use the version that wrote it"
        ) from error


def write_snapshot(
    folder: Path, step: int, rows: Mapping[str, NDArray[Any]] | None, compressed: bool
) -> dict[str, Any]:
    """Write the replay's ``rows``, if any, for the checkpoint of ``step``.

    Returns:
        The checkpoint's entry ``snapshot``, with which ``find_replay`` finds them.
    """
    folder.mkdir(exist_ok=True)
    stamp = uuid.uuid4().hex
    file = None if rows is None else f"replay_{step}.npz"
    if rows is not None and file is not None:
        write_replay(folder / file, stamp, rows, compressed=compressed)
    return {"file": file, "stamp": stamp}


def find_replay(
    path: Path, snapshot: Mapping[str, Any], learning_starts: int, largest: Mapping[str, int]
) -> dict[str, NDArray[Any]] | None:
    """The replay's rows of the checkpoint ``path``; None, with a warning, if they are missing.

    Raises:
        UserError: the machine cannot read them now.
    """
    if snapshot["file"] is not None:
        # Beside the checkpoint and nowhere else: a file of others names no folder to look in.
        arrays = read_replay(path.parent / snapshot["file"], snapshot["stamp"], largest)
        if arrays is not None:
            return arrays
    log.warning(
        "the replay of %s is missing or damaged; filling it with %d new decisions before the next "
        "update",
        path,
        learning_starts,
    )
    return None


def step_of(path: Path) -> int | None:
    """Return the decisions of the checkpoint ``path``; None if it is missing or damaged."""
    if not path.is_file():
        return None
    try:
        return int(read_checkpoint(path)["step"])
    except DamagedCheckpointError as error:
        log.warning("%s", error)
        return None


def restore_kept(folder: Path, steps: Mapping[str, int | None]) -> None:
    """Restore the copies ``best.pt`` and ``good.pt`` of ``steps`` from the checkpoints left.

    They differ where a run was killed before they were written, or is resumed from an earlier
    checkpoint.
    """
    for name, step in steps.items():
        source = folder / f"step_{step}.pt"
        if source.is_file() and step_of(folder / name) != step:
            publish(source, folder / name)


def read_good(folder: Path, step: int | None) -> dict[str, Any] | None:
    """The checkpoint of ``step``, the last without symptoms; None if it is not there any more.

    Raises:
        UserError: the machine cannot read it now.
    """
    for path in (folder / GOOD, folder / f"step_{step}.pt"):
        if step is None or not path.is_file():
            continue
        try:
            content = read_checkpoint(path)
        except DamagedCheckpointError as error:
            log.warning("%s", error)
            continue
        # After going on from an earlier checkpoint the file may be of another future.
        if int(content["step"]) == step:
            return content
    return None

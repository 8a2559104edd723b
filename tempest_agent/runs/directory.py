"""Create, find and clean up the folders of training runs, never touching another run's."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from tempest_agent.envs.messages import shown
from tempest_agent.errors import UserError
from tempest_agent.files.atomic_files import lasting_names, remove_leftovers, replacing
from tempest_agent.files.own_files import require_own_folder, require_writable
from tempest_agent.runs.file_names import (
    CHECKPOINT_FILES,
    CHECKPOINT_FOLDER,
    CONFIG_FILE,
    LOCK_FILE,
    RUN_FILE,
    RUN_FILES,
    RUNS_FOLDER,
    START_FILE,
)
from tempest_agent.runs.provenance import TIME_FORMAT, recorded_starts

HOUR = 3600.0

_NAME = re.compile(r"\w[\w.+ -]{0,99}")


log = logging.getLogger("tempest_agent")


def create_run(name: str, seed: int, chosen: Path | None = None) -> Path:
    """Create the folder of a new run and return it.

    ``chosen`` is the folder the user asked for; by default it is ``runs/<name>-<time>-s<seed>`` in
    the current directory.  Raises ``UserError`` for a non-empty folder and for an unusable name.
    """
    if chosen is not None:
        return _make_chosen(chosen)
    if _NAME.fullmatch(name) is None:
        raise UserError(
            f"run.name={shown(name)} cannot start a folder's name: use up to 100 letters, digits, "
            "'_', '-' and '.', or choose the folder with --run-dir"
        )
    stem = f"{name}-{time.strftime('%Y%m%d-%H%M%S')}-s{seed}"
    for attempt in range(1, 1000):
        path = Path(RUNS_FOLDER) / (stem if attempt == 1 else f"{stem}-{attempt}")
        require_writable(path.parent)
        try:
            path.mkdir()
        except FileExistsError:
            continue
        (path / CHECKPOINT_FOLDER).mkdir()
        return path
    raise UserError(f"a thousand runs named {stem} exist already: choose a folder with --run-dir")


def claim_run(run: Path) -> None:
    """Remove what a run killed at its start left in ``run``, which this process has locked.

    Raises:
        UserError: another process has just started a run there.
    """
    _require_new(run)
    remove_leftovers(run, RUN_FILES)
    remove_leftovers(run / CHECKPOINT_FOLDER, CHECKPOINT_FILES)
    (run / RUN_FILE).unlink(missing_ok=True)
    (run / START_FILE).unlink(missing_ok=True)


def discard_run(run: Path) -> None:
    """Remove the folder of a run that could not start, unless it holds foreign files."""
    for name in (CONFIG_FILE, RUN_FILE, START_FILE):
        (run / name).unlink(missing_ok=True)
    discard_folders(run)


def discard_folders(run: Path) -> None:
    """Remove the folders of a run that are empty."""
    for folder in (run / CHECKPOINT_FOLDER, run):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def write_config(run: Path, settings: Mapping[str, Any]) -> None:
    """Write the resolved ``settings`` (plain types) to the run's ``config.yaml``."""
    with replacing(run / CONFIG_FILE) as file:
        file.write(yaml.safe_dump(dict(settings), sort_keys=False).encode())


def require_text(folder: Path) -> None:
    """Raise ``UserError`` for a name that is not UTF-8, which YAML and TensorBoard cannot store."""
    try:
        str(folder).encode()
    except UnicodeEncodeError as error:
        raise UserError(
            f"{shown(folder)} is no name in UTF-8: give the run another folder"
        ) from error


def find_run(asked: Path | None) -> Path:
    """Return the run to resume: the folder ``asked`` for (or of a file in it), or the newest one.

    The newest run is the one started or resumed last, by ``run.json``.  Without ``asked``, newer
    runs that cannot be resumed are logged and skipped.
    """
    if asked is None:
        runs = sorted((file.parent for file in Path(RUNS_FOLDER).glob(f"*/{RUN_FILE}")), key=_age)
        for number, run in enumerate(runs):
            if can_resume(run):
                for empty in runs[:number]:
                    log.warning("%s has no checkpoint: continuing with %s", empty, run)
                return run
        kind = "run with a checkpoint" if runs else "run"
        raise UserError(
            f"nothing to resume: no {kind} in {Path(RUNS_FOLDER).absolute()}; "
            "give the run's folder (--resume PATH) or change to where it was started"
        )
    if not asked.exists():
        raise UserError(
            f"cannot resume {asked}: there is no such folder or file; "
            "give a run's folder, or leave the path out for the newest run"
        )
    for folder in (asked, asked.parent, asked.parent.parent):
        if (folder / RUN_FILE).is_file() or (folder == asked and can_resume(folder)):
            require_text(folder.absolute())
            return folder
    raise UserError(
        f"cannot resume {asked}: it is not part of a run (no {RUN_FILE} beside it); "
        "give a run's folder, or a checkpoint inside one"
    )


def can_resume(run: Path) -> bool:
    """Return whether there is something to resume: a checkpoint, or settings to restart from."""
    return any((run / CHECKPOINT_FOLDER).glob("step_*.pt*")) or can_restart(run)


def can_restart(run: Path) -> bool:
    """Return whether ``run`` ended before its first checkpoint, with its settings written."""
    folder = run / CHECKPOINT_FOLDER
    saved = (path.name for path in folder.glob("*.pt*"))
    begun = folder.is_dir() and (run / CONFIG_FILE).is_file()
    return begun and all(name == START_FILE.name for name in saved)


def _age(run: Path) -> tuple[float, int]:
    """Return the sort key that puts the run started or resumed last first."""
    file = run / RUN_FILE
    try:
        started = datetime.strptime(
            (recorded_starts(file) or [])[-1]["time"], TIME_FORMAT
        ).timestamp()
    except (LookupError, TypeError, ValueError, OSError):
        started = 0.0
    # Copying changes the file's own time, which still tells runs of the same second apart.
    return -started, -file.stat().st_mtime_ns


def _make_chosen(path: Path) -> Path:
    require_text(path.absolute())
    if path.exists() and not path.is_dir():
        raise UserError(f"--run-dir {path} is a file: give a folder that is new or empty")
    if path.is_dir():
        _require_new(path)
    require_own_folder(path / CHECKPOINT_FOLDER)
    require_writable(path / CHECKPOINT_FOLDER)
    return path


def _require_new(folder: Path) -> None:
    if _is_new(folder):
        return
    if (folder / RUN_FILE).exists():
        raise UserError(
            f"--run-dir {folder} holds another run: continue it with --resume {folder}, "
            "or give a new folder"
        )
    raise UserError(f"--run-dir {folder} is not empty: give a folder that is new or empty")


def _is_new(folder: Path) -> bool:
    """Return whether ``folder`` is empty, or has only what a run killed at its start leaves."""
    # ``run.json`` is ours only if it lists starts.
    begun = (folder / RUN_FILE).is_file() and bool(recorded_starts(folder / RUN_FILE))
    ours = {LOCK_FILE, CHECKPOINT_FOLDER, *[RUN_FILE][:begun]}
    if not ours.issuperset(lasting_names(folder, RUN_FILES)):
        return False
    checkpoints = folder / CHECKPOINT_FOLDER
    taken_over = {*[START_FILE.name][:begun]}
    return not checkpoints.exists() or (
        checkpoints.is_dir() and taken_over.issuperset(lasting_names(checkpoints, CHECKPOINT_FILES))
    )

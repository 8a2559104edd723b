"""Where a training run keeps its files, and how it never touches another run's.

A run directory holds::

    config.yaml       the resolved configuration
    run.json          command lines, time, git commit and versions (one entry a start or resume)
    metrics.csv       one row a log line
    evaluations.csv   one row a checkpoint: greedy games
    guard.jsonl       one line for each thing that the stability guard saw or did
    events.out.*      both for TensorBoard
    checkpoints/      step_*.pt, the newest ones, the best, and the last good one; start.pt, where
                      the run took over the networks of another checkpoint (``train --from``)
    abandoned/        what a run had become before it was resumed from an earlier checkpoint
    .lock             held while a process works on the run (see ``run_lock``)

``run.json`` and ``config.yaml`` are written, in this order, before anything else: a run that was
killed before its first checkpoint is restarted from them.  A file that turns out to be
damaged is renamed to ``NAME.bad``, and the run goes on without it.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import re
import secrets
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import IO, Any

import yaml

from tempest_agent.errors import UserError, shown
from tempest_agent.files.own_files import require_own_folder
from tempest_agent.files.regular_files import read_json
from tempest_agent.files.system_errors import system_reason
from tempest_agent.runs.lock import LOCK_FILE

RUNS_FOLDER = "runs"
CONFIG_FILE = "config.yaml"
RUN_FILE = "run.json"
CHECKPOINT_FOLDER = "checkpoints"
LATEST = Path(CHECKPOINT_FOLDER) / "latest.pt"
"""The newest checkpoint of any run, relative to the current directory."""

RUN_FILES = (
    r"run\.json|config\.yaml|metrics\.csv|evaluations\.csv|guard\.jsonl|events\.out\.tfevents\..+"
)
START_FILE = Path(CHECKPOINT_FOLDER) / "start.pt"
CHECKPOINT_FILES = r"step_\d+\.pt|replay_\d+\.npz|best\.pt|good\.pt|start\.pt"
LATEST_FILES = r"latest\.pt"
"""Names, as regular expressions, of what ``replacing`` writes into a folder."""

HOUR = 3600.0

_NAME = re.compile(r"\w[\w.+ -]{0,99}")

TIME = "%Y-%m-%dT%H:%M:%S%z"
"""How ``run.json`` writes times."""

_VERSIONED = ("tempest-agent", "numpy", "numba", "torch", "gymnasium", "stable-baselines3")

log = logging.getLogger("tempest_agent")


def create_run(name: str, seed: int, chosen: Path | None = None) -> Path:
    """Make the folder of a new run and return it.

    ``chosen`` is the folder the user asked for; without it, ``runs/<name>-<time>-s<seed>`` in the
    current directory.  A folder that holds anything is refused, and a name that is no folder's.
    """
    if chosen is not None:
        return _make_chosen(chosen)
    if _NAME.fullmatch(name) is None:
        raise UserError(
            f"run.name={shown(name)} cannot begin a folder's name: use up to 100 letters, digits, "
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
    """Remove what a run left in ``run`` that was killed at its start; this process has locked it.

    Raises:
        UserError: another process has just started a run there.
    """
    _require_new(run)
    remove_leftovers(run, RUN_FILES)
    remove_leftovers(run / CHECKPOINT_FOLDER, CHECKPOINT_FILES)
    (run / RUN_FILE).unlink(missing_ok=True)
    (run / START_FILE).unlink(missing_ok=True)


def discard_run(run: Path) -> None:
    """Remove the folder of a run that could not begin; one that holds files of others stays."""
    for name in (CONFIG_FILE, RUN_FILE, START_FILE):
        (run / name).unlink(missing_ok=True)
    discard_folders(run)


def discard_folders(run: Path) -> None:
    """Remove the folders of a run where there is nothing in them."""
    for folder in (run / CHECKPOINT_FOLDER, run):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def write_config(run: Path, settings: Mapping[str, Any]) -> None:
    """Write the resolved ``settings`` (plain types) to the run's ``config.yaml``."""
    with replacing(run / CONFIG_FILE) as file:
        file.write(yaml.safe_dump(dict(settings), sort_keys=False).encode())


def require_text(folder: Path) -> None:
    """``UserError`` for a name that is no text, which neither YAML nor TensorBoard could hold."""
    try:
        str(folder).encode()
    except UnicodeEncodeError as error:
        raise UserError(
            f"{shown(folder)} is no name in UTF-8: give the run another folder"
        ) from error


def require_writable(folder: Path) -> None:
    """Make ``folder`` if need be; raise ``UserError`` if no file can be written there."""
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


def find_run(asked: Path | None) -> Path:
    """The run to resume: the folder ``asked`` for (or that of a file in it), or the newest one.

    The newest is the one that was started or resumed last, as ``run.json`` says.  Without
    ``asked``, newer runs that cannot be resumed are named in the log and passed over.
    """
    if asked is None:
        runs = sorted((file.parent for file in Path(RUNS_FOLDER).glob(f"*/{RUN_FILE}")), key=_age)
        for number, run in enumerate(runs):
            if can_resume(run):
                for empty in runs[:number]:
                    log.warning("%s has no checkpoint: going on with %s", empty, run)
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
        started = datetime.strptime((_starts(file) or [])[-1]["time"], TIME).timestamp()
    except (LookupError, TypeError, ValueError, OSError):
        started = 0.0
    # Copying changes the file's own time, which still tells runs of the same second apart.
    return -started, -file.stat().st_mtime_ns


def record_start(run: Path, resumed_at: int | None = None) -> None:
    """Add this start of the program to the run's ``run.json``."""
    file = run / RUN_FILE
    starts = _starts_before(file)
    starts.append(
        {
            "time": time.strftime(TIME),
            "command": shlex.join(["tempest-agent", *sys.argv[1:]]),
            "resumed_at_step": resumed_at,
            "git_commit": git_commit(),
            "python": platform.python_version(),
            "platform": platform.platform(),
            "cpus": os.cpu_count(),
            "versions": {name: _version(name) for name in _VERSIONED},
        }
    )
    with replacing(file) as new:
        new.write((json.dumps({"starts": starts}, indent=2) + "\n").encode())


def _starts_before(file: Path) -> list[dict[str, Any]]:
    if not file.is_file():
        return []
    starts = _starts(file)
    if starts is None:
        log.warning("%s is damaged: set aside as %s, and begun anew", file, set_aside(file).name)
        return []
    return starts


def _starts(file: Path) -> list[dict[str, Any]] | None:
    """Return the starts that ``run.json`` lists; None for a damaged or foreign file."""
    try:
        starts = read_json(file).get("starts")
    except UserError:
        return None
    return starts if isinstance(starts, list) else None


def git_commit() -> str | None:
    """The commit of this program's source, with ``-dirty`` if changed; None outside a checkout."""
    folder = Path(__file__).parent

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=10
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    # An installed copy may lie inside somebody else's checkout: ask whether git knows this file.
    if git("ls-files", "--error-unmatch", Path(__file__).name) is None:
        return None
    commit = git("rev-parse", "HEAD")
    return f"{commit}-dirty" if commit and git("status", "--porcelain", "-uno") else commit


def publish(checkpoint: Path, target: Path) -> None:
    """Copy ``checkpoint`` to ``target`` so that a whole file is there at any moment."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as copy, checkpoint.open("rb") as source:
        shutil.copyfileobj(source, copy)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file to write that takes the place of ``path`` once it is complete and on the disk.

    Where ``path`` is a link, its target stays as it is: the file takes the place of the link.
    """
    # A kill leaves this file behind: ``remove_leftovers`` knows it by its name.
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
    """Remove what killed processes left of ``replacing`` files.

    Args:
        folder: where they were to be; if there is none, nothing happens.
        names: regular expression of the names of the files that were to be replaced.
        age: seconds since the last write.  0 where no other process writes; where others may
            (``checkpoints/latest.pt`` is every run's), more than writing a file can take.
    """
    unfinished = _unfinished(names)
    for path in folder.glob(".*"):
        if unfinished.fullmatch(path.name) is None:
            continue
        try:
            if time.time() - path.stat().st_mtime >= age:
                path.unlink()
        except FileNotFoundError:
            continue  # Its writer has just given it its name, or somebody else removed it.


def set_aside(path: Path) -> Path:
    """Rename a damaged file to ``NAME.bad`` (or ``NAME.bad2`` ...), which is returned."""
    bad = path.with_name(f"{path.name}.bad")
    number = 1
    while bad.exists():
        number += 1
        bad = path.with_name(f"{path.name}.bad{number}")
    return path.rename(bad)


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
            f"--run-dir {folder} holds another run: go on with it by --resume {folder}, "
            "or give a new folder"
        )
    raise UserError(f"--run-dir {folder} is not empty: give a folder that is new or empty")


def _is_new(folder: Path) -> bool:
    """Return whether ``folder`` is empty, or has only what a run killed at its start leaves."""
    # ``run.json`` is ours only if it lists starts.
    begun = (folder / RUN_FILE).is_file() and bool(_starts(folder / RUN_FILE))
    ours = {LOCK_FILE, CHECKPOINT_FOLDER, *[RUN_FILE][:begun]}
    if not ours.issuperset(_names(folder, RUN_FILES)):
        return False
    checkpoints = folder / CHECKPOINT_FOLDER
    taken_over = {*[START_FILE.name][:begun]}
    return not checkpoints.exists() or (
        checkpoints.is_dir() and taken_over.issuperset(_names(checkpoints, CHECKPOINT_FILES))
    )


def _names(folder: Path, written: str) -> Iterator[str]:
    """Return the names in ``folder`` that ``remove_leftovers(folder, written)`` would leave."""
    unfinished = _unfinished(written)
    return (path.name for path in folder.iterdir() if unfinished.fullmatch(path.name) is None)


def _unfinished(names: str) -> re.Pattern[str]:
    """Return the pattern of temporary names that ``replacing`` uses for ``names``."""
    return re.compile(rf"\.(?:{names})\.[a-z0-9_]{{8}}")


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def checkpoint_step(path: Path) -> int:
    """The decisions played when ``step_<n>.pt`` was written; -1 for other names."""
    found = re.fullmatch("step_([0-9]{1,19})", path.stem)
    return int(found[1]) if found else -1

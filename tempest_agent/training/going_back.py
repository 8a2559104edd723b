"""Runs resumed from an earlier checkpoint: what came after it is moved aside, as its own run.

``RUN/abandoned/from_step_N/`` gets the later checkpoints, and copies of all logs as they were.  The
run itself is then as it was after ``N`` decisions.  A kill in between leaves
``unfinished_from_step_N``, which the next resume completes first.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path

from tempest_agent.agent.checkpoints.run_checkpoints import BEST, GOOD, step_of
from tempest_agent.files.atomic_files import publish, remove_leftovers
from tempest_agent.files.own_files import require_own_folder
from tempest_agent.runs.file_names import (
    CHECKPOINT_FILES,
    CHECKPOINT_FOLDER,
    CONFIG_FILE,
    GUARD_FILE,
    RUN_FILE,
    RUN_FILES,
    checkpoint_step,
)
from tempest_agent.runs.metrics_log import EVENT_FILES, TABLES, cut_events

ABANDONED = "abandoned"

_UNFINISHED = re.compile(r"unfinished_(from_step_(\d+))")

log = logging.getLogger("tempest_agent")


def go_back(run: Path, checkpoint: Path, step: int) -> None:
    """Move aside what the run has, if anything, after ``checkpoint`` at ``step`` decisions."""
    folder = run / CHECKPOINT_FOLDER
    own = folder / f"step_{step}.pt"
    if not own.exists():  # ``best.pt``, or one from elsewhere.
        publish(checkpoint, own)
    if not any(path.suffix == ".pt" for path in _later(folder, step)):
        return
    require_own_folder(run / ABANDONED)
    (run / ABANDONED / f"unfinished_from_step_{step}").mkdir(parents=True)
    finish_going_back(run)


def finish_going_back(run: Path) -> None:
    """Complete an interrupted ``go_back``, if there is one."""
    for folder in sorted((run / ABANDONED).glob("unfinished_*")):
        match = _UNFINISHED.fullmatch(folder.name)
        if match is None:
            continue
        require_own_folder(run / ABANDONED)
        require_own_folder(folder)
        step = int(match[2])
        _move_later(run, folder, step)
        name, number = folder.with_name(match[1]), 1
        while name.exists():
            number += 1
            name = folder.with_name(f"{match[1]}-{number}")
        folder.rename(name)
        log.warning(
            "%s goes back to decision %s: what came after is its own run now, %s",
            run,
            f"{step:,}",
            name,
        )


def _move_later(run: Path, aside: Path, step: int) -> None:
    """Move and copy files to ``aside``; each part may be repeated."""
    checkpoints = aside / CHECKPOINT_FOLDER
    checkpoints.mkdir(exist_ok=True)
    remove_leftovers(aside, RUN_FILES)
    remove_leftovers(checkpoints, CHECKPOINT_FILES)
    events = [path.name for path in sorted(run.glob(EVENT_FILES))]
    for name in (CONFIG_FILE, *TABLES.values(), GUARD_FILE, *events, RUN_FILE):
        if (run / name).is_file() and not (aside / name).exists():
            publish(run / name, aside / name)
    for name in events:
        cut_events(run / name, step)
    for path in _later(run / CHECKPOINT_FOLDER, step):
        path.replace(checkpoints / path.name)
    for name in (BEST, GOOD):
        kept = run / CHECKPOINT_FOLDER / name
        if kept.is_file() and not (checkpoints / name).exists():
            publish(kept, checkpoints / name)


def _later(folder: Path, step: int) -> Iterator[Path]:
    """Yield the files of checkpoints that have more than ``step`` decisions."""
    for path in sorted(folder.glob("step_*.pt")):
        if checkpoint_step(path) > step:
            yield path
    for path in sorted(folder.glob("replay_*.npz")):
        if checkpoint_step(path.with_stem(path.stem.replace("replay_", "step_"))) > step:
            yield path
    for name in (BEST, GOOD):
        if (step_of(folder / name) or 0) > step:
            yield folder / name

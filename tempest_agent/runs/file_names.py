"""Names of the files of a training run.

A run directory holds::

    config.yaml       the resolved configuration
    run.json          command lines, times, git commit and versions (one entry per start or resume)
    metrics.csv       one row per log row
    evaluations.csv   one row per checkpoint: greedy games
    guard.jsonl       one line per symptom seen or remedy applied by the stability guard
    events.out.*      both tables for TensorBoard
    checkpoints/      step_*.pt: the newest, the best (best.pt) and the last good one (good.pt);
                      start.pt if the run started from the networks of another checkpoint
    abandoned/        what the run had logged and saved beyond the checkpoint it was resumed from
    .lock             held while a process works on the run (see ``lock``)

``run.json`` and ``config.yaml`` are written, in this order, before anything else: a run that was
killed before its first checkpoint is restarted from them.  A damaged file is renamed to
``NAME.bad``, and the run continues without it.
"""

from __future__ import annotations

import re
from pathlib import Path

RUNS_FOLDER = "runs"
CHECKPOINT_FOLDER = "checkpoints"
LATEST = Path(CHECKPOINT_FOLDER) / "latest.pt"
"""The newest checkpoint of any run, relative to the current directory."""

CONFIG_FILE = "config.yaml"
RUN_FILE = "run.json"
METRICS_FILE = "metrics.csv"
EVALUATIONS_FILE = "evaluations.csv"
GUARD_FILE = "guard.jsonl"
LOCK_FILE = ".lock"
START_FILE = Path(CHECKPOINT_FOLDER) / "start.pt"
STEPS = "steps"
"""The first column of both tables."""

RUN_FILES = (
    r"run\.json|config\.yaml|metrics\.csv|evaluations\.csv|guard\.jsonl|events\.out\.tfevents\..+"
)
CHECKPOINT_FILES = r"step_\d+\.pt|replay_\d+\.npz|best\.pt|good\.pt|start\.pt"
LATEST_FILES = r"latest\.pt"
"""Regular expressions of the names that ``replacing`` writes in a folder."""


def checkpoint_step(path: Path) -> int:
    """Return the steps played when ``step_<n>.pt`` was written; -1 for other names."""
    found = re.fullmatch("step_([0-9]{1,19})", path.stem)
    return int(found[1]) if found else -1

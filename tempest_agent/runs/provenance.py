"""``run.json``: how and with what a run was started, one entry per start or resume."""

from __future__ import annotations

import json
import logging
import os
import platform
import shlex
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any

from tempest_agent.errors import UserError
from tempest_agent.files.atomic_files import replacing, set_aside
from tempest_agent.files.regular_files import read_json
from tempest_agent.runs.file_names import RUN_FILE

TIME_FORMAT = "%Y-%m-%dT%H:%M:%S%z"
"""Of the times in ``run.json``."""

_VERSIONED = ("tempest-agent", "numpy", "numba", "torch", "gymnasium", "stable-baselines3")

log = logging.getLogger("tempest_agent")


def record_start(run: Path, resumed_at: int | None = None) -> None:
    """Append this start of the program to ``run.json``."""
    file = run / RUN_FILE
    starts = _earlier_starts(file)
    starts.append(
        {
            "time": time.strftime(TIME_FORMAT),
            "command": command_line(),
            "resumed_at_step": resumed_at,
            "git_commit": git_commit(),
            "python": platform.python_version(),
            "platform": platform.platform(),
            "cpus": os.cpu_count(),
            "versions": {name: installed_version(name) for name in _VERSIONED},
        }
    )
    with replacing(file) as new:
        new.write((json.dumps({"starts": starts}, indent=2) + "\n").encode())


def _earlier_starts(file: Path) -> list[dict[str, Any]]:
    if not file.is_file():
        return []
    starts = recorded_starts(file)
    if starts is None:
        log.warning("%s is damaged; renamed to %s, starting a new file", file, set_aside(file).name)
        return []
    return starts


def recorded_starts(file: Path) -> list[dict[str, Any]] | None:
    """Return the starts that ``run.json`` lists; None for a damaged or foreign file."""
    try:
        starts = read_json(file).get("starts")
    except UserError:
        return None
    return starts if isinstance(starts, list) else None


def command_line() -> str:
    """Return the command of this process as a shell would be given it."""
    return shlex.join(["tempest-agent", *sys.argv[1:]])


def git_commit() -> str | None:
    """Return the commit of this source, with ``-dirty`` if changed; None outside a checkout."""
    folder = Path(__file__).parent

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=10
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    # An installed copy may be inside another checkout: ask whether git tracks this file.
    if git("ls-files", "--error-unmatch", Path(__file__).name) is None:
        return None
    commit = git("rev-parse", "HEAD")
    return f"{commit}-dirty" if commit and git("status", "--porcelain", "-uno") else commit


def installed_version(distribution: str) -> str | None:
    """Return the version of an installed distribution, None where it is not installed."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None

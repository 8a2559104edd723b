"""``guard.jsonl``: what the stability guard of a run saw and did, one JSON object per line."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

from tempest_agent.config import LARGEST
from tempest_agent.envs.plain_json import parse_json
from tempest_agent.files.atomic_files import replacing, set_aside
from tempest_agent.files.regular_files import read_lines
from tempest_agent.runs.file_names import GUARD_FILE
from tempest_agent.stability.guard import Event

log = logging.getLogger("tempest_agent")


class GuardLog:
    """Appends events.

    Args:
        run: the run's folder.
        resumed_at: step from which the run continues; later lines are dropped, because the run
            writes them again.  A file with damaged lines is renamed to ``NAME.bad``; half a line
            at the end, as a kill leaves it, is dropped.
    """

    def __init__(self, run: Path, resumed_at: int | None = None) -> None:
        self._path = run / GUARD_FILE
        self._lines: list[str] = []
        if resumed_at is None or not self._path.is_file():
            return
        events, damaged = read_events(run)
        unfinished = not self._path.read_bytes().endswith(b"\n")
        if damaged > unfinished:
            aside = set_aside(self._path).name
            log.warning(
                "%s has damaged lines; renamed to %s, keeping the valid ones", self._path, aside
            )
        self._lines = [_line(event) for event in events if event["step"] <= resumed_at]
        if self._lines:
            self._rewrite()
        else:
            self._path.unlink(missing_ok=True)

    def write(self, event: Event) -> None:
        """Append ``event``."""
        self._lines.append(_line(event._asdict()))
        self._rewrite()  # There are few, and a link in its place is replaced.

    def _rewrite(self) -> None:
        with replacing(self._path) as file:
            file.write("".join(self._lines).encode())


def _line(event: dict[str, Any]) -> str:
    return json.dumps(event) + "\n"


def read_events(run: Path) -> tuple[list[dict[str, Any]], int]:
    """Return all readable events of a run, and the number of damaged lines.

    Raises:
        UserError: not a regular file, or far too large.
    """
    path = run / GUARD_FILE
    if not path.exists():
        return [], 0
    lines = [line for line in read_lines(path) if line]
    events = [event for event in map(_event, lines) if event is not None]
    return events, len(lines) - len(events)


def _event(line: str) -> dict[str, Any] | None:
    """Return the event that ``GuardLog`` wrote as ``line``; None for any other text."""
    try:
        found = parse_json(line)
        event = {name: found[name] for name in Event._fields}
    except (ValueError, KeyError, TypeError):
        return None
    step, *texts = event.values()
    whole = isinstance(step, int) and 0 <= step <= LARGEST
    return event if whole and all(isinstance(text, str) for text in texts) else None

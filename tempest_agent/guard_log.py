"""``guard.jsonl``: what the stability guard of a run saw and did, one JSON object a line."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

from tempest_agent.agent.guard import Event
from tempest_agent.run_directory import replacing, set_aside

GUARD_FILE = "guard.jsonl"

log = logging.getLogger("tempest_agent")


class GuardLog:
    """Appends events.

    Args:
        run: the run's folder.
        resumed_at: step at which it goes on if it does; later lines are dropped, as the run will
            write them again.  A file with damaged lines is set aside as ``NAME.bad``; half a
            line at the end, as a kill leaves it, is dropped.
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
                "%s has damaged lines: set aside as %s, whole lines are kept", self._path, aside
            )
        self._lines = [_line(event) for event in events if event["step"] <= resumed_at]
        if self._lines:
            self._rewrite()
        else:
            self._path.unlink(missing_ok=True)

    def write(self, event: Event) -> None:
        """Append ``event``."""
        self._lines.append(_line(event._asdict()))
        self._rewrite()  # They are few, and a link that lies there is replaced.

    def _rewrite(self) -> None:
        with replacing(self._path) as file:
            file.write("".join(self._lines).encode())


def _line(event: dict[str, Any]) -> str:
    return json.dumps(event) + "\n"


def read_events(run: Path) -> tuple[list[dict[str, Any]], int]:
    """All events of a run that can be read, and the number of damaged lines."""
    path = run / GUARD_FILE
    if not path.is_file():
        return [], 0
    events: list[dict[str, Any]] = []
    damaged = 0
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            event = json.loads(line)
            whole = isinstance(event["step"], int) and set(Event._fields) <= set(event)
        except (ValueError, KeyError, TypeError, RecursionError):
            whole = False
        if whole:
            events.append(event)
        else:
            damaged += 1
    return events, damaged

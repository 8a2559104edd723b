"""``guard.jsonl``: what the stability guard of a run saw and did, one JSON object a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tempest_agent.agent.guard import Event
from tempest_agent.run_directory import replacing

GUARD_FILE = "guard.jsonl"


class GuardLog:
    """Appends events.

    Args:
        run: the run's folder.
        resumed_at: step at which it goes on if it does; later lines and damaged ones are dropped,
            as the run will make them again.
    """

    def __init__(self, run: Path, resumed_at: int | None = None) -> None:
        self._path = run / GUARD_FILE
        if resumed_at is not None and self._path.exists():
            events, _ = read_events(run)
            kept = [event for event in events if event["step"] <= resumed_at]
            with replacing(self._path) as file:
                file.write("".join(json.dumps(event) + "\n" for event in kept).encode())

    def write(self, event: Event) -> None:
        """Append ``event``."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(event._asdict()) + "\n")


def read_events(run: Path) -> tuple[list[dict[str, Any]], int]:
    """All events of a run that can be read, and the number of damaged lines."""
    path = run / GUARD_FILE
    if not path.exists():
        return [], 0
    events: list[dict[str, Any]] = []
    damaged = 0
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            event = json.loads(line)
            whole = isinstance(event["step"], int) and set(Event._fields) <= set(event)
        except (ValueError, KeyError, TypeError):
            whole = False
        if whole:
            events.append(event)
        else:
            damaged += 1
    return events, damaged

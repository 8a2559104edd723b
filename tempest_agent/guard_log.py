"""``guard.jsonl``: what the stability guard of a run saw and did, one JSON object a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tempest_agent.agent.guard import Event
from tempest_agent.config import LARGEST
from tempest_agent.envs.plain_json import parse_json
from tempest_agent.regular_files import read_lines
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
    """All events of a run that can be read, and the number of damaged lines.

    Raises:
        UserError: it is no file, or far too large.
    """
    path = run / GUARD_FILE
    if not path.exists():
        return [], 0
    lines = [line for line in read_lines(path) if line]
    events = [event for event in map(_event, lines) if event is not None]
    return events, len(lines) - len(events)


def _event(line: str) -> dict[str, Any] | None:
    """What ``GuardLog`` wrote as ``line``; None where it did not."""
    try:
        found = parse_json(line)
        event = {name: found[name] for name in Event._fields}
    except (ValueError, KeyError, TypeError):
        return None
    step, *texts = event.values()
    whole = isinstance(step, int) and 0 <= step <= LARGEST
    return event if whole and all(isinstance(text, str) for text in texts) else None

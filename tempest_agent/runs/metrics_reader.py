"""Read the rows of a run's metrics tables, leaving out what is damaged."""

from __future__ import annotations

from pathlib import Path

from tempest_agent.config import LARGEST
from tempest_agent.errors import UserError, one_line
from tempest_agent.files.regular_files import read_table
from tempest_agent.runs.file_names import STEPS


def read_metrics(path: Path, notes: list[str]) -> tuple[list[dict[str, float]], int]:
    """Return the valid rows of a table and the number of others; ``notes`` gets problems."""
    if not path.exists():
        notes.append(f"there is no {path.name} yet: the run has logged nothing")
        return [], 0
    try:
        heading, *rows = [*read_table(path)] or [[]]
    except (OSError, UserError) as error:
        notes.append(f"{path.name} cannot be read: {one_line(error)}")
        return [], 0
    if STEPS not in heading:
        notes.append(f"{path.name} has no heading: it cannot be read")
        return [], len(rows) + 1
    lines = [line for line in (_line(heading, row) for row in rows) if line]
    return lines, len(rows) - len(lines)


def _line(heading: list[str], row: list[str]) -> dict[str, float]:
    """Return the metrics of a row by name; nothing if it is cut short or has no numbers."""
    if len(row) != len(heading):
        return {}
    try:
        metrics = {name: float(text) for name, text in zip(heading, row, strict=True) if text}
    except ValueError:
        return {}
    return metrics if 0 <= metrics.get(STEPS, -1) <= LARGEST else {}

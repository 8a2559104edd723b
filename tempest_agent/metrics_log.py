"""A run's metrics as a CSV file and as TensorBoard events, both fit for resuming."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from torch.utils.tensorboard import SummaryWriter

from tempest_agent.run_directory import METRICS_FILE, replacing

STEP_COLUMN = "steps"


class MetricsLog:
    """Writes one row a call to ``metrics.csv`` and to TensorBoard in the folder ``run``.

    A run that is resumed at ``resumed_at`` steps logs again what it had logged after its
    checkpoint: the rows beyond that step are dropped first, so that the file reads like that of
    an uninterrupted run.
    """

    def __init__(self, run: Path, resumed_at: int | None = None) -> None:
        self._file = run / METRICS_FILE
        self._columns: list[str] = []
        self._rows: list[dict[str, str]] = []
        if resumed_at is not None and self._file.exists():
            with self._file.open(newline="", encoding="utf-8") as file:
                reader = csv.DictReader(file)
                self._columns = list(reader.fieldnames or ())
                self._rows = [r for r in reader if int(float(r[STEP_COLUMN])) <= resumed_at]
            self._rewrite()
        # TensorBoard hides the events of an earlier start from the purge step on.
        purge = None if resumed_at is None else resumed_at + 1
        self._writer = SummaryWriter(  # type: ignore[no-untyped-call]
            log_dir=str(run), purge_step=purge
        )

    def write(self, steps: int, figures: Mapping[str, float]) -> None:
        """Log ``figures`` as the state after ``steps`` decisions."""
        row = {STEP_COLUMN: str(steps), **{name: repr(v) for name, v in figures.items()}}
        self._rows.append(row)
        new = [name for name in row if name not in self._columns]
        if new:
            self._columns += new
            self._rewrite()
        else:
            with self._file.open("a", newline="", encoding="utf-8") as file:
                csv.DictWriter(file, self._columns).writerow(row)
        for name, value in figures.items():
            self._writer.add_scalar(name, value, steps)  # type: ignore[no-untyped-call]
        self._writer.flush()  # type: ignore[no-untyped-call]

    def close(self) -> None:
        """Finish the event file."""
        self._writer.close()  # type: ignore[no-untyped-call]

    def _rewrite(self) -> None:
        with replacing(self._file) as raw:
            lines: list[str] = []
            sheet = csv.DictWriter(_Lines(lines), self._columns, restval="")
            sheet.writeheader()
            sheet.writerows(self._rows)
            raw.write("".join(lines).encode())


class _Lines:
    """What ``csv`` needs of a file, kept as a list."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines

    def write(self, text: str) -> None:
        self._lines.append(text)

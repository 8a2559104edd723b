"""Log a run's metrics as CSV files and TensorBoard events, all resumable."""

from __future__ import annotations

import csv
import logging
import secrets
from collections.abc import Mapping
from io import SEEK_END, StringIO
from pathlib import Path

from torch.utils.tensorboard import SummaryWriter

from tempest_agent.errors import UserError
from tempest_agent.files.atomic_files import replacing, set_aside
from tempest_agent.files.own_files import LinkedFileError, open_own
from tempest_agent.files.regular_files import LARGEST_LOG, read_regular
from tempest_agent.runs.file_names import EVALUATIONS_FILE, METRICS_FILE, STEPS

TABLES = {"train": METRICS_FILE, "eval": EVALUATIONS_FILE}
EVENT_FILES = "events.out.tfevents.*"

log = logging.getLogger("tempest_agent")


class CsvLog:
    """A CSV file with one row per ``write`` and ``steps`` as its first column.

    A run resumed at ``resumed_at`` steps logs again what it had logged after its checkpoint, so
    rows beyond that step are dropped first.  An unreadable file is renamed to ``NAME.bad``; half a
    line at the end, as a kill leaves it, is dropped.
    """

    def __init__(self, path: Path, resumed_at: int | None = None) -> None:
        self._path = path
        self._columns: list[str] = []
        self._rows: list[dict[str, str]] = []
        if resumed_at is not None and path.exists():
            try:
                self._columns, rows = _read(path)
            except (UserError, ValueError, csv.Error):
                aside = set_aside(path).name
                log.warning("%s is damaged; renamed to %s, starting a new file", path, aside)
                return
            self._rows = [row for row in rows if int(row[STEPS]) <= resumed_at]
            if self._rows:
                self._rewrite()
            else:  # Columns are added in the order of the rows, as in a new run.
                self._columns = []
                path.unlink()

    def has(self, steps: int) -> bool:
        """Return whether there is a row for ``steps``."""
        return any(row[STEPS] == str(steps) for row in self._rows)

    def write(self, steps: int, metrics: Mapping[str, float]) -> None:
        """Append ``metrics`` as the row for ``steps``."""
        row = {STEPS: str(steps)}
        row |= {name: f"{value:.9g}" for name, value in metrics.items() if name != STEPS}
        self._rows.append(row)
        new = [name for name in row if name not in self._columns]
        if new:
            self._columns += new
            self._rewrite()
            return
        try:
            # Without O_CREAT: a new file would have no heading.
            with open(self._path, "r+", newline="", encoding="utf-8", opener=open_own) as file:
                file.seek(0, SEEK_END)
                csv.DictWriter(file, self._columns, restval="").writerow(row)
        except (FileNotFoundError, LinkedFileError):
            self._rewrite()

    def copy_to(self, folder: Path) -> None:
        """Write the whole log to a file of the same name in ``folder``."""
        text = StringIO(newline="")
        sheet = csv.DictWriter(text, self._columns, restval="")
        sheet.writeheader()
        sheet.writerows(self._rows)
        with replacing(folder / self._path.name) as file:
            file.write(text.getvalue().encode())

    def _rewrite(self) -> None:
        self.copy_to(self._path.parent)


def _read(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    """Return columns and rows of a log.

    Raises:
        UserError, ValueError, csv.Error: not written by ``CsvLog``.
    """
    text = read_regular(path, LARGEST_LOG).decode("utf-8")
    whole = text[: text.rfind("\n") + 1]
    lines = list(csv.reader(StringIO(whole, newline=""), strict=True))
    if not lines or lines[0][:1] != [STEPS] or len(set(lines[0])) < len(lines[0]):
        raise ValueError("no heading")
    rows = [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]
    for row in rows:
        int(row[STEPS])
        for value in row.values():
            float(value or 0)
    return lines[0], rows


class MetricsLog:
    """``metrics.csv`` (training) and ``evaluations.csv`` (greedy games) of a run, and TensorBoard.

    Arguments: the run's folder, and the step at which it is resumed, if it is.
    """

    def __init__(self, run: Path, resumed_at: int | None = None) -> None:
        self._tables = {table: CsvLog(run / name, resumed_at) for table, name in TABLES.items()}
        # TensorBoard hides what earlier starts logged from the purge step on.
        purge = None if resumed_at is None else resumed_at + 1
        # An unpredictable name: nobody can put a link there first.
        suffix = f".{secrets.token_hex(4)}"
        self._events = SummaryWriter(str(run), purge_step=purge, filename_suffix=suffix)

    def write(self, table: str, steps: int, metrics: Mapping[str, float]) -> None:
        """Log ``metrics`` in ``train`` or ``eval`` as the row for ``steps``."""
        self._tables[table].write(steps, metrics)
        for name, value in metrics.items():
            if name != STEPS:
                self._events.add_scalar(f"{table}/{name}", value, steps)
        self._events.flush()

    def has(self, table: str, steps: int) -> bool:
        """Return whether ``table`` has a row for ``steps``."""
        return self._tables[table].has(steps)

    def copy_to(self, folder: Path) -> None:
        """Write both tables to ``folder``."""
        for table in self._tables.values():
            table.copy_to(folder)

    def close(self) -> None:
        """Finish the event file."""
        self._events.close()


def cut_events(path: Path, step: int) -> None:
    """Remove the events after ``step`` from a TensorBoard file."""
    # Imported here because it is slow and rarely needed.
    from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader
    from tensorboard.summary.writer.record_writer import RecordWriter

    with replacing(path) as file:
        records = RecordWriter(file)
        for event in LegacyEventFileLoader(str(path)).Load():
            if event.step <= step:
                records.write(event.SerializeToString())

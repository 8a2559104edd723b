"""Curves of runs from their ``metrics.csv``, drawn without a display.

``figure_of`` draws any panels; ``training_panels`` are those of ``tempest-agent plot``.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.outcome import DEATH_CAUSES
from tempest_agent.errors import UserError
from tempest_agent.run_directory import replacing, require_writable
from tempest_agent.system_errors import system_reason

METRICS_FILE = "metrics.csv"
FORMATS = (".png", ".svg", ".pdf")

Curves = Mapping[str, NDArray[np.float64]]
"""Columns of a run's log, one value a line, NaN where a line has none; ``steps`` among them."""


class Panel(NamedTuple):
    """One diagram: a title, and the columns drawn in it with a style and a word each."""

    title: str
    lines: tuple[tuple[str, str, str], ...]
    """``(column, matplotlib line style, word for the legend)``; ``.-`` is a line with points."""
    log_scale: bool = False


def training_panels() -> list[Panel]:
    """Learning curve, teacher's share, values with their bound, loss, gradient, deaths."""
    styles = ("-", "--", ":", "-.", ".-")
    deaths = zip(DEATH_CAUSES, styles, strict=True)
    return [
        Panel(
            "teacher-free score",
            (
                ("teacher_free_score", "-", "last 50 games"),
                ("teacher_free_score_5m", "--", "last 5 million frames"),
            ),
        ),
        Panel(
            "teacher's share",
            (("expert_ratio", "-", "share"), ("expert_ratio_by_frames", ":", "by frames")),
        ),
        Panel(
            "Q-values and their bound",
            (
                ("q_max", "-", "highest"),
                ("q_mean", "--", "mean"),
                ("q_min", "-.", "lowest"),
                ("return_bound", ":", "bound"),
            ),
        ),
        Panel("loss", (("loss", "-", "value"), ("imitation_loss", "--", "imitation")), True),
        Panel(
            "gradient norm before clipping",
            (("grad_norm", "-", "mean"), ("grad_norm_max", ":", "highest")),
            True,
        ),
        Panel(
            "lives lost per 1,000 decisions",
            tuple((f"deaths_{cause}", style, cause) for cause, style in deaths),
        ),
    ]


def read_curves(run: Path) -> dict[str, NDArray[np.float64]]:
    """The columns of the log of ``run``, a folder or the CSV file itself.

    Raises:
        UserError: no such run, nothing logged yet, or no log that can be read.
    """
    file = run / METRICS_FILE if run.is_dir() else run
    if not file.is_file():
        raise UserError(f"{run} is not a run: there is no {file}; give a run's folder")
    try:
        with file.open(newline="", encoding="utf-8") as text:
            rows = [row for row in csv.DictReader(text) if None not in row.values()]
        columns = {
            name: np.array([float(row[name] or "nan") for row in rows])
            for name in (rows[0] if rows else {})
        }
    except (ValueError, KeyError, TypeError, csv.Error) as error:
        raise UserError(
            f"{file} cannot be read ({error}); is it a run's {METRICS_FILE}?"
        ) from error
    if "steps" not in columns:
        raise UserError(f"{file} holds no line of metrics yet; wait for the first one")
    return columns


def require_matplotlib() -> None:
    """``UserError`` where matplotlib is missing."""
    if find_spec("matplotlib") is None:
        raise UserError("plots need matplotlib: pip install 'tempest-agent[plots]'")


def figure_of(runs: Mapping[str, Curves], panels: Sequence[Panel]) -> Any:
    """A ``matplotlib.figure.Figure`` with one diagram a panel, over millions of decisions.

    Each run has a colour, each column of a panel a style; columns a run lacks are left out.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    rows = -(-len(panels) // 2)
    figure = Figure(figsize=(12, 3.2 * rows), layout="constrained")
    axes = figure.subplots(rows, 2, squeeze=False)
    for panel, axis in zip(panels, axes.flat, strict=False):
        for number, (name, curves) in enumerate(runs.items()):
            for column, style, word in panel.lines:
                if column not in curves or np.isnan(curves[column]).all():
                    continue
                known = ~np.isnan(curves[column])
                label = word if len(runs) == 1 else f"{name}: {word}"
                axis.plot(
                    curves["steps"][known] / 1e6,
                    curves[column][known],
                    style,
                    color=f"C{number % 10}",
                    label=label,
                )
        axis.set_title(panel.title)
        axis.set_xlabel("million decisions")
        axis.set_yscale("log" if panel.log_scale else "linear")
        axis.grid(alpha=0.3)
        if axis.lines:
            axis.legend(fontsize="x-small")
    for axis in list(axes.flat)[len(panels) :]:
        axis.remove()
    return figure


def require_picture(path: Path, option: str) -> None:
    """``UserError`` where no figure can be saved at ``path``, the value of ``option``.

    For commands that work for long before they draw; makes the folder of ``path`` if need be.
    """
    check_format(path, option)
    require_matplotlib()
    if path.is_dir():
        raise UserError(f"{option} {path} is a folder: give the name of a file")
    require_writable(path.parent)


def save_figure(figure: Any, path: Path, option: str = "--out") -> None:
    """Write ``figure`` to ``path`` (.png, .svg or .pdf); the file there before stays until then.

    ``option`` is the one that ``path`` came from, for the error's words.

    Raises:
        UserError: another kind of file, or a folder that cannot be written.
    """
    check_format(path, option)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            figure.savefig(file, format=path.suffix[1:].lower(), dpi=100)
    except OSError as error:
        raise UserError(
            f"cannot write {path}: {system_reason(error)}; choose another {option}"
        ) from error


def check_format(path: Path, option: str = "--out") -> None:
    """``UserError`` for a file name whose ending is no picture's."""
    if path.suffix.lower() not in FORMATS:
        raise UserError(f"{option} {path}: the name must end in one of {', '.join(FORMATS)}")

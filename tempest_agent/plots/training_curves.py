"""Training curves of runs from their ``metrics.csv`` and ``evaluations.csv``.

``figure_of`` draws any panels; ``training_panels`` are the panels of ``tempest-agent plot``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.game_state.death_cause import DEATH_CAUSES
from tempest_agent.errors import UserError, one_line
from tempest_agent.files.regular_files import read_table
from tempest_agent.plots.figure_files import require_matplotlib
from tempest_agent.runs.file_names import EVALUATIONS_FILE, METRICS_FILE

GREEDY = "greedy_"
"""Prefix of the columns from ``evaluations.csv``."""
BOUND_MARGIN = 2.0
"""A bound is drawn if it is within this many times the range of the curves it bounds."""

Curves = Mapping[str, NDArray[np.float64]]
"""Columns of a run's logs including ``steps``, one value per row, NaN for missing ones."""


class Line(NamedTuple):
    """One column of a panel: its matplotlib style and its text in the legend."""

    column: str
    style: str
    word: str


class Panel(NamedTuple):
    """One diagram: a title, the unit of the vertical axis, and the columns drawn."""

    title: str
    unit: str
    lines: tuple[Line, ...]
    bound: Line | None = None
    """Drawn unless it would flatten the others; then it is in the legend."""
    log_scale: bool = False


def training_panels() -> list[Panel]:
    """Return panels for scores, the teacher's share, values, loss, gradient and deaths."""
    styles = ("-", "--", ":", "-.", ".-")
    deaths = zip(DEATH_CAUSES, styles, strict=True)
    return [
        Panel(
            "greedy games at the checkpoints",
            "points",
            (
                Line(f"{GREEDY}score_iqm", "o-", "interquartile mean"),
                Line(f"{GREEDY}score_mean", "x--", "mean"),
            ),
        ),
        Panel(
            "ended training games without the teacher",
            "points",
            (
                Line("teacher_free_score", "-", "last 50 games"),
                Line("teacher_free_score_5m", "--", "last 5 million frames"),
            ),
        ),
        Panel(
            "teacher's share",
            "share of the decisions",
            (
                Line("expert_ratio", "-", "share"),
                Line("expert_ratio_by_frames", ":", "by frames"),
            ),
        ),
        Panel(
            "Q-values",
            "return",
            (
                Line("q_max", "-", "highest"),
                Line("q_mean", "--", "mean"),
                Line("q_min", "-.", "lowest"),
            ),
            bound=Line("return_bound", ":", "bound"),
        ),
        Panel(
            "loss",
            "loss of an update",
            (Line("loss", "-", "value"), Line("imitation_loss", "--", "imitation")),
            log_scale=True,
        ),
        Panel(
            "gradient norm before clipping",
            "L2 norm",
            (Line("grad_norm", "-", "mean"), Line("grad_norm_max", ":", "highest")),
            log_scale=True,
        ),
        Panel(
            "lives lost",
            "per 1,000 decisions",
            tuple(Line(f"deaths_{cause}", style, cause) for cause, style in deaths),
        ),
    ]


def read_curves(run: Path) -> dict[str, NDArray[np.float64]]:
    """Return the columns of the logs of ``run``, a folder or the ``metrics.csv`` itself.

    The rows of ``evaluations.csv``, if there is one, follow the rows of the training log; their
    columns have the prefix ``GREEDY``.

    Raises:
        UserError: no such run, nothing logged yet, or a log that cannot be read.
    """
    file = run / METRICS_FILE if run.is_dir() else run
    if not file.exists():
        raise UserError(f"{run} is not a run: there is no {file}; give a run's folder")
    curves = _read_log(file)
    if "steps" not in curves:
        raise UserError(f"{file} has no row yet; wait for the first one")
    evaluations = file.with_name(EVALUATIONS_FILE)
    greedy = _read_log(evaluations) if evaluations.exists() else {}
    if "steps" not in greedy:
        return curves
    logged, evaluated = curves["steps"].size, greedy["steps"].size
    nothing, nothing_greedy = np.full(evaluated, np.nan), np.full(logged, np.nan)
    steps = np.concatenate([curves.pop("steps"), greedy.pop("steps")])
    return {
        "steps": steps,
        **{name: np.concatenate([column, nothing]) for name, column in curves.items()},
        **{
            GREEDY + name: np.concatenate([nothing_greedy, column])
            for name, column in greedy.items()
        },
    }


def _read_log(file: Path) -> dict[str, NDArray[np.float64]]:
    try:
        heading, *rows = [*read_table(file)] or [[]]
        rows = [row for row in rows if len(row) == len(heading)]
        return {
            name: np.array([float(row[at] or "nan") for row in rows])
            for at, name in enumerate(heading if rows else [])
        }
    except ValueError as error:
        raise UserError(
            f"{file} cannot be read ({one_line(error)}); is it a run's {file.name}?"
        ) from error


def figure_of(runs: Mapping[str, Curves], panels: Sequence[Panel]) -> Any:
    """Return a ``matplotlib.figure.Figure`` with one diagram per panel, over decisions.

    Each run has a colour, each column of a panel a style.  Missing columns are left out, and so are
    panels for which no run has data.

    Raises:
        UserError: a run has nothing to draw, or matplotlib is missing.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    shown_in = {
        panel: [
            name
            for name, curves in runs.items()
            if any(_drawable(panel, line, curves) is not None for line in panel.lines)
        ]
        for panel in panels
    }
    for name in runs:
        if not any(name in names for names in shown_in.values()):
            raise UserError(
                f"there is nothing to plot of {name}: its log has no number in any column that is "
                "drawn; wait for more lines, or leave it out"
            )
    panels = [panel for panel, names in shown_in.items() if names]
    rows = max(1, -(-len(panels) // 2))
    figure = Figure(figsize=(12, 3.2 * rows), layout="constrained")
    axes = list(figure.subplots(rows, 2, squeeze=False).flat)
    last = max(float(np.nanmax(curves["steps"])) for curves in runs.values())
    for panel, axis in zip(panels, axes, strict=False):
        _draw_panel(axis, panel, runs)
        # The same range in all panels, so that they can be compared.
        axis.set_xlim(0.0, 1.02 * last)
    for axis in axes[len(panels) :]:
        axis.remove()
    return figure


def _draw_panel(axis: Any, panel: Panel, runs: Mapping[str, Curves]) -> None:
    for number, (name, curves) in enumerate(runs.items()):
        prefix = f"{name}: " if len(runs) > 1 else ""
        for line in panel.lines:
            _draw_line(axis, panel, line, curves, f"C{number % 10}", prefix + line.word)
    if panel.bound is not None:
        low, high = axis.dataLim.intervaly
        margin = BOUND_MARGIN * (high - low)
        for number, (name, curves) in enumerate(runs.items()):
            rows = _drawable(panel, panel.bound, curves)
            if rows is None:
                continue
            values = curves[panel.bound.column][rows]
            color = f"C{number % 10}"
            label = (f"{name}: " if len(runs) > 1 else "") + panel.bound.word
            if values.min() >= low - margin and values.max() <= high + margin:
                _draw_line(axis, panel, panel.bound, curves, color, label)
            else:
                label += f" {values[-1]:,.4g}, off the scale"
                axis.plot([], [], panel.bound.style, color=color, label=label)
    axis.set_title(panel.title)
    axis.set_xlabel("decisions")
    axis.set_ylabel(panel.unit)
    axis.set_yscale("log" if panel.log_scale else "linear")
    axis.xaxis.set_major_formatter(_short_number)
    if not panel.log_scale:
        axis.yaxis.set_major_formatter("{x:,g}")
    axis.grid(alpha=0.3)
    axis.legend(fontsize="x-small")


def _draw_line(axis: Any, panel: Panel, line: Line, curves: Curves, color: str, label: str) -> None:
    rows = _drawable(panel, line, curves)
    if rows is None:
        return
    # A single row is a point, which a line without markers would not show.
    style = line.style if rows.sum() > 1 else "."
    x, y = curves["steps"][rows], curves[line.column][rows]
    axis.plot(x, y, style, color=color, label=label)


def _drawable(panel: Panel, line: Line, curves: Curves) -> NDArray[np.bool_] | None:
    """Return the rows of the column that can be drawn; None if there are none."""
    column = curves.get(line.column)
    if column is None:
        return None
    rows = (
        np.isfinite(column) & np.isfinite(curves["steps"]) & ((column > 0) | (not panel.log_scale))
    )
    return rows if rows.any() else None


def _short_number(value: float, _position: int) -> str:
    """Return a number of decisions as the label of an axis: 1.5M, 200k, 50.

    >>> [_short_number(value, 0) for value in (0.0, 50.0, 200_000.0, 1_500_000.0)]
    ['0', '50', '200k', '1.5M']
    """
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"

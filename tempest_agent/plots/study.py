"""The figure of the stability study: four curves of several runs, one above the other."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tempest_agent.runs.file_names import METRICS_FILE, STEPS
from tempest_agent.runs.metrics_reader import read_metrics

PANELS = (
    ("q_mean", "Q: mean, lowest to highest", "symlog"),
    ("loss", "loss", "log"),
    ("teacher_free_score", "teacher-free score", "linear"),
    ("expert_ratio", "expert share", "linear"),
)


def study_figure(study: Path, runs: Iterable[str]) -> Any:
    """Return a ``matplotlib.figure.Figure`` of the named runs below the folder ``study``."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 10.0), layout="constrained")
    axes = figure.subplots(len(PANELS), 1, sharex=True)
    for name in runs:
        rows, _ = read_metrics(study / name / METRICS_FILE, [])
        steps = [row[STEPS] for row in rows]
        for axis, (key, _, _) in zip(axes, PANELS, strict=True):
            (curve,) = axis.plot(steps, [row.get(key, math.nan) for row in rows], label=name)
            if key == "q_mean":
                low, high = ([row.get(k, math.nan) for row in rows] for k in ("q_min", "q_max"))
                axis.fill_between(steps, low, high, color=curve.get_color(), alpha=0.12, lw=0)
    for axis, (_, title, scale) in zip(axes, PANELS, strict=True):
        axis.set_ylabel(title)
        axis.set_yscale(scale)
        axis.grid(alpha=0.3)
    axes[0].legend(ncols=3, fontsize="small")
    axes[-1].set_xlabel("decisions")
    return figure

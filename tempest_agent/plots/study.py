"""The figure of the study of stability: four curves of several runs, one above the other."""

from __future__ import annotations

import math
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from tempest_agent.files.atomic_files import replacing
from tempest_agent.runs.metrics_reader import read_metrics

PANELS = (
    ("q_mean", "Q: mean, lowest to highest", "symlog"),
    ("loss", "loss", "log"),
    ("teacher_free_score", "teacher-free score", "linear"),
    ("expert_ratio", "expert share", "linear"),
)
INSTALL = "pip install 'tempest-agent[plots]'"


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def draw(study: Path, runs: Iterable[str], path: Path) -> Path:
    """Draw the runs of that name below the folder ``study`` to ``path`` (PNG, PDF, SVG)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 10.0), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(PANELS), 1, sharex=True)
    for name in runs:
        lines, _ = read_metrics(study / name / "metrics.csv", [])
        for axis, (key, _, _) in zip(axes, PANELS, strict=True):
            steps = [line["steps"] for line in lines]
            (curve,) = axis.plot(steps, [line.get(key, math.nan) for line in lines], label=name)
            if key == "q_mean":
                low, high = ([line.get(k, math.nan) for line in lines] for k in ("q_min", "q_max"))
                axis.fill_between(steps, low, high, color=curve.get_color(), alpha=0.12, lw=0)
    for axis, (_, title, scale) in zip(axes, PANELS, strict=True):
        axis.set_ylabel(title)
        axis.set_yscale(scale)
        axis.grid(alpha=0.3)
    axes[0].legend(ncols=3, fontsize="small")
    axes[-1].set_xlabel("decisions")
    with replacing(path) as file:
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=110)
    return path

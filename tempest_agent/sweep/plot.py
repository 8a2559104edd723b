"""The table of a sweep as one picture: interquartile means with their intervals."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tempest_agent.run_directory import replacing


def can_plot() -> bool:
    """Whether matplotlib is here (``pip install 'tempest-agent[plots]'``)."""
    return find_spec("matplotlib") is not None


def plot(figures: Mapping[str, Any], title: str, path: Path) -> None:
    """Write the picture of ``report.table``'s figures to ``path``, a PNG file.

    One line a variant: a dot and its 95 % interval, and small dots for the seeds; the base's
    interval is shaded over all lines.
    """
    from matplotlib.figure import Figure

    rows = figures["variants"]
    figure = Figure(figsize=(8.0, 1.4 + 0.27 * len(rows)), layout="constrained")
    axes = figure.subplots()
    base = rows[0] if rows and not rows[0]["changes"] else None
    if base is not None:
        axes.axvspan(*base["score_iqm_ci95"], color="tab:blue", alpha=0.12, linewidth=0)
    for number, row in enumerate(rows):
        low, high = row["score_iqm_ci95"]
        color = "tab:blue" if row is base else "black"
        axes.plot([low, high], [number, number], color=color, linewidth=1.5)
        axes.plot(row["score_iqm"], number, "o", color=color, markersize=6)
        seeds = row["score_iqm_by_seed"]
        axes.plot(seeds, [number] * len(seeds), ".", color="tab:orange", markersize=4)
    axes.set_yticks(range(len(rows)), [row["name"] for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.grid(axis="x", alpha=0.3)
    axes.set_xlabel("points, interquartile mean and 95 % interval (orange: each seed)")
    axes.set_title(title, fontsize=9)
    with replacing(path) as file:
        figure.savefig(file, format="png", dpi=120)

"""The figure of a sweep's table: scores and probabilities of improvement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def sweep_figure(figures: Mapping[str, Any], title: str) -> Figure:
    """Return the figure of what ``report.table`` computes, one line per variant.

    Left: interquartile mean with its 95 % interval, a small dot per seed, and the base's interval
    shaded over all lines.  Right: probability of improvement over the base with its interval; the
    line at 0.5 is no difference.
    """
    from matplotlib.figure import Figure

    rows = figures["variants"]
    figure = Figure(figsize=(10.0, 1.4 + 0.27 * len(rows)), layout="constrained")
    scores, better = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    base = rows[0] if rows and not rows[0]["changes"] else None
    if base is not None:
        scores.axvspan(*base["score_iqm_ci95"], color="tab:blue", alpha=0.12, linewidth=0)
    better.axvline(0.5, color="tab:blue", linewidth=1.0)
    for number, row in enumerate(rows):
        color = "tab:blue" if row is base else "black"
        _interval(scores, number, row["score_iqm"], row["score_iqm_ci95"], color)
        seeds = row["score_iqm_by_seed"]
        scores.plot(seeds, [number] * len(seeds), ".", color="tab:orange", markersize=4)
        if row["improvement"] is not None:
            _interval(better, number, row["improvement"], row["improvement_ci95"], color)
    scores.set_yticks(range(len(rows)), [row["name"] for row in rows])
    scores.set_ylim(len(rows) - 0.4, -0.6)
    scores.xaxis.set_major_formatter("{x:,.0f}")
    scores.set_xlabel(
        "points, interquartile mean and 95 % interval (orange: each seed)", fontsize=8
    )
    better.set_xlim(-0.03, 1.03)
    better.set_xlabel("probability of improvement, 95 % interval", fontsize=8)
    for axes in (scores, better):
        axes.grid(axis="x", alpha=0.3)
    figure.suptitle(title, fontsize=9)
    return figure


def _interval(
    axes: Axes, number: int, middle: float, ends: tuple[float, float], color: str
) -> None:
    axes.plot(ends, [number, number], color=color, linewidth=1.5)
    axes.plot(middle, number, "o", color=color, markersize=6)

"""The figure of several evaluations: interquartile means with their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.plots.figure_files import require_matplotlib

Results = Sequence[Mapping[str, Any]]
"""Evaluations with ``policy``, ``level``, ``score_iqm`` and ``score_iqm_ci95``."""


def comparison_figure(results: Results) -> Any:
    """Return a ``matplotlib.figure.Figure`` of ``results``: a dot and its 95 % interval each.

    With one start level there is a line per player, the first one's interval shaded over all lines;
    with several a curve per player over the start levels.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    policies = list(dict.fromkeys(result["policy"] for result in results))
    levels = list(dict.fromkeys(result["level"] for result in results))
    one_level = len(levels) == 1
    height = 1.4 + 0.35 * len(policies) if one_level else 4.5
    figure = Figure(figsize=(8.0, height), layout="constrained")
    axes = figure.subplots()
    if one_level:
        _draw_players(axes, results)
    else:
        _draw_levels(axes, results, policies)
    axes.grid(alpha=0.3)
    games = results[0]["episodes"]
    where = f"from level {levels[0]}" if one_level else "from each level"
    axes.set_title(f"{games} games {where}, seed {results[0]['seed']}", fontsize=9)
    return figure


def _draw_players(axes: Any, results: Results) -> None:
    axes.axvspan(*results[0]["score_iqm_ci95"], color="C0", alpha=0.12, linewidth=0)
    for row, result in enumerate(results):
        means, reach = _means([result])
        axes.errorbar(means, [row], xerr=reach, fmt="o", capsize=3, color=f"C{row % 10}")
    axes.set_yticks(range(len(results)), [result["policy"] for result in results])
    axes.set_ylim(len(results) - 0.5, -0.5)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel("points, interquartile mean and 95 % interval")


def _draw_levels(axes: Any, results: Results, policies: Sequence[str]) -> None:
    for number, policy in enumerate(policies):
        # By level, whatever the order of the command line.
        rows = sorted(
            (result for result in results if result["policy"] == policy),
            key=lambda result: int(result["level"]),
        )
        means, reach = _means(rows)
        places = [row["level"] for row in rows]
        color = f"C{number % 10}"
        axes.errorbar(places, means, yerr=reach, fmt="o-", capsize=3, color=color, label=policy)
    axes.set_xticks(sorted({result["level"] for result in results}))
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel("start level")
    axes.set_ylabel("points, interquartile mean and 95 % interval")
    axes.legend(fontsize="small")


def _means(results: Results) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the means ``(n,)`` and the lengths of their intervals below and above, ``(2, n)``."""
    means = np.array([result["score_iqm"] for result in results], np.float64)
    low, high = np.array([result["score_iqm_ci95"] for result in results], np.float64).T
    # With few games a percentile interval may exclude the mean; bars need lengths >= 0.
    return means, np.maximum(np.stack([means - low, high - means]), 0.0)

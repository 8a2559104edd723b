"""The figure of the protocol: points, deaths by levels, and endurance, a colour a player."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tempest_agent.evaluation.games import LIMIT_POINTS
from tempest_agent.evaluation.protocol import points_of
from tempest_agent.plots.figure_files import require_matplotlib

Protocols = Sequence[Mapping[str, Any]]
"""JSON objects of ``eval --standard``, one a player."""


def protocol_figure(protocols: Protocols) -> Any:
    """Return a ``matplotlib.figure.Figure`` with a panel for each kind of part that was played."""
    require_matplotlib()
    from matplotlib.figure import Figure

    parts = [part for protocol in protocols for part in protocol["parts"]]
    from_level_1 = [p["part"] for p in parts if "to_level" not in p and p["part"] != "endurance"]
    panels = [
        (_draw_points, bool(from_level_1)),
        (_draw_deaths, any("to_level" in part for part in parts)),
        (_draw_endurance, any(part["part"] == "endurance" for part in parts)),
    ]
    drawn = [draw for draw, present in panels if present]
    figure = Figure(figsize=(1.0 + 4.2 * len(drawn), 4.0), layout="constrained")
    for axes, draw in zip(figure.subplots(1, len(drawn), squeeze=False)[0], drawn, strict=True):
        draw(axes, protocols)
        axes.grid(alpha=0.3)
    figure.axes[0].legend(fontsize="small")
    return figure


def _draw_points(axes: Any, protocols: Protocols) -> None:
    """Draw the points from level 1, by input delay, with their intervals."""
    for number, protocol in enumerate(protocols):
        rows = [
            (part["input_delay"], *points_of(part)[1:])
            for part in protocol["parts"]
            if "to_level" not in part and part["part"] != "endurance"
        ]
        delays = [delay for delay, _, _ in rows]
        points = np.array([value for _, value, _ in rows], np.float64)
        ends = np.array([interval for _, _, interval in rows], np.float64).reshape(-1, 2)
        # With few games a percentile interval may exclude the mean; bars need lengths >= 0.
        reach = np.maximum(np.stack([points - ends[:, 0], ends[:, 1] - points]), 0.0)
        axes.errorbar(
            delays,
            points,
            yerr=reach,
            fmt="o-",
            capsize=3,
            color=f"C{number % 10}",
            label=protocol["policy"],
        )
    if any(protocol["limit_share"] is not None for protocol in protocols):
        axes.axhline(LIMIT_POINTS, color="grey", linestyle="--", label="estimated limit")
    axes.set_ylim(bottom=0)
    axes.set_xticks([0, 1, 2])
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel("input delay in ticks")
    axes.set_title("points from level 1, IQM and 95 % interval", fontsize=9)


def _draw_deaths(axes: Any, protocols: Protocols) -> None:
    """Draw the deaths of games that started late, by the levels they started from."""
    width = 0.8 / len(protocols)
    names = list(
        dict.fromkeys(
            f"{part['level']}-{part['to_level']}"
            for protocol in protocols
            for part in protocol["parts"]
            if "to_level" in part
        )
    )
    for number, protocol in enumerate(protocols):
        rates = {
            f"{part['level']}-{part['to_level']}": part["deaths_per_1000_ticks"]
            for part in protocol["parts"]
            if "to_level" in part
        }
        places = [names.index(name) + width * number for name in rates]
        color = f"C{number % 10}"
        axes.bar(places, list(rates.values()), width, color=color, label=protocol["policy"])
    middle = width * (len(protocols) - 1) / 2
    axes.set_xticks([place + middle for place in range(len(names))], names)
    axes.set_xlabel("start levels")
    axes.set_title("deaths per 1,000 ticks", fontsize=9)


def _draw_endurance(axes: Any, protocols: Protocols) -> None:
    """Draw which share of the games without bonus lives scored so many points at least."""
    for number, protocol in enumerate(protocols):
        for part in protocol["parts"]:
            if part["part"] == "endurance":
                scores = np.sort(part["scores"])
                share = 1.0 - np.arange(len(scores) + 1) / len(scores)
                axes.step(
                    [0, *scores.tolist()],
                    share,
                    where="post",
                    color=f"C{number % 10}",
                    label=protocol["policy"],
                )
    axes.set_xlim(left=0)
    axes.set_ylim(0, 1.02)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.tick_params(axis="x", labelrotation=30)
    axes.set_xlabel("points without bonus lives")
    axes.set_title("share of games that scored more", fontsize=9)

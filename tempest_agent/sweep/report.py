"""The table of a sweep: every variant compared with the base, as Markdown and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tempest_agent.evaluation.report import markdown_table
from tempest_agent.evaluation.statistics import (
    improvement_interval,
    interquartile_mean,
    probability_of_improvement,
    runs_interval,
)
from tempest_agent.sweep.plan import Plan, Variant

Results = Mapping[str, Sequence[Mapping[str, Any]]]
"""Variant name -> results of its complete runs (``SweepRun.result``)."""


def table(plan: Plan, results: Results) -> dict[str, Any]:
    """Return the statistics of every variant as plain Python types, ready for JSON.

    Variants without a complete run are left out; without the base ``improvement`` is None.
    """
    base = [run["scores"] for run in results.get(plan.base.name, ())]
    run = plan.base.config.run
    return {
        "base": run.name,
        "steps": run.steps,
        "seeds": list(plan.seeds),
        "episodes": plan.episodes,
        "max_ticks": plan.max_ticks,
        "variants": [
            _row(variant, results[variant.name], base if variant is not plan.base else [])
            for variant in plan.variants
            if results.get(variant.name)
        ],
    }


def _row(
    variant: Variant, runs: Sequence[Mapping[str, Any]], base: Sequence[Sequence[int]]
) -> dict[str, Any]:
    scores = [run["scores"] for run in runs]
    pooled = _pooled(scores)
    seconds = [run["seconds"] for run in runs if run["seconds"] is not None]
    better = probability_of_improvement(pooled, _pooled(base)) if base else None
    return {
        "name": variant.name,
        "changes": dict(variant.changes),
        "described": variant.described(),
        "steps": variant.config.run.steps,
        "seeds": [run["seed"] for run in runs],
        "scores": scores,
        "score_iqm": interquartile_mean(pooled),
        "score_iqm_ci95": list(runs_interval(scores)),
        "score_iqm_by_seed": [interquartile_mean(each) for each in scores],
        "improvement": better,
        "improvement_ci95": list(improvement_interval(scores, base)) if base else None,
        "deaths_per_1000_ticks": _mean([run["deaths_per_1000_ticks"] for run in runs]),
        "updates": round(_mean([run["updates"] for run in runs])),
        "seconds": round(_mean(seconds), 1) if seconds else None,
    }


def markdown(figures: Mapping[str, Any]) -> str:
    """Return the table of ``table`` as aligned Markdown."""
    header = ("variant", "change", "seeds", "score, IQM", "95 % interval", "P(better)",
              "95 % interval", "updates", "seconds")  # fmt: skip
    return markdown_table(header, [_cells(row) for row in figures["variants"]])


def title(figures: Mapping[str, Any]) -> str:
    """Return what all rows of the table have in common, as one line."""
    return (
        f"{figures['base']}: {figures['steps']:,} decisions, {len(figures['seeds'])} seeds, "
        f"{figures['episodes']} greedy games each from level 1, cut after "
        f"{figures['max_ticks']:,} ticks"
    )


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    low, high = row["score_iqm_ci95"]
    better, interval = "", ""
    if row["improvement"] is not None:
        better = f"{row['improvement']:.2f}"
        interval = "{:.2f} - {:.2f}".format(*row["improvement_ci95"])
    return (
        row["name"],
        f"`{row['described']}`" if row["described"] else "",
        str(len(row["seeds"])),
        f"{row['score_iqm']:,.0f}",
        f"{low:,.0f} - {high:,.0f}",
        better,
        interval,
        f"{row['updates']:,}",
        "" if row["seconds"] is None else f"{row['seconds']:.0f}",
    )


def _pooled(scores: Sequence[Sequence[int]]) -> list[int]:
    return [score for run in scores for score in run]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def unfinished(plan: Plan, results: Results) -> Iterator[str]:
    """Yield the names of the variants with missing runs."""
    for variant in plan.variants:
        if len(results.get(variant.name, ())) < len(plan.seeds):
            yield variant.name

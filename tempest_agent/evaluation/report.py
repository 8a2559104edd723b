"""The results of evaluations as plain types for JSON, and as the rows of tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tempest_agent.console.progress import speed
from tempest_agent.evaluation.bands import band_name
from tempest_agent.evaluation.games import EvaluationGames
from tempest_agent.evaluation.outcomes import Outcomes, summary
from tempest_agent.evaluation.players import PlayerChoice


def evaluation_result(
    player: PlayerChoice, games: EvaluationGames, outcomes: Outcomes, seconds: float
) -> dict[str, Any]:
    """Return the JSON object of one evaluation."""
    machine: dict[str, Any] = {}
    if games.machine is not None:
        machine = {"rom_set": games.machine.rom_set, "repeated_games": outcomes.repeated}
    figures = summary(outcomes)
    return {
        "policy": player.name,
        "episodes": len(outcomes.scores),
        **figures,
        "limit_share": games.limit_share(figures["score_iqm"]),
        "seed": games.seed,
        "level": games.level,
        **({} if games.to_level is None else {"to_level": games.to_level}),
        "max_ticks": games.max_ticks,
        "input_delay": games.input_delay,
        "bonus_life": games.bonus_life,
        "frame_skip": player.frame_skip,
        "backend": "sim" if games.machine is None else "mame",
        **machine,
        "checkpoint_sha256": player.sha256,
        "checkpoint_step": player.step,
        "seconds": round(seconds, 3),
    }


def result_title(result: Mapping[str, Any]) -> str:
    """Return the title of the table of one evaluation."""
    return (
        f"{result['policy']}: {result['episodes']} games from level {result['level']}, "
        f"seed {result['seed']}, at most {result['max_ticks']:,} ticks each"
    )


def result_rows(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return names and texts of the table of one evaluation."""
    share = result["limit_share"]
    of_the_limit = "" if share is None else f"; {100 * share:.1f} % of the estimated limit"
    deaths = [f"{cause} {n:,}" for cause, n in result["deaths"].items() if n]
    machine = [("ROM set", f"{result['rom_set']}, on MAME")] if "rom_set" in result else []
    return [
        *machine,
        ("score, IQM", f"{_with_interval(result, 'score_iqm')}{of_the_limit}"),
        ("score, median", _with_interval(result, "score_median")),
        ("score", f"mean {result['score_mean']:,.0f}, best {result['score_max']:,}"),
        ("level", f"mean {result['level_mean']:.1f}, highest {result['level_max']}"),
        ("ticks, median", _with_interval(result, "ticks_median")),
        (
            "ticks",
            f"mean {result['ticks_mean']:,.0f}, {result['truncated']} games cut, "
            f"{100 * result['ended_share']:.0f} % over",
        ),
        ("points", f"{speed(result['points_per_1000_ticks'])} per 1,000 ticks"),
        (
            "deaths",
            f"{result['deaths_per_1000_ticks']:.3f} per 1,000 ticks: {', '.join(deaths) or 'none'}",
        ),
        *(
            (
                f"  in {band_name(*band['levels'])}",
                f"{band['deaths_per_1000_ticks']:.3f} per 1,000 ticks: {band['deaths']:,} in "
                f"{band['ticks']:,} ticks",
            )
            for band in result["bands"]
            if band["ticks"]
        ),
    ]


def _with_interval(result: Mapping[str, Any], name: str) -> str:
    low, high = result[f"{name}_ci95"]
    return f"{result[name]:,.0f}  (95 %: {low:,.0f} to {high:,.0f})"


def comparison_title(results: Sequence[Mapping[str, Any]]) -> str:
    """Return the title of the table of several evaluations."""
    first = results[0]
    return (
        f"{first['episodes']} games each, seed {first['seed']}, at most "
        f"{first['max_ticks']:,} ticks; intervals of 95 %"
    )


def comparison_table(
    results: Sequence[Mapping[str, Any]], comparison: Sequence[Mapping[str, Any]]
) -> tuple[list[str], list[list[str]]]:
    """Return header and rows of the table of several evaluations, in the order played."""
    better = {
        (row["policy"], row["level"]): f"{row['probability_of_improvement']:.2f} "
        f"({row['ci95'][0]:.2f} to {row['ci95'][1]:.2f})"
        for row in comparison
    }
    columns: list[tuple[str, Callable[[Mapping[str, Any]], str]]] = [
        ("policy", _name),
        ("level", lambda row: str(row["level"])),
        ("IQM", lambda row: f"{row['score_iqm']:,.0f}"),
        ("interval", lambda row: "{:,.0f} to {:,.0f}".format(*row["score_iqm_ci95"])),
        ("deaths/1,000 ticks", lambda row: f"{row['deaths_per_1000_ticks']:.3f}"),
        ("mean level", lambda row: f"{row['level_mean']:.1f}"),
        ("truncated", lambda row: str(row["truncated"])),
        (
            "P(better than the first)",
            lambda row: better.get((row["policy"], row["level"]), "-"),
        ),
    ]
    if not comparison:
        columns.pop()
    return [name for name, _ in columns], [[text(each) for _, text in columns] for each in results]


def _name(result: Mapping[str, Any]) -> str:
    if not result.get("interrupted"):
        return str(result["policy"])
    return f"{result['policy']} ({result['episodes']} games)"


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return ``rows`` below ``header`` as an aligned Markdown table, without a final newline."""
    cells = [header, *rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]

    def line(row: Sequence[str]) -> str:
        padded = [f" {text:<{width}} " for text, width in zip(row, widths, strict=True)]
        return "|" + "|".join(padded) + "|"

    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([line(header), rule, *map(line, rows)])

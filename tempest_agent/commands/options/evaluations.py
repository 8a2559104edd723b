"""Print and draw evaluations: one, several in comparison, or those of the protocol."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from tempest_agent.commands.options.output import print_columns, print_json, print_table


def print_evaluations(results: Sequence[dict[str, Any]], several: bool, as_json: bool) -> None:
    """Print one evaluation, or ``several`` with their comparison."""
    from tempest_agent.evaluation import report
    from tempest_agent.evaluation.comparison import compare

    if not several:
        if as_json:
            print_json(results[0])
        else:
            print_table(report.result_rows(results[0]), report.result_title(results[0]))
        return
    comparison = compare([result for result in results if not result.get("interrupted")])
    if as_json:
        print_json({"results": results, "comparison": comparison})
    else:
        click.echo(report.comparison_title(results))
        print_columns(*report.comparison_table(results, comparison))


def print_protocols(protocols: Sequence[dict[str, Any]], as_json: bool) -> None:
    """Print the protocol of one player, or of several in one table."""
    from tempest_agent.evaluation.protocol import protocol_table, protocol_title

    if as_json:
        print_json(protocols[0] if len(protocols) == 1 else {"results": protocols})
    else:
        click.echo(protocol_title(protocols))
        print_columns(*protocol_table(protocols))


def draw_evaluations(results: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw the interquartile means of evaluations."""
    from tempest_agent.plots.comparison import comparison_figure

    _save(comparison_figure(results), path)


def draw_protocols(protocols: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw the protocols of one or several players."""
    from tempest_agent.plots.protocol import protocol_figure

    _save(protocol_figure(protocols), path)


def _save(figure: Any, path: Path) -> None:
    from tempest_agent.plots.figure_files import save_figure

    save_figure(figure, path, "--plot")
    click.echo(f"plot: {path}", err=True)

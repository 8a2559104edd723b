"""Print results: one JSON object on stdout, or a table."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import click

EXIT_INTERRUPTED = 130
"""Exit code of a command that Ctrl-C has stopped after saving."""

F = TypeVar("F", bound=Callable[..., Any])


def json_option(command: F) -> F:
    """Add the flag ``--json`` to ``command``, as ``as_json``."""
    option = click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON object on stdout, nothing else."
    )
    return option(command)


@contextmanager
def only_results_on_stdout() -> Iterator[None]:
    """Redirect to stderr what libraries print inside."""
    stdout, sys.stdout = sys.stdout, sys.stderr
    try:
        yield
    finally:
        sys.stdout = stdout


def print_json(result: Mapping[str, Any]) -> None:
    """Print ``result`` as one line; NaN and infinity, which are not JSON, raise."""
    click.echo(json.dumps(result, allow_nan=False))


def print_table(rows: Iterable[tuple[str, str]], title: str) -> None:
    """Print ``title`` and the rows, names and texts in two columns."""
    lines = list(rows)
    width = max((len(name) for name, _ in lines), default=0)
    click.echo(title)
    for name, text in lines:
        click.echo(f"  {name:<{width}}  {text}")


def print_columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print ``rows`` below ``header``, the first column left-aligned, the others right-aligned."""
    table = [header, *rows]
    widths = [max(len(row[at]) for row in table) for at in range(len(header))]
    for row in table:
        first = f"{row[0]:<{widths[0]}}"
        others = [f"{text:>{width}}" for text, width in zip(row[1:], widths[1:], strict=True)]
        click.echo("  ".join([first, *others]).rstrip())

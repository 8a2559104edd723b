"""The page that leads from a rule to its function stays complete."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from places import ROOT

from tempest_agent.envs import arcade, machine

ARCADE, MACHINE = (Path(package.__file__).parent for package in (arcade, machine))
PAGE = ROOT / "docs" / "rules.md"
ROW = re.compile(r"^\|[^|]+\| `(\w+)` \| `(\w+\.py)` \|$", re.MULTILINE)


def listed() -> list[tuple[str, str]]:
    """(file, function) of every row."""
    return [(file, name) for name, file in ROW.findall(PAGE.read_text(encoding="utf-8"))]


def functions_of(file: Path, compiled_only: bool) -> set[str]:
    """Public functions of a module, or those of them that are compiled rules."""
    found = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            marks = {mark.id for mark in node.decorator_list if isinstance(mark, ast.Name)}
            if not compiled_only or marks & {"rule", "kernel"}:
                found.add(node.name)
    return found


def test_every_function_on_the_page_exists() -> None:
    rows = listed()
    assert len(rows) > 100
    for file, name in rows:
        folder = ARCADE if (ARCADE / file).exists() else MACHINE
        assert name in functions_of(folder / file, compiled_only=False), f"{file}: {name}"


def test_every_rule_is_on_the_page_once() -> None:
    rows = listed()
    assert len(set(rows)) == len(rows)
    for file in sorted(ARCADE.glob("*.py")):
        missing = functions_of(file, compiled_only=True) - {n for f, n in rows if f == file.name}
        assert missing == set(), file.name


def test_no_row_is_written_so_that_it_is_not_seen() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    table = [line for line in lines if line.startswith("|")]
    rows = [line for line in table if not line.startswith(("| rule ", "|--"))]
    assert len(rows) == len(listed())

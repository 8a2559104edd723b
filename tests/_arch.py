"""Imports go one way: a module imports only from its own folder and from folders above it here."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

ORDER = """
envs.registration envs.free_memory envs.messages envs.checks envs.plain_json envs.archives tempest_agent.errors files
envs.machine envs.arcade envs.game_state envs.features envs.recordings envs.engine
envs.render envs.mame envs.api
experts.interface experts.random_player experts.scripted experts.novice experts.planner
experts.registry experts
config console ray_support runs
agent agent.networks agent.inference agent.replay agent.learner agent.update
agent.games agent.collect stability agent.checkpoints agent.curriculum agent.ranks agent.loop agent.dqn
actors evaluation demonstrations training plots sweep bench
commands.options commands cli
""".split()
"""Folders (and single modules) of the package, each above those that may import it."""


def places() -> Iterator[tuple[str, Path]]:
    """Yield every module of the package as ``(dotted name inside the package, file)``."""
    for top in ("tempest_agent", "envs", "experts"):
        for file in sorted((ROOT / top).rglob("*.py")):
            parts = list(file.relative_to(ROOT).with_suffix("").parts)
            if parts[0] == "tempest_agent":
                parts = parts[1:]
            if parts and parts[-1] == "__init__":
                parts.pop()
            yield ".".join(parts), file


def imported(name: str, file: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the full name of all that ``file`` imports from this package."""
    package = f"tempest_agent.{name}".split(".")
    if file.name != "__init__.py":
        package.pop()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base += node.module.split(".") if node.module else []
            for alias in node.names:
                yield node.lineno, ".".join([*base, alias.name])


MODULES = {name: file for name, file in places()}


def place(name: str) -> int | None:
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        part = ".".join(parts[:length])
        for candidate in (part, f"tempest_agent.{part}"):
            if candidate in ORDER:
                return ORDER.index(candidate)
    return None


def main():
    bad = []
    for name, file in MODULES.items():
        here = place(name)
        if here is None:
            if name not in ("", "__main__", "cli"):
                print("no place", name)
            continue
        for line, full in imported(name, file):
            if not full.startswith("tempest_agent."):
                continue
            target = full.removeprefix("tempest_agent.")
            while target and target not in MODULES:
                target = target.rpartition(".")[0]
            there = place(target)
            if there is None:
                print("?", name, full)
                continue
            if there > here:
                bad.append((name, full, line))
    for b in bad:
        print(*b)
    print(len(bad))


main()

"""Imports go one way: a module imports only from its own folder and from those above it here."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

from places import ROOT

ORDER = """
envs.registration envs.free_memory envs.messages envs.checks envs.plain_json envs.archives
errors files
envs.machine envs.arcade envs.game_state envs.forecast envs.features envs.recordings envs.engine
envs.display envs.render envs.mame envs.api envs
experts.interface experts.random_player experts.scripted experts.novice experts.planner
experts.registry experts
config console ray_support runs
agent agent.networks agent.inference agent.replay agent.learner agent.update
agent.games agent.collect stability agent.checkpoints agent.curriculum agent.ranks agent.loop
agent.dqn
actors evaluation demonstrations training plots sweep bench web
commands.options commands cli __init__ __main__
""".split()  # noqa: SIM905
"""Folders and single modules of the package; docs/architecture.md says what each is for."""

MOST_MODULES = 12
"""In a folder, except ``envs/arcade``, which has one for each rule of the game."""


def modules() -> dict[str, Path]:
    """The files of the package by their names in it, such as ``envs.arcade.tick``."""
    found = {}
    for top in ("tempest_agent", "envs", "experts"):
        for file in sorted((ROOT / top).rglob("*.py")):
            parts = file.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts[1:] if top == "tempest_agent" else parts)
            found[name.removesuffix(".__init__")] = file
    return found


MODULES = modules()


def imports(name: str) -> Iterator[str]:
    """Yield the modules of the package that a module imports from, anywhere in its code."""
    file = MODULES[name]
    package = ["tempest_agent", *name.split(".")][: None if file.name == "__init__.py" else -1]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found = [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = [*base, node.module] if node.module else base
            found = [(".".join(base), alias.name) for alias in node.names]
        else:
            continue
        for full, member in found:
            module = full.removeprefix("tempest_agent.")
            yield from (each for each in (f"{module}.{member}", module) if each in MODULES)


def place(module: str) -> int:
    """Index in ``ORDER`` of the module itself, or of the nearest folder around it."""
    parts = module.split(".")
    around = [".".join(parts[:length]) for length in range(len(parts), 0, -1)]
    return ORDER.index(next(each for each in around if each in ORDER))


def test_imports_go_down_the_list_and_never_up() -> None:
    against = [
        f"{name} imports {module}"
        for name in MODULES
        for module in imports(name)
        if place(module) > place(name)
    ]
    assert not against


def test_no_two_modules_import_each_other() -> None:
    graph = {name: {module for module in imports(name)} - {name} for name in MODULES}
    TopologicalSorter(graph).prepare()


def test_folders_are_small() -> None:
    sizes: dict[Path, int] = {}
    for file in MODULES.values():
        sizes[file.parent] = sizes.get(file.parent, 0) + (file.name != "__init__.py")
    large = {str(folder.relative_to(ROOT)): n for folder, n in sizes.items() if n > MOST_MODULES}
    assert set(large) == {"envs/arcade"}


def purpose(name: str) -> str:
    """First sentence of a module's docstring."""
    text = ast.get_docstring(ast.parse(MODULES[name].read_text(encoding="utf-8")))
    assert text, f"{name} does not say what it is for"
    return text.partition("\n")[0].replace("``", "")


def test_every_module_says_what_it_is_for() -> None:
    assert all(map(purpose, MODULES))


def test_the_documents_list_the_folders_in_order_with_their_purpose() -> None:
    folders = [each for each in ORDER if each in MODULES and MODULES[each].stem == "__init__"]
    folders.remove("__init__")
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").replace("`", "")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for text, row in ((page, r"^\| (\S+)/ \| (.+) \|$"), (readme, r"^([\w/]+)/  +([A-Z].+)$")):
        listed = [(path.replace("/", "."), said) for path, said in re.findall(row, text, re.M)]
        assert listed == [(each, purpose(each)) for each in folders]

"""What the README and the docs say must be so."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from places import ROOT

from tempest_agent.cli import COMMANDS, cli
from tempest_agent.config import available
from tempest_agent.envs.render.window import WINDOW_RECIPE

README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def block(marker: str) -> str:
    """The fenced block after ``<!-- marker -->`` in the README."""
    found = re.search(rf"^<!-- {marker} -->\n```\w+\n(.*?)^```$", README, re.M | re.S)
    assert found, f"no block after <!-- {marker} -->"
    return found.group(1)


@pytest.mark.parametrize("marker", ["gymnasium", "sb3", "library"])
def test_the_snippets_run(
    marker: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(block(marker), f"README.md:{marker}", "exec"), {"__name__": "__main__"})
    if marker == "gymnasium":
        score, level, lives = (int(word) for word in capsys.readouterr().out.split())
        assert score >= 0
        assert level >= 1
        assert 0 <= lives <= 6


def test_the_main_command_trains_with_a_configuration_that_exists() -> None:
    install, train = block("main").strip().split(" && ")
    assert install == "pip install -e ."
    words = shlex.split(train)
    assert words[:3] == ["tempest-agent", "train", "--config"]
    assert words[3] in available()


def test_the_test_command_installs_and_runs_pytest() -> None:
    install, tests = block("tests").strip().split(" && ")
    assert install == "pip install -e '.[dev]'"
    assert tests == "pytest"


def commands_mentioned() -> list[str]:
    """Every ``tempest-agent ...`` in the documents' code."""
    found = []
    for document in DOCUMENTS:
        for code in re.findall(r"`(tempest-agent [^`]+)`", document.read_text(encoding="utf-8")):
            found.append(code.replace("[", " ").replace("]", " "))
    return found


@pytest.mark.parametrize("line", commands_mentioned())
def test_commands_in_the_documents_exist_with_their_options(line: str) -> None:
    _, name, *words = line.split()
    command = cli.get_command(click.Context(cli), name)
    assert command is not None, f"no command {name}"
    known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
    for word in words:
        if word.startswith("--"):
            assert word in known, f"{name} has no {word}"


def test_every_command_is_in_the_readme() -> None:
    for name in COMMANDS:
        assert f"`tempest-agent {name}" in README


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if not target.startswith("http"):
            assert (document.parent / target).is_file(), target


def test_every_key_of_the_evaluation_is_documented() -> None:
    result = CliRunner().invoke(cli, ["eval", "random", "--episodes", "1", "--json"])
    assert result.exit_code == 0
    documented = set(re.findall(r"`(\w+)`", (ROOT / "docs" / "commands.md").read_text()))
    assert set(json.loads(result.stdout)) <= documented


def test_the_recipe_for_windows_is_the_messages() -> None:
    assert f"`{WINDOW_RECIPE}`" in README

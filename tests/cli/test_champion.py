"""The shipped player is always the shipped one; ``checkpoints/latest.pt`` is what runs write."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from places import ROOT

from tempest_agent.agent.checkpoints.checkpoint_files import read_checkpoint
from tempest_agent.cli import cli
from tempest_agent.config import from_dict, load_config
from tempest_agent.evaluation.players import CHAMPION, PLAYER_NAMES, find_player

SHIPPED = Path(str(resources.files("tempest_agent.checkpoints") / "champion.pt"))
SHORT = ("--episodes", "2", "--max-ticks", "60")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["champion", "latest", "checkpoints/latest.pt"])
def test_the_champion_is_played_where_no_run_has_written_anything(name: str, here: Path) -> None:
    result = run("eval", name, *SHORT, "--json")
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    assert figures["policy"] == CHAMPION
    assert figures["checkpoint_sha256"] == hashlib.sha256(SHIPPED.read_bytes()).hexdigest()
    assert figures["checkpoint_step"] == 3_000_064
    assert not list(here.iterdir())


def test_the_champion_is_of_the_recipe_that_bears_its_name() -> None:
    config = from_dict(read_checkpoint(SHIPPED)["config"])
    assert config == replace(load_config("champion"), run=config.run)
    assert config.run == replace(load_config("champion").run, seed=config.run.seed)


@pytest.mark.parametrize("absolute", [False, True])
def test_a_named_file_that_is_not_there_yet_is_said_to_be_the_champion(
    absolute: bool, here: Path, caplog: pytest.LogCaptureFixture
) -> None:
    name = f"{here}/checkpoints/latest.pt" if absolute else "checkpoints/latest.pt"
    assert find_player(name).name == CHAMPION
    [record] = caplog.records
    assert record.getMessage() == (
        f"{name} does not exist yet: no run has written one; using the shipped champion"
    )
    played = run("play", name, "--max-ticks", "60")
    assert played.exit_code == 0, played.output
    assert "checkpoint champion, step 3,000,064" in played.stderr


def test_what_a_run_wrote_is_played_and_the_champion_stays(here: Path) -> None:
    Path("checkpoints").mkdir()
    Path("checkpoints/latest.pt").write_text("of a run")
    for name in ("latest", "checkpoints/latest.pt"):
        result = run("eval", name, *SHORT)
        assert result.exit_code == 2
        assert "checkpoints/latest.pt is not a checkpoint" in result.stderr
    assert find_player("champion").sha256 == hashlib.sha256(SHIPPED.read_bytes()).hexdigest()


def test_another_missing_file_is_a_mistake(here: Path) -> None:
    result = run("eval", "checkpoints/last.pt", *SHORT)
    assert result.exit_code == 2
    assert "neither a player nor a file" in result.stderr
    assert all(name in result.stderr for name in PLAYER_NAMES)
    Path("checkpoints").mkdir()
    Path("checkpoints/latest.pt").symlink_to("gone.pt")
    assert run("eval", "latest", *SHORT).exit_code == 2


def test_a_run_in_a_clone_changes_no_tracked_file(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*arguments: str) -> str:
        settings = ("-c", "user.name=x", "-c", "user.email=x@example.com")
        command = ["git", *settings, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    shutil.copy(ROOT / ".gitignore", ".gitignore")
    Path("checkpoints").mkdir()
    for name in ("__init__.py", "champion.pt"):
        shutil.copy(ROOT / "checkpoints" / name, f"checkpoints/{name}")
    git("init", "-q")
    git("add", "-A")
    git("commit", "-q", "-m", "as cloned")
    assert git("ls-files", "checkpoints").split() == [
        "checkpoints/__init__.py",
        "checkpoints/champion.pt",
    ]
    settings = ("--config", "smoke", "--eval-games", "0", "--steps", "64")
    result = run("train", *settings)
    assert result.exit_code == 0, result.output
    assert Path("checkpoints/latest.pt").is_file()
    assert git("status", "--porcelain") == ""

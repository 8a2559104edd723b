"""Folders that are removed, moved or replaced while a command works in them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from same_state import assert_same
from short_runs import content, new_run, resume, rows, settings

from tempest_agent.envs.render.film import FilmError, FilmWriter
from tempest_agent.errors import UserError
from tempest_agent.training import session as training
from tempest_agent.training.session import Session


def replace_by_file(run: Path) -> None:
    shutil.rmtree(run)
    run.write_text("a file")


WAYS: dict[str, Callable[[Path], object]] = {
    "removed": shutil.rmtree,
    "moved": lambda run: run.rename(run.with_name("moved")),
    "replaced by a file": replace_by_file,
    "parent removed": lambda run: shutil.rmtree(run.parent),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("whole") / "run"
    new_run(run, "run.steps=480", games=0)
    return run


def vanishing(session: Session, at: int, act: Callable[[], object]) -> UserError:
    """What ``session`` ends in if ``act`` is done after ``at`` decisions."""
    log = session._trainer.loop.on_metrics
    assert log is not None

    def act_and_log(figures: dict[str, float]) -> None:
        if figures["steps"] == at:
            act()
        log(figures)

    session._trainer.loop.on_metrics = act_and_log
    with pytest.raises(UserError) as caught:
        session.run()
    return caught.value


@pytest.mark.parametrize("way", WAYS)
def test_what_was_played_is_saved_elsewhere_and_goes_on_from_there(
    tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    run = tmp_path / "runs" / "run"
    session = Session.new(settings("run.steps=480"), run, 0, publishes=False)
    error = str(vanishing(session, 160, lambda: WAYS[way](run)))
    [saved] = temporary.iterdir()
    assert f"the folder {run} was removed, moved or unmounted" in error
    assert error.endswith(f"resume it: tempest-agent train --resume {saved}")
    assert "160 decisions are saved" in error
    assert not run.is_dir()
    resume(saved, games=0)
    assert rows(saved / "metrics.csv") == rows(whole / "metrics.csv")
    ends = [content(folder / "checkpoints" / "step_480.pt") for folder in (saved, whole)]
    for part in ("learner", "guard", "collector", "random"):
        assert_same(*(end[part] for end in ends))


def test_nothing_is_saved_where_nothing_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    run = tmp_path / "run"
    session = Session.new(settings(), run, 0, publishes=False)
    error = str(vanishing(session, 160, lambda: shutil.rmtree(run)))
    assert "saving it elsewhere failed too" in error


def test_files_that_are_removed_alone_are_made_again(tmp_path: Path) -> None:
    run = tmp_path / "run"
    session = Session.new(settings("run.steps=480"), run, 0, publishes=False)
    log = session._trainer.loop.on_metrics
    assert log is not None

    def remove_and_log(figures: dict[str, float]) -> None:
        if figures["steps"] == 320:
            (run / "metrics.csv").unlink()
            shutil.rmtree(run / "checkpoints")
        log(figures)

    session._trainer.loop.on_metrics = remove_and_log
    assert session.run()["steps"] == 480
    assert len(rows(run / "metrics.csv")) == 6
    assert (run / "checkpoints" / "step_480.pt").is_file()


def test_a_run_elsewhere_outlives_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    session = Session.new(settings("run.steps=480"), tmp_path / "run", 0)
    log = session._trainer.loop.on_metrics
    assert log is not None

    def remove_and_log(figures: dict[str, float]) -> None:
        if figures["steps"] == 160:
            shutil.rmtree(gone)
        log(figures)

    session._trainer.loop.on_metrics = remove_and_log
    said: list[str] = []
    monkeypatch.setattr(training.Progress, "message", lambda _self, text: said.append(text))
    assert session.run()["steps"] == 480
    words = "checkpoints/latest.pt stays as it was: the current folder has been removed"
    assert any(words in line for line in said)
    os.chdir(tmp_path)


COMMANDS = (
    ("train", "--config", "smoke"),
    ("train", "--resume"),
    ("eval", "random", "--episodes", "1", "--max-ticks", "50", "--plot", "x.png"),
    ("play", "random", "--record", "x.mp4", "--max-ticks", "50"),
    ("sweep", "smoke", "--variant", "a:learner.gamma=0.5"),
    ("diagnose", "."),
    ("plot", "."),
    ("verify", "x.npz"),
)


def test_commands_in_a_folder_that_is_gone_say_so_in_one_line(tmp_path: Path) -> None:
    program = (
        "import os, sys; from click.testing import CliRunner; from tempest_agent.cli import cli\n"
        "os.rmdir(os.getcwd())\n"
        f"for arguments in {COMMANDS!r}:\n"
        "    result = CliRunner().invoke(cli, arguments)\n"
        "    print(result.exit_code, result.stderr.count(chr(10)), result.stderr, end='')\n"
    )
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=gone, capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert len(lines) == len(COMMANDS), done.stdout
    for arguments, line in zip(COMMANDS, lines, strict=True):
        words = "2 1 tempest-agent: the current folder has been removed: change to one"
        assert line.startswith(words), (arguments, line)


def test_a_film_whose_folder_is_gone_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "films"
    folder.mkdir()
    film = FilmWriter(folder / "game.mp4")
    film.write(np.zeros((640, 480, 3), np.uint8))
    shutil.rmtree(folder)
    with pytest.raises(FilmError, match="its folder was removed, moved or unmounted"):
        film.close()

"""``tempest-agent sweep`` from the command line: stopped, gone on with, and its results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tempest_agent.cli import cli
from tempest_agent.plots import figure_files
from tempest_agent.runs.lock import RunLock
from tempest_agent.sweep import executor as executor
from tempest_agent.sweep import plan, session
from tempest_agent.sweep.runs import SweepRun

COMMAND = (
    "sweep", "smoke", "--seeds", "1", "--set", "run.checkpoint_interval=640", "--steps", "1280",
    "--episodes", "3", "--max-ticks", "200", "--out", "out",
)  # fmt: skip


def run(*arguments: str) -> Result:
    """Run the command line in this process."""
    return CliRunner().invoke(cli, list(arguments))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


CTRL_C = """
import dataclasses, os, signal, sys, time
from tempest_agent.cli import main
from tempest_agent.sweep.runs import SweepRun
from tempest_agent.training.session import Session

if "sweep" in sys.argv:
    # The training of one run gets this program too.
    plain = SweepRun.next_command
    def next_command(run):
        command = plain(run)
        if run.name == "base/seed1" and "train" in command.arguments:
            python, _, _, *rest = command.arguments
            command = dataclasses.replace(command, arguments=(python, "-c", {program!r}, *rest))
        return command
    SweepRun.next_command = next_command
else:
    # At its first checkpoint it presses Ctrl-C in the sweep, and waits for what comes of it.
    plain = Session._on_checkpoint
    def press(session, path):
        plain(session, path)
        if not session._trainer.stop_requested:
            os.kill(os.getppid(), signal.SIGINT)
        while not session._trainer.stop_requested:
            time.sleep(0.01)
    Session._on_checkpoint = press
main()
"""
"""The command line, with Ctrl-C pressed between a run's first checkpoint and its end."""


@pytest.mark.timeout(900)  # Where nothing is compiled yet and the machine is busy.
def test_a_stopped_sweep_goes_on_where_it_was(here: Path) -> None:
    program = CTRL_C.format(program=CTRL_C.format(program=""))
    process = subprocess.Popen(
        [sys.executable, "-c", program, *COMMAND],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    first = Path("out/base/seed1")
    try:
        output, errors = process.communicate(timeout=600)
    finally:
        process.terminate()
    assert process.returncode == 130, errors
    assert output == ""
    assert "Traceback" not in errors
    assert not Path("out/table.md").exists()

    result = run(*COMMAND, "--json")
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    (row,) = figures["variants"]
    assert (row["name"], row["seeds"]) == ("base", [1])
    assert [len(scores) for scores in row["scores"]] == [3]
    assert row["updates"] > 0
    starts = json.loads((first / "run.json").read_text())["starts"]
    assert len(starts) == 2
    assert starts[1]["resumed_at_step"] >= 640
    assert json.loads(Path("out/results.json").read_text()) == figures
    assert Path("out/plot.png").stat().st_size > 1_000
    # The user's newest checkpoint is none of a sweep's.
    assert not Path("checkpoints").exists()

    # All is done: nothing is made again, and the table says the same.
    before = {path: path.stat().st_mtime_ns for path in Path("out").rglob("*.json")}
    again = run(*COMMAND)
    assert again.exit_code == 0
    assert again.stdout == Path("out/table.md").read_text()
    assert "1 runs, 1 of them complete" in again.stderr
    unchanged = [path for path in before if path.name != "results.json"]
    assert all(path.stat().st_mtime_ns == before[path] for path in unchanged)

    # Another plan in the same folder is refused.
    other = run(*COMMAND, "--episodes", "4")
    assert other.exit_code == 2
    assert "episodes=3 where this has 4" in other.stderr


class Pretended:
    """An executor that makes up the files of complete runs; those of one variant fail."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs

    def run(
        self,
        tasks: Sequence[SweepRun],
        watch: Callable[[], None],
        failed: Callable[[SweepRun, int], None],
    ) -> None:
        for task in tasks:
            command = task.next_command()
            assert command is not None
            if task.variant.name == "bad":
                task.log.write_text("tempest-agent: no such machine\n")
                failed(task, 2)
                continue
            trained = {"checkpoint": "step_1.pt", "updates": 5, "seconds": 1.0}
            command.output.write_text(json.dumps(trained))
            scored = {"scores": [100 * task.seed] * 3, "deaths_per_1000_ticks": 1.0}
            task.scored.write_text(json.dumps(scored))
            watch()


def test_a_run_that_a_killed_sweep_left_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "LocalProcesses", Pretended)
    again = ("sweep", "smoke", "--seeds", "1")
    assert run(*again).exit_code == 0
    left = Path("sweeps/smoke/base/seed1")
    left.mkdir()
    lock = RunLock(left)
    plain = session.is_locked
    asked: list[Path] = []

    def is_locked(folder: Path) -> bool:
        asked.append(folder)
        if len(asked) == 3:
            lock.release()
        return plain(folder)

    monkeypatch.setattr(session, "is_locked", is_locked)
    monkeypatch.setattr(session, "POLL_SECONDS", 0.0)
    left.with_suffix(".eval.json").unlink()
    result = run(*again)
    assert result.exit_code == 0, result.stderr
    assert asked == [left.absolute()] * 3
    assert result.stderr.count("waiting for the end of base/seed1,") == 1
    # Not for ever, if it is somebody else who trains it.
    monkeypatch.setattr(session, "SAVING_SECONDS", 0.0)
    left.with_suffix(".eval.json").unlink()
    lock = RunLock(left)
    try:
        assert run(*again).exit_code == 0
    finally:
        lock.release()


def test_a_run_that_fails_is_named_and_the_others_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "LocalProcesses", Pretended)
    bad = ("--variant", "bad:learner.gamma=0.9")
    result = run("sweep", "smoke", "--seeds", "2", *bad)
    assert result.exit_code == 1
    assert "bad/seed2 ended with exit code 2: tempest-agent: no such machine" in result.stderr
    assert "base/seed2: IQM 200\n" in result.stderr
    assert "the same command tries them again" in result.stderr
    assert "| base " in result.stdout
    assert "| bad " not in result.stdout
    assert Path("sweeps/smoke/table.md").read_text() == result.stdout


def test_without_a_single_run_there_is_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "LocalProcesses", Pretended)
    monkeypatch.setattr(plan, "BASE", "bad")
    result = run("sweep", "smoke", "--json")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "no run could be made; bad/seed1 ended with exit code 2" in result.stderr
    assert not Path("sweeps/smoke/table.md").exists()


def test_without_matplotlib_there_is_a_table_and_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "LocalProcesses", Pretended)
    monkeypatch.setattr(figure_files, "find_spec", lambda _: None)
    result = run("sweep", "smoke")
    assert result.exit_code == 0
    assert "pip install 'tempest-agent[plots]'" in result.stderr
    assert sorted(os.listdir("sweeps/smoke")) == [
        ".lock", "base", "results.json", "sweep.yaml", "table.md",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("smok",), "did you mean 'smoke'"),
        (("smoke", "--variant", "low:learner.gama=1"), "did you mean 'learner.gamma'"),
        (("smoke", "--variants", "ablaton"), "did you mean 'ablation'"),
        (("smoke", "--seeds", "0"), "--seeds"),
        (("smoke", *("--variant", "a:learner.gamma=0.9") * 2), "two variants are named 'a'"),
    ],
)
def test_mistakes_make_nothing(here: Path, arguments: tuple[str, ...], words: str) -> None:
    result = run("sweep", *arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert not list(here.iterdir())


def test_two_sweeps_in_one_folder(here: Path) -> None:
    Path("out").mkdir()
    lock = RunLock(Path("out"))
    try:
        result = run("sweep", "smoke", "--out", "out")
    finally:
        lock.release()
    assert result.exit_code == 2
    assert "another sweep is running" in result.stderr
    assert os.listdir("out") == [".lock"]

"""Training runs from the command line: their files, stopping, resuming, and playing the result."""

from __future__ import annotations

import csv
import errno
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from click.testing import CliRunner, Result

from tempest_agent.cli import cli
from tempest_agent.training import run_start

TRAIN_KEYS = {
    "steps",
    "updates",
    "env_steps_per_second",
    "samples_per_second",
    "checkpoint",
    "expert_ratio",
    "epsilon",
}
SMOKE = (
    "train", "--config", "smoke", "--steps", "2000", "--set", "run.checkpoint_interval=1000",
    "--set", "run.log_interval=500", "--set", "replay.learning_starts=200",
)  # fmt: skip
"""A run of 2,000 decisions."""
SHORT = (*SMOKE, "--eval-games", "0", "--json")


def run(*arguments: str) -> Result:
    """Run the command line in this process."""
    return CliRunner().invoke(cli, list(arguments))


def result_of(*arguments: str) -> dict[str, Any]:
    """The JSON object that a command prints, which must be all of its stdout."""
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    figures: dict[str, Any] = json.loads(result.stdout)
    return figures


def rows(path: Path) -> list[dict[str, str]]:
    """A CSV file without the columns that tell the time."""
    with path.open(newline="") as file:
        return [
            {name: value for name, value in row.items() if not name.endswith("per_second")}
            for row in csv.DictReader(file)
        ]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a run ``one`` of 2,000 decisions was made, uninterrupted."""
    folder = tmp_path_factory.mktemp("finished")
    before = Path.cwd()
    os.chdir(folder)
    try:
        figures = result_of(*SMOKE, "--run-dir", "one", "--json")
    finally:
        os.chdir(before)
    (folder / "result.json").write_text(json.dumps(figures))
    return folder


@pytest.fixture
def in_finished(finished: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same as the current directory."""
    monkeypatch.chdir(finished)
    return finished


def test_the_result_and_the_files_of_a_run(in_finished: Path) -> None:
    result = json.loads(Path("result.json").read_text())
    assert result.keys() >= TRAIN_KEYS
    assert result["steps"] == 2_000
    assert result["updates"] > 0
    assert Path(result["checkpoint"]).is_file()
    settings = yaml.safe_load(Path("one/config.yaml").read_text())
    assert settings["run"]["steps"] == 2_000
    start = json.loads(Path("one/run.json").read_text())["starts"][0]
    assert start["command"].startswith("tempest-agent")
    assert {"git_commit", "versions", "python", "time"} <= start.keys()
    logged = rows(Path("one/metrics.csv"))
    assert [int(row["steps"]) for row in logged] == sorted({int(row["steps"]) for row in logged})
    assert {"loss", "expert_ratio", "epsilon", "learning_rate"} <= logged[-1].keys()
    assert [int(row["steps"]) for row in rows(Path("one/evaluations.csv"))] == [1_008, 2_000]
    assert list(Path("one").glob("events.out.tfevents.*"))
    latest = Path("checkpoints/latest.pt").read_bytes()
    assert latest == Path(result["checkpoint"]).read_bytes()
    assert torch.load("checkpoints/latest.pt", weights_only=True)["step"] == 2_000


def test_the_end_of_a_run_says_what_to_do_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*SMOKE, "--run-dir", "my run", "--eval-games", "2")
    assert result.exit_code == 0, result.output
    lines = [line.strip().split("  ", 1) for line in result.stdout.splitlines()[1:]]
    shown = {name: text.strip() for name, text in lines}
    assert next(iter(shown)) == "greedy games"  # What to judge the run by comes first.
    assert shown["decisions"] == "2,000 of 2,000"
    assert "compiling, is not counted" in shown["speed"]
    assert shown["curves"] == "tensorboard --logdir 'my run'"
    assert shown["watch it"] == "tempest-agent play latest --record game.mp4"
    last = rows(Path("my run/evaluations.csv"))[-1]
    assert shown["greedy games"].startswith(f"IQM {float(last['score_iqm']):,.0f}, level ")
    assert "stopped" not in result.stdout
    # What the printed metrics mean is said before the first of them.
    assert result.stderr.index("teacher-free, the mean score") < result.stderr.index("expert 0.")


def test_a_printed_line_begins_with_the_greedy_games(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*SMOKE, "--run-dir", "r", "--eval-games", "2")
    assert result.exit_code == 0, result.output
    first = float(rows(Path("r/evaluations.csv"))[0]["score_iqm"])
    printed = [line for line in result.stderr.splitlines() if ", expert 0." in line]
    before = [line for line in printed if line.startswith(("512", "1,0"))]
    assert before
    assert not any("greedy" in line for line in before[:1])  # None were played yet.
    assert any(f": greedy {first:,.0f}, " in line for line in printed)
    for line in printed:
        if "teacher-free" in line:  # Of how many games the mean is.
            assert " ended)" in line


def test_the_saved_configuration_makes_the_same_run(in_finished: Path) -> None:
    result_of("train", "--config", "one/config.yaml", "--run-dir", "again", "--json")
    assert rows(Path("again/metrics.csv")) == rows(Path("one/metrics.csv"))


def test_another_runs_folder_is_never_written_into(in_finished: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in Path("one").rglob("*")}
    result = run(*SHORT, "--run-dir", "one")
    assert result.exit_code == 2
    assert "--resume one" in result.stderr
    assert result.stderr.count("\n") == 1
    assert {path: path.stat().st_mtime_ns for path in Path("one").rglob("*")} == before


def test_a_folder_with_other_files_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("thesis").mkdir()
    Path("thesis/text.tex").write_text("precious")
    Path("file").write_text("precious")
    for name in ("thesis", "file"):
        result = run(*SHORT, "--run-dir", name)
        assert result.exit_code == 2
        assert name in result.stderr
    assert Path("thesis/text.tex").read_text() == Path("file").read_text() == "precious"


def test_a_run_that_cannot_write_its_first_files_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(run: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(run / "run.json"))

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run_start, "record_start", full)
    result = run(*SHORT, "--run-dir", "mine")
    assert result.exit_code == 2
    assert "cannot write mine/run.json: No space left on device" in result.stderr
    assert not Path("mine").exists()


def test_two_runs_at_the_same_time_get_folders_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(time, "strftime", lambda *_: "now")
    folders = [result_of(*SHORT, "--steps", "400")["run_dir"] for _ in range(2)]
    assert folders == ["runs/smoke-now-s1", "runs/smoke-now-s1-2"]
    # Without a path the newest run is resumed.
    assert result_of("train", "--json", "--resume", "--steps", "500")["run_dir"] == folders[1]


def test_a_resumed_run_cannot_be_made_shorter(in_finished: Path) -> None:
    result = run("train", "--resume", "one", "--steps", "100")
    assert result.exit_code == 2
    assert "2000" in result.stderr
    assert "--steps 100" in result.stderr


def test_a_copied_checkpoint_is_not_a_run(in_finished: Path) -> None:
    result = run("train", "--resume", "checkpoints/latest.pt")
    assert result.exit_code == 2
    assert "run" in result.stderr


CTRL_C = """
import os, signal
from tempest_agent.cli import main
from tempest_agent.runs.metrics_log import MetricsLog
write = MetricsLog.write
def write_and_press(*arguments):
    write(*arguments)
    os.kill(os.getpid(), signal.SIGINT)
MetricsLog.write = write_and_press
main()
"""
"""The command line, with Ctrl-C pressed at the first line of metrics: from outside it could come
after the end of so short a run."""


def test_ctrl_c_saves_and_resuming_goes_on_as_if_nothing_had_happened(
    in_finished: Path,
) -> None:
    command = [sys.executable, "-c", CTRL_C, *SHORT, "--run-dir", "stopped"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=280)
    output, errors = process.stdout, process.stderr
    assert process.returncode == 130, errors
    assert "--resume stopped" in errors
    assert "Traceback" not in errors
    result = json.loads(output)
    assert result["stopped"]
    assert 500 <= result["steps"] < 2_000
    resumed = result_of("train", "--resume", "stopped", "--eval-games", "0", "--json")
    assert resumed["steps"] == 2_000
    # Means over the interval in which the run was stopped cover a part of it only.
    exact = ("steps", "updates", "expert_ratio", "epsilon", "learning_rate", "games")
    logs = [rows(Path(name) / "metrics.csv") for name in ("one", "stopped")]
    assert [[row[n] for n in exact] for row in logs[0]] == [
        [row[n] for n in exact] for row in logs[1]
    ]
    ends = [torch.load(f"{name}/checkpoints/step_2000.pt") for name in ("one", "stopped")]
    for one, other in zip(*(end["learner"]["average"].values() for end in ends), strict=True):
        assert torch.equal(one, other)
    starts = json.loads(Path("stopped/run.json").read_text())["starts"]
    assert [start["resumed_at_step"] for start in starts] == [None, result["steps"]]


def test_a_checkpoint_is_evaluated_and_played_alike(in_finished: Path) -> None:
    games = ("--episodes", "3", "--max-ticks", "400")
    figures = result_of("eval", "latest", *games, "--json")
    assert figures["checkpoint_step"] == 2_000
    assert len(figures["checkpoint_sha256"]) == 64
    assert figures["policy"] == "checkpoints/latest.pt"
    played = run("play", "checkpoints/latest.pt", *games)
    assert played.exit_code == 0
    for number, score in enumerate(figures["scores"], 1):
        assert f"game {number}: {score:,} points" in played.stdout

"""``train --resume`` on runs that are damaged, busy, complete, or from another machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner
from processes import eventually

from tempest_agent.cli import cli
from tempest_agent.config import load_config
from tempest_agent.errors import UserError
from tempest_agent.runs.file_names import LOCK_FILE
from tempest_agent.runs.lock import RunLock
from tempest_agent.training.session import Session

TRAIN = [sys.executable, "-m", "tempest_agent.cli", "train", "--json", "--eval-games", "0"]


@dataclass(frozen=True)
class Done:
    """How a command ended; ``stderr`` is what it said there and to its log."""

    returncode: int
    stdout: str
    stderr: str


Run = Callable[..., Done]


@pytest.fixture
def run(caplog: pytest.LogCaptureFixture) -> Run:
    """The command line, in this process."""

    def run(*arguments: str) -> Done:
        caplog.clear()
        result = CliRunner().invoke(cli, arguments)
        said = "".join(f"{record.getMessage()}\n" for record in caplog.records)
        return Done(result.exit_code, result.stdout, said + result.stderr)

    return run


@pytest.fixture
def train(run: Run) -> Run:
    return partial(run, "train", "--json", "--eval-games", "0")


def content(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != LOCK_FILE)
    return {str(path): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a complete run ``one`` of 2,000 decisions, checkpoints at 1,008 and 2,000."""
    folder = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        command = ["train", "--eval-games", "0", "--config", "smoke", "--run-dir", "one"]
        command += ["--steps", "2000", "--set", "run.checkpoint_interval=1000"]
        assert CliRunner().invoke(cli, command).exit_code == 0
    return folder


@pytest.fixture
def run_one(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the run, ``one`` in the current directory."""
    shutil.copytree(finished, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    return Path("one")


def test_a_complete_run_is_left_as_it_is(run_one: Path, train: Run) -> None:
    before = content(Path())
    result = train("--resume", "one")
    assert result.returncode == 0, result.stderr
    assert "one is complete (2,000 decisions)" in result.stderr
    assert "--steps N" in result.stderr
    figures = json.loads(result.stdout)
    assert figures["steps"] == 2_000
    assert figures["checkpoint"] == "one/checkpoints/step_2000.pt"
    assert not figures["stopped"]
    assert content(Path()) == before


@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_a_damaged_newest_checkpoint_is_named_and_the_one_before_taken(
    run_one: Path, damage: str, run: Run, train: Run
) -> None:
    newest = run_one / "checkpoints" / "step_2000.pt"
    whole = newest.read_bytes()
    half = len(whole) // 2
    changed = bytes(255 - byte for byte in whole[half : half + 40])
    newest.write_bytes(
        whole[:half] + (changed + whole[half + 40 :] if damage == "changed" else b"")
    )
    shutil.copy(newest, "checkpoints/latest.pt")
    scored = run("eval", "latest")
    assert scored.returncode == 2
    assert "latest.pt is damaged" in scored.stderr
    assert scored.stderr.count("\n") == 1
    asked = train("--resume", str(newest))
    assert asked.returncode == 2
    assert f"{newest} is damaged" in asked.stderr
    result = train("--resume", "one")
    assert result.returncode == 0, result.stderr
    assert f"{newest} is damaged: set aside as step_2000.pt.bad" in result.stderr
    assert json.loads(result.stdout)["steps"] == 2_000
    starts = json.loads((run_one / "run.json").read_text())["starts"]
    assert starts[-1]["resumed_at_step"] == 1_008
    assert newest.exists()


def test_damaged_logs_do_not_end_a_resume(run_one: Path, train: Run) -> None:
    for name in ("run.json", "metrics.csv", "evaluations.csv"):
        (run_one / name).write_text("{")
    result = train("--resume", "one", "--steps", "2400")
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr
    for name in ("run.json", "metrics.csv", "evaluations.csv"):
        assert f"{name} is damaged; renamed to {name}.bad" in result.stderr
        assert (run_one / f"{name}.bad").read_text() == "{"
    assert len(json.loads((run_one / "run.json").read_text())["starts"]) == 1


def test_a_resumed_session_draws_the_same_noise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a session prints before it trains must not use up random numbers."""
    monkeypatch.chdir(tmp_path)
    settings = [
        "run.steps=1500", "run.num_envs=16", "run.log_interval=500", "run.checkpoint_interval=500",
        "network.hidden=[16]", "learner.loss=iqn", "learner.batch_size=16",
        "replay.prioritised=true", "replay.capacity=2000", "replay.learning_starts=100",
        "teacher.expert_ratio_schedule=performance", "run.phases=teacher", "teacher.score=5000",
        "game.start_levels=[1,3]", "game.max_ticks=300",
    ]  # fmt: skip
    whole = Session.new(load_config(None, settings), Path("whole"), 0)
    keep = whole._trainer.on_checkpoint

    def copy_first(path: Path) -> None:
        if not Path("killed").exists():
            shutil.copytree("whole", "killed")
        assert keep is not None
        keep(path)

    whole._trainer.on_checkpoint = copy_first
    whole.run()
    torch.manual_seed(99)
    Session.resumed(Path("killed"), None, 0).run()
    ends = [
        torch.load(next(Path(name).glob("checkpoints/step_1504.pt")), weights_only=True)
        for name in ("whole", "killed")
    ]
    for part in ("online", "average", "target"):
        for name, weights in ends[0]["learner"][part].items():
            assert torch.equal(weights, ends[1]["learner"][part][name]), name
    assert torch.equal(*(end["random"]["torch"] for end in ends))


def test_two_processes_cannot_work_on_one_run(run_one: Path, train: Run) -> None:
    command = [*TRAIN, "--resume", "one", "--steps", "1000000"]
    metrics = run_one / "metrics.csv"
    size = metrics.stat().st_size
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as first:
        try:
            eventually(lambda: metrics.stat().st_size != size or first.poll() is not None)
            assert first.poll() is None
            second = train("--resume", "one", "--steps", "3000")
        finally:
            first.kill()
    assert second.returncode == 2
    assert second.stderr.count("\n") == 1
    assert f"one is being trained by process {first.pid}" in second.stderr
    RunLock(run_one).release()  # A kill ends the lock.


def test_leftovers_of_a_kill_are_removed(run_one: Path, train: Run) -> None:
    left = [
        run_one / ".run.json.abcdefgh",
        run_one / "checkpoints" / ".step_9.pt.abcdefgh",
        run_one / "checkpoints" / ".replay_9.npz.abcdefgh",
        Path("checkpoints/.latest.pt.abcdefgh"),
    ]
    for path in left:
        path.touch()
    os.utime(left[-1], (0, 0))
    young = Path("checkpoints/.latest.pt.hgfedcba")
    young.touch()
    assert train("--resume", "one").returncode == 0
    assert not any(path.exists() for path in left)
    assert young.exists()


def test_the_device_may_change(run_one: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    newest = run_one / "checkpoints" / "step_2000.pt"
    stored: dict[str, Any] = torch.load(newest, weights_only=True)
    stored["config"]["run"]["device"] = "cuda"
    torch.save(stored, newest)
    for device in (None, "cpu", "auto"):
        assert Session.resumed(run_one, 2_400, 0, device).run()["steps"] == 2_400
        (run_one / "checkpoints" / "step_2400.pt").unlink()
        torch.save(stored, newest)
    with pytest.raises(UserError, match="'cuda' is not available"):
        Session.resumed(run_one, 2_400, 0, "cuda")
    with pytest.raises(UserError, match="unknown device 'gpu'"):
        Session.resumed(run_one, 2_400, 0, "gpu")
    RunLock(run_one).release()  # A start that failed lets go of the run.

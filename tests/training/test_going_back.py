"""Runs that are resumed from an earlier checkpoint than their last."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from short_runs import assert_same_run, names, resume, rows, settings
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tempest_agent.agent.checkpoints.checkpoint_files import (
    read_checkpoint,
    write_checkpoint,
    write_replay,
)
from tempest_agent.files.atomic_files import publish
from tempest_agent.runs.directory import find_run, write_config
from tempest_agent.runs.lock import RunLock
from tempest_agent.runs.metrics_log import MetricsLog
from tempest_agent.runs.provenance import record_start
from tempest_agent.stability.guard import REMEDY, Event
from tempest_agent.stability.guard_log import GuardLog
from tempest_agent.training import going_back
from tempest_agent.training.session import Session, _prepared


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 960 decisions, with checkpoints at 240, 480, 720 and 960 and every replay."""
    run = tmp_path_factory.mktemp("whole") / "run"
    replays = run.with_name("replays")
    replays.mkdir()
    session = Session.new(settings(), run, 2, publishes=False)
    saved = session._trainer.on_checkpoint
    assert saved is not None

    def keep_replay(path: Path) -> None:
        for replay in path.parent.glob("replay_*.npz"):
            shutil.copy(replay, replays)
        saved(path)

    session._trainer.on_checkpoint = keep_replay
    session.run()
    return run


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    """A copy of it, with the replay of decision 480, which no longer is there otherwise."""
    shutil.copytree(whole, tmp_path / "run")
    shutil.copy(whole.with_name("replays") / "replay_480.npz", tmp_path / "run" / "checkpoints")
    return tmp_path / "run"


def tensorboard(run: Path) -> dict[str, list[int]]:
    """The steps of two curves, as TensorBoard shows them."""
    events = EventAccumulator(str(run))
    events.Reload()
    return {
        name: [event.step for event in events.Scalars(name)]
        for name in ("train/expert_ratio", "eval/score_iqm")
    }


def test_what_came_later_is_moved_aside_and_the_run_is_as_if_it_had_not_been(
    run: Path, whole: Path, caplog: pytest.LogCaptureFixture
) -> None:
    resume(run / "checkpoints" / "step_480.pt", 720)
    aside = run / "abandoned" / "from_step_480"
    assert f"{run} goes back to decision 480" in caplog.text
    assert str(aside) in caplog.text
    assert {"step_720.pt", "step_960.pt", "replay_960.npz", "good.pt"} <= names(aside)
    assert names(run) >= {"step_240.pt", "step_480.pt", "step_720.pt", "replay_720.npz"}
    assert "step_960.pt" not in names(run)
    assert [row["steps"] for row in rows(run / "evaluations.csv")] == ["240", "480", "720"]
    # The same settings make the same run, but for its length.
    assert rows(run / "metrics.csv") == rows(whole / "metrics.csv")[:9]
    assert rows(aside / "metrics.csv") == rows(whole / "metrics.csv")
    curves = tensorboard(run)
    assert curves["train/expert_ratio"] == [80 * n for n in range(1, 10)]
    assert curves["eval/score_iqm"] == [240, 480, 720]
    assert tensorboard(aside) == tensorboard(whole)
    # Without a name the run goes on from what was written last.
    result = resume(run, 800)
    assert result["checkpoint"].endswith("step_800.pt")
    assert [row["steps"] for row in rows(run / "metrics.csv")][-1] == "800"


def test_the_branch_that_was_left_is_a_run_of_its_own(run: Path) -> None:
    resume(run / "checkpoints" / "step_480.pt", 496)
    aside = run / "abandoned" / "from_step_480"
    assert resume(aside, 1040)["steps"] == 1040
    assert "step_1040.pt" in names(aside)
    assert "step_496.pt" in names(run)


def test_going_back_twice_loses_neither_branch(run: Path) -> None:
    for steps in (720, 496):
        resume(run / "checkpoints" / "step_480.pt", steps)
    assert "step_960.pt" in names(run / "abandoned" / "from_step_480")
    assert "step_720.pt" in names(run / "abandoned" / "from_step_480-2")
    assert {"step_480.pt", "step_496.pt"} <= names(run)


def test_a_copy_of_a_checkpoint_is_a_place_to_go_back_to(run: Path) -> None:
    folder = run / "checkpoints"
    (folder / "step_480.pt").rename(folder / "mine.pt")
    finish(folder / "mine.pt")
    assert "step_480.pt" in names(run)
    assert "step_960.pt" not in names(run)
    assert resume(run, 496)["steps"] == 496


WRITES = ("replace", "rename", "mkdir", "fsync")


def tiny_run(run: Path) -> None:
    """All files that a run has, with next to nothing in them."""
    folder = run / "checkpoints"
    folder.mkdir(parents=True)
    record_start(run)
    write_config(run, {})
    log = MetricsLog(run)
    for step in (240, 480, 720, 960):
        write_checkpoint(folder / f"step_{step}.pt", {"step": step})
        log.write("train", step, {"loss": 1.0})
        log.write("eval", step, {"score_iqm": 1.0})
        GuardLog(run, step).write(Event(step, REMEDY, "a", "b", "c"))
    log.close()
    write_replay(folder / "replay_960.npz", "x", {})
    publish(folder / "step_480.pt", folder / "best.pt")
    publish(folder / "step_960.pt", folder / "good.pt")


def test_a_kill_at_any_point_of_going_back_changes_nothing_of_what_comes_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is killed before the first change of a file, the second, and so on until none is left."""
    run, before, expected = (tmp_path / name for name in ("run", "before", "expected"))
    tiny_run(before)
    shutil.copytree(before, expected)
    finish(expected / "checkpoints" / "step_480.pt")
    outcomes = set()
    for count in range(1, 1000):
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(before, run)
        with monkeypatch.context() as patch:
            killed = dies_at(patch, count)
            try:
                finish(run / "checkpoints" / "step_480.pt")
            except KeyboardInterrupt:
                assert killed
            else:
                break
        # What the dead process had in hand stays there, and the next start comes upon it.
        finish(run)
        newest = max(int(name[5:-3]) for name in names(run) if name.startswith("step_"))
        outcomes.add(newest)
        # Either nothing had happened yet, or all of it happens now.
        assert everything(run) == everything({480: expected, 960: before}[newest])
    assert count > 20
    assert outcomes == {480, 960}


def finish(path: Path) -> None:
    """What a resume does before it trains."""
    run = find_run(path)
    lock = RunLock(run)
    try:
        checkpoint = _prepared(run, path)
        assert checkpoint is not None
        going_back.go_back(run, checkpoint, int(read_checkpoint(checkpoint)["step"]))
    finally:
        lock.release()


def dies_at(patch: pytest.MonkeyPatch, count: int) -> list[int]:
    """Let the process end before its ``count``-th change of a file."""
    left, killed = [count], list[int]()

    def counting(change: Callable[..., Any]) -> Callable[..., Any]:
        def changed(*arguments: Any, **more: Any) -> Any:
            left[0] -= 1
            if left[0] <= 0:
                killed.append(count)
                raise KeyboardInterrupt
            return change(*arguments, **more)

        return changed

    def unlink(path: Any) -> None:
        if killed:  # The dead tidy nothing up.
            raise PermissionError
        os.remove(path)

    patch.setattr(os, "unlink", unlink)
    for name in WRITES:
        patch.setattr(os, name, counting(getattr(os, name)))
    return killed


def everything(run: Path) -> dict[str, bytes]:
    """All files below ``run`` but the lock."""
    return {
        str(path.relative_to(run)): path.read_bytes()
        for path in run.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


def test_a_damaged_newest_checkpoint_takes_what_came_after_with_it(run: Path, whole: Path) -> None:
    folder = run / "checkpoints"
    shutil.copy(whole.with_name("replays") / "replay_720.npz", folder)
    (folder / "step_960.pt").write_bytes(b"half")
    resume(run)
    assert (folder / "step_960.pt.bad").read_bytes() == b"half"
    (folder / "step_960.pt.bad").unlink()
    assert_same_run(run, whole)

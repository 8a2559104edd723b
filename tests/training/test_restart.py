"""Runs that ended before their first checkpoint, however early: ``--resume`` restarts them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
from click.testing import CliRunner
from short_runs import assert_same_run, names, new_run, resume, rows, settings

from tempest_agent.cli import cli
from tempest_agent.errors import UserError
from tempest_agent.runs.directory import find_run
from tempest_agent.runs.lock import RunLock
from tempest_agent.training import run_start, session
from tempest_agent.training.session import Session
from tempest_agent.training.trainer import Trainer


class KilledError(BaseException):
    """Ends a run as a kill does."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 480 decisions that nothing has ended."""
    run = tmp_path_factory.mktemp("whole") / "run"
    new_run(run, "run.steps=480")
    return run


def killed(run: Path, at: str, monkeypatch: pytest.MonkeyPatch, **more: Any) -> None:
    """Begin such a run in the folder ``run``, and leave it as a kill ``at`` some point does."""

    def die(*_: Any, **__: Any) -> NoReturn:
        raise KilledError

    with monkeypatch.context() as patch:
        # The dead do not tidy up.
        patch.setattr(run_start, "discard_run", lambda _: None)
        patch.setattr(run_start.RunLock, "discard", run_start.RunLock.release)
        if at != "playing":
            patch.setattr(run_start, at, die)
        try:
            session = Session.new(settings("run.steps=480"), run, 2, publishes=False, **more)
            play: Callable[[dict[str, float]], None] | None = session._trainer.loop.on_metrics
            assert play is not None

            def log_and_die(figures: dict[str, float]) -> None:
                play(figures)
                if figures["steps"] == 160:
                    raise KilledError

            session._trainer.loop.on_metrics = log_and_die
            with pytest.raises(KilledError):
                session.run()
        except KilledError:
            assert at != "playing"


@pytest.mark.parametrize("at", ["_trainer", "playing"])
def test_a_run_without_a_checkpoint_is_restarted_and_is_the_same(
    tmp_path: Path,
    whole: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    at: str,
) -> None:
    run = tmp_path / "run"
    killed(run, at, monkeypatch)
    assert (run / "metrics.csv").exists() == (at == "playing")
    with pytest.raises(UserError, match=f"holds another run: continue it with --resume {run}"):
        Session.new(settings(), run, 0, publishes=False)
    resume(run)
    assert f"{run} has no checkpoint: restarting it from its config.yaml" in caplog.text
    assert_same_run(run, whole, 480)


@pytest.mark.parametrize("at", ["claim_run", "record_start", "write_config"])
def test_a_folder_without_settings_can_be_used_again(
    tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    run = tmp_path / "run"
    killed(run, at, monkeypatch)
    result = CliRunner().invoke(cli, ["train", "--resume", str(run)])
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "nothing to resume from" in result.stderr or "not part of a run" in result.stderr
    new_run(run, "run.steps=480")
    assert_same_run(run, whole, 480)


@pytest.fixture(scope="module")
def started(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run like ``whole`` that took over its networks."""
    run = tmp_path_factory.mktemp("started") / "run"
    new_run(run, "run.steps=480", start=whole / "checkpoints" / "step_480.pt")
    return run


@pytest.mark.parametrize("at", ["write_config", "_trainer", "playing"])
def test_networks_of_another_run_are_taken_over_again(
    tmp_path: Path, whole: Path, started: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    start = tmp_path / "start.pt"
    shutil.copy(whole / "checkpoints" / "step_480.pt", start)
    run = tmp_path / "run"
    killed(run, at, monkeypatch, start=start)
    if at == "write_config":
        new_run(run, "run.steps=480", start=start)
    else:
        start.unlink()
        resume(run)
    assert_same_run(run, started, 480)
    assert "start.pt" in names(run)


def test_a_start_that_is_none_is_named_and_nothing_left(tmp_path: Path) -> None:
    for name in ("missing.pt", "text.pt"):
        (tmp_path / "text.pt").write_text("text")
        with pytest.raises(UserError, match=name):
            new_run(tmp_path / "run", start=tmp_path / name)
        assert not (tmp_path / "run").exists()


def test_the_length_may_change_and_is_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    killed(run, "_trainer", monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "run", no_ray)
        with pytest.raises(RuntimeError, match="no Ray"):
            resume(run, 320)
    assert resume(run)["steps"] == 320
    assert [row["steps"] for row in rows(run / "metrics.csv")] == ["80", "160", "240", "320"]


def no_ray(_: Trainer) -> NoReturn:
    raise RuntimeError("no Ray")


def test_the_newest_run_is_found_without_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    killed(Path("runs/one"), "_trainer", monkeypatch)
    assert find_run(None) == Path("runs/one")


def test_a_run_whose_checkpoints_are_all_damaged_is_not_restarted(
    tmp_path: Path, whole: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    for path in (run / "checkpoints").glob("step_*.pt"):
        path.write_bytes(b"half")
    before = (run / "metrics.csv").read_bytes()
    for _ in range(2):
        with pytest.raises(UserError, match="no usable checkpoint"):
            resume(run)
    assert (run / "metrics.csv").read_bytes() == before


def test_a_log_that_cannot_be_opened_leaves_the_run_unlocked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Path) -> NoReturn:
        raise OSError("no space left")

    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(session, "MetricsLog", full)
        with pytest.raises(OSError, match="no space left"):
            new_run(run)
    RunLock(run).release()

"""One process at a time works on a run."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tempest_agent.errors import UserError
from tempest_agent.runs import lock as run_lock
from tempest_agent.runs.lock import RunLock

HOLDER = """
import sys, time
from pathlib import Path
from tempest_agent.runs.lock import RunLock
lock = RunLock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(600)
"""


def test_a_run_is_locked_until_its_holder_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        try:
            assert holder.stdout.readline() == "held\n"
            for _ in range(2):  # A refused lock takes nothing from the holder.
                with pytest.raises(UserError, match=f"trained by process {holder.pid}: stop") as e:
                    RunLock(tmp_path)
                assert str(tmp_path) in str(e.value)
        finally:
            holder.kill()
    RunLock(tmp_path).release()


def test_a_child_does_not_keep_the_lock(tmp_path: Path) -> None:
    lock = RunLock(tmp_path)
    with subprocess.Popen(["sleep", "600"]) as child:
        lock.release()
        lock.release()
        RunLock(tmp_path).release()
        child.kill()


def test_a_lock_excludes_others_of_the_same_process(tmp_path: Path) -> None:
    lock = RunLock(tmp_path)
    with pytest.raises(UserError, match=f"process {os.getpid()}"):
        RunLock(tmp_path)
    lock.discard()
    assert list(tmp_path.iterdir()) == []


def test_without_locks_there_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def unsupported(_file: int, _how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    RunLock(tmp_path).release()
    assert "cannot be locked (No locks available): start it only once" in caplog.text


def test_a_lock_that_cannot_be_written_names_its_file_and_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_file: int, _text: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(run_lock.os, "write", full)
    with pytest.raises(OSError, match="No space") as caught:
        RunLock(tmp_path)
    assert caught.value.filename == str(tmp_path / run_lock.LOCK_FILE)
    assert list(tmp_path.iterdir()) == []


def test_a_lock_knows_whether_its_folder_is_still_there(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    lock = RunLock(run)
    (run / run_lock.LOCK_FILE).unlink()
    assert lock.is_in_place
    run.rename(tmp_path / "moved")
    assert not lock.is_in_place
    run.mkdir()
    assert not lock.is_in_place
    lock.release()

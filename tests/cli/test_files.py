"""Files of a run: replaced as a whole or not at all, and logs that can be resumed."""

from __future__ import annotations

import csv
import errno
import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from tempest_agent.errors import UserError
from tempest_agent.files.atomic_files import publish, remove_leftovers, replacing
from tempest_agent.files.own_files import require_writable
from tempest_agent.runs import provenance
from tempest_agent.runs.directory import HOUR, create_run, discard_run, find_run
from tempest_agent.runs.file_names import (
    CHECKPOINT_FILES,
    CHECKPOINT_FOLDER,
    LATEST_FILES,
    LOCK_FILE,
    RUN_FILES,
)
from tempest_agent.runs.metrics_log import CsvLog
from tempest_agent.runs.provenance import git_commit, record_start


def table(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("old")
    with replacing(target) as file:
        file.write(b"new")
        file.flush()
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("old")

    def write_until_the_disk_is_full() -> None:
        with replacing(target) as file:
            file.write(b"half")
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space") as caught:
        write_until_the_disk_is_full()
    assert caught.value.filename == str(target)
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_publish_makes_the_folder_and_copies(tmp_path: Path) -> None:
    source = tmp_path / "step_1.pt"
    source.write_bytes(b"weights")
    publish(source, tmp_path / "checkpoints" / "latest.pt")
    assert (tmp_path / "checkpoints" / "latest.pt").read_bytes() == b"weights"


def test_the_run_to_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    runs = [create_run("name", seed) for seed in (1, 2)]
    for run in runs:
        record_start(run)
        (run / "checkpoints" / "step_3.pt").touch()
    assert find_run(None) == runs[1]
    record_start(runs[0], resumed_at=7)
    assert find_run(None) == runs[0]
    assert find_run(runs[1]) == runs[1]
    checkpoint = runs[1] / "checkpoints" / "step_3.pt"
    assert find_run(checkpoint) == runs[1]
    starts = json.loads((runs[0] / "run.json").read_text())["starts"]
    assert [start["resumed_at_step"] for start in starts] == [None, 7]


def test_runs_without_a_checkpoint_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="no run in"):
        find_run(None)
    runs = [create_run("name", seed) for seed in (1, 2)]
    for run in runs:
        record_start(run)
    with pytest.raises(UserError, match="no run with a checkpoint in"):
        find_run(None)
    assert caplog.text == ""
    (runs[0] / "checkpoints" / "step_3.pt").touch()
    assert find_run(None) == runs[0]
    assert f"{runs[1]} has no checkpoint: continuing with {runs[0]}" in caplog.text


@pytest.mark.parametrize("text", ["{", "", "[1]", '{"starts": 3}', "\udcff"])
def test_a_damaged_list_of_starts_is_set_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    damaged = text.encode(errors="surrogateescape")
    (tmp_path / "run.json").write_bytes(damaged)
    record_start(tmp_path, resumed_at=7)
    starts = json.loads((tmp_path / "run.json").read_text())["starts"]
    assert [start["resumed_at_step"] for start in starts] == [7]
    assert (tmp_path / "run.json.bad").read_bytes() == damaged
    assert "run.json is damaged; renamed to run.json.bad" in caplog.text


def test_what_a_kill_leaves_is_removed_and_nothing_else(tmp_path: Path) -> None:
    for name in ("step_5.pt", "replay_5.npz", "run.json", "latest.pt"):
        with replacing(tmp_path / name):
            [left] = list(tmp_path.glob(f".{name}.*"))
            os.link(left, tmp_path / "kept")
        (tmp_path / name).unlink()
        (tmp_path / "kept").rename(left)
    others = {
        "step_5.pt",
        ".step_5.pt",
        ".notes.settings",
        "run.json",
        ".lock",
        ".step_x.pt.abcdefgh",
    }
    for name in others:
        (tmp_path / name).touch()
    remove_leftovers(tmp_path, CHECKPOINT_FILES)
    remove_leftovers(tmp_path, RUN_FILES)
    names = {path.name for path in tmp_path.iterdir()}
    [latest] = names - others
    assert latest.startswith(".latest.pt.")
    remove_leftovers(tmp_path, LATEST_FILES, HOUR)
    assert (tmp_path / latest).exists()  # Perhaps of a run that goes on at this moment.
    before = time.time() - HOUR - 1
    os.utime(tmp_path / latest, (before, before))
    remove_leftovers(tmp_path, LATEST_FILES, HOUR)
    assert {path.name for path in tmp_path.iterdir()} == others
    remove_leftovers(tmp_path / "missing", LATEST_FILES)


def test_a_run_that_could_not_begin_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = create_run("name", 1)
    discard_run(run)
    assert not run.exists()
    kept = create_run("name", 1)
    (kept / "file").touch()
    discard_run(kept)
    assert (kept / "file").exists()


def test_the_folder_of_a_run_that_was_killed_as_it_began_can_be_used_again(tmp_path: Path) -> None:
    run = create_run("name", 1, tmp_path / "mine")
    (run / LOCK_FILE).write_text("123")
    assert create_run("name", 1, run) == run
    (run / CHECKPOINT_FOLDER / "step_1.pt").touch()
    with pytest.raises(UserError, match="is not empty"):
        create_run("name", 1, run)


def test_a_folder_that_cannot_be_written_is_the_users_mistake(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot write to"):
        require_writable(tmp_path / "file" / "inside")


def test_the_commit_is_that_of_this_program_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "provenance.py"
    source.write_text("# installed here\n")
    monkeypatch.setattr(provenance, "__file__", str(source))
    assert git_commit() is None  # No repository at all.

    def git(*arguments: str) -> str:
        names = ("-c", "user.name=n", "-c", "user.email=e")
        command = ["git", "-C", str(tmp_path), *names, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "somebody else's work")
    assert git_commit() is None  # Installed inside a repository that does not know it.
    git("add", source.name)
    git("commit", "-q", "-m", "the program")
    assert git_commit() == git("rev-parse", "HEAD")
    source.write_text("# changed\n")
    assert git_commit() == git("rev-parse", "HEAD") + "-dirty"


def test_new_columns_may_appear_at_any_time(tmp_path: Path) -> None:
    log = CsvLog(tmp_path / "log.csv")
    log.write(10, {"steps": 10.0, "loss": 0.5})
    log.write(20, {"loss": 0.25, "score": 1e6})
    log.write(30, {"score": 3.0})
    assert table(tmp_path / "log.csv") == [
        ["steps", "loss", "score"],
        ["10", "0.5", ""],
        ["20", "0.25", "1000000"],
        ["30", "", "3"],
    ]


def test_a_resumed_log_drops_what_will_be_logged_again(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    log = CsvLog(path)
    for steps in (10, 20, 30):
        log.write(steps, {"loss": steps / 10})
    resumed = CsvLog(path, resumed_at=20)
    assert table(path) == [["steps", "loss"], ["10", "1"], ["20", "2"]]
    resumed.write(30, {"loss": 4.0, "score": 5.0})
    assert table(path)[-1] == ["30", "4", "5"]
    assert table(path)[1] == ["10", "1", ""]


DAMAGED = {
    "no heading": b"10,1\n20,2\n",
    "no number": b"steps,loss\n10,1\n2x,2\n",
    "no figure": b"steps,loss\n10,1\n20,2?\n",
    "a cell too few": b"steps,loss\n10\n20,2\n",
    "a cell too many": b"steps,loss\n10,1,1\n",
    "zeros": bytes(64),
    "no text": b"steps,loss\n10,\xff\n",
    "open quotes": b'steps,loss\n10,"1\n',
    "empty": b"",
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_damaged_log_is_set_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(DAMAGED[kind])
    CsvLog(path, resumed_at=20).write(30, {"loss": 3.0})
    assert table(path) == [["steps", "loss"], ["30", "3"]]
    assert (tmp_path / "log.csv.bad").read_bytes() == DAMAGED[kind]
    assert "log.csv is damaged; renamed to log.csv.bad" in caplog.text


def test_half_a_line_at_the_end_of_a_log_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    log = CsvLog(path)
    log.write(10, {"loss": 1.0})
    with path.open("a") as file:
        file.write("1")  # Of 100,2.5
    CsvLog(path, resumed_at=20).write(30, {"loss": 3.0})
    assert table(path) == [["steps", "loss"], ["10", "1"], ["30", "3"]]
    assert [file.name for file in tmp_path.iterdir()] == ["log.csv"]


def test_a_folder_whose_name_is_no_text_is_refused(tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"r\xff")
    with pytest.raises(UserError, match="no name in UTF-8"):
        create_run("tempest", 1, odd)
    assert not odd.exists()

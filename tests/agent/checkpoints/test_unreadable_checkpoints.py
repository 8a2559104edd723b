"""Only wrong bytes are damage: what the machine cannot read now stays as it is, and is named."""

from __future__ import annotations

import errno
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from fake_games import SMALL, FakeGames, FakeTeacher

from tempest_agent.agent.checkpoints.checkpoint_files import (
    DamagedCheckpointError,
    newest_checkpoint,
    read_checkpoint,
    read_replay,
    take_back,
    write_checkpoint,
    write_replay,
)
from tempest_agent.agent.checkpoints.run_checkpoints import read_good
from tempest_agent.cli import cli
from tempest_agent.config import load_config
from tempest_agent.errors import UserError
from tempest_agent.files.atomic_files import set_aside
from tempest_agent.files.system_errors import machine_failure
from tempest_agent.runs.provenance import record_start
from tempest_agent.training.trainer import Trainer


def failing(error: Exception) -> Callable[..., NoReturn]:
    def fail(*_arguments: Any, **_more: Any) -> NoReturn:
        raise error

    return fail


TORCH = "[enforce fail at alloc_cpu.cpp:118] DefaultCPUAllocator: can't allocate memory"
FAILURES = {
    "memory": MemoryError(),
    "memory of torch": RuntimeError(TORCH),
    "ENOMEM": OSError(errno.ENOMEM, "Cannot allocate memory"),
    "EIO": OSError(errno.EIO, "Input/output error"),
    "EMFILE": OSError(errno.EMFILE, "Too many open files"),
    "EACCES": PermissionError(errno.EACCES, "Permission denied"),
    "ESTALE": OSError(errno.ESTALE, "Stale file handle"),
}
PLACES = {
    "torch": (torch, "load"),
    "checksums": (zipfile.ZipFile, "testzip"),
    "contents": (zipfile.ZipFile, "_RealGetContents"),
    "open": (Path, "open"),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", FAILURES)
def test_no_checkpoint_is_renamed_for_what_the_machine_cannot_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, place: str
) -> None:
    folder = tmp_path / "run" / "checkpoints"
    folder.mkdir(parents=True)
    record_start(tmp_path / "run")
    for step in (1, 2, 3):
        write_checkpoint(folder / f"step_{step}.pt", {"numbers": torch.arange(500)})
    (folder / "step_3.pt").write_bytes(b"half a file")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    with monkeypatch.context() as patch:
        patch.setattr(*PLACES[place], failing(FAILURES[kind]))
        result = CliRunner().invoke(cli, ["train", "--resume", str(tmp_path / "run")])
    assert result.exit_code == 2, result.output
    assert result.stderr.count("\n") == 1
    words = "not enough memory" if "emory" in str(FAILURES[kind]) + kind else str(FAILURES[kind])
    assert words.rpartition("] ")[2] in result.stderr
    assert "step_" in result.stderr
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    assert newest_checkpoint(folder).name == "step_2.pt"


def test_a_disk_that_cannot_be_read_is_not_a_damaged_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python's own code takes errors of the disk for another kind of file."""
    path = tmp_path / "step_1.pt"
    write_checkpoint(path, {"numbers": torch.arange(500)})
    with monkeypatch.context() as patch:
        patch.setattr(zipfile, "_EndRecData", failing(FAILURES["EIO"]))
        with pytest.raises(UserError) as caught:
            read_checkpoint(path)
    assert not isinstance(caught.value, DamagedCheckpointError)
    assert "Input/output error; it is left as it is" in str(caught.value)


def test_a_file_of_other_bytes_is_not_the_machines_fault() -> None:
    assert machine_failure(OSError("cannot identify file")) is None
    assert machine_failure(OSError(errno.EINVAL, "Invalid argument")) is None
    assert machine_failure(ValueError("no text")) is None
    assert machine_failure(RecursionError("too deep")) is None


def test_a_whole_checkpoint_that_was_set_aside_is_found_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for step in (1, 2, 3, 4):
        write_checkpoint(tmp_path / f"step_{step}.pt", {"numbers": torch.arange(500) + step})
    whole = (tmp_path / "step_2.pt").read_bytes()
    (tmp_path / "step_3.pt").write_bytes(whole[:-9])
    for step in (1, 2, 3, 4):
        set_aside(tmp_path / f"step_{step}.pt")
    write_checkpoint(tmp_path / "step_1.pt", {"numbers": torch.arange(5)})
    take_back(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "step_1.pt", "step_1.pt.bad", "step_2.pt", "step_3.pt.bad", "step_4.pt",
    }  # fmt: skip
    assert (tmp_path / "step_2.pt").read_bytes() == whole
    assert "step_2.pt.bad is whole: it is step_2.pt again" in caplog.text
    assert len(caplog.records) == 2
    assert newest_checkpoint(tmp_path).name == "step_4.pt"


@pytest.mark.parametrize("kind", FAILURES)
def test_a_replay_that_cannot_be_read_is_not_a_missing_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    path = tmp_path / "replay_1.npz"
    largest = {"rows": 1000}
    write_replay(path, "stamp", {"rows": np.arange(50)})
    with monkeypatch.context() as patch:
        patch.setattr(np.lib.format, "read_magic", failing(FAILURES[kind]))
        with pytest.raises(UserError, match=r"cannot read .*replay_1\.npz"):
            read_replay(path, "stamp", largest)
    assert read_replay(path, "stamp", largest) is not None
    assert read_replay(tmp_path / "replay_2.npz", "stamp", largest) is None


def test_a_wrong_byte_that_asks_for_much_memory_is_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "replay_1.npz"
    write_replay(path, "stamp", {"rows": np.arange(50)})
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"'shape': (50,)", b"'shape': (51,)"))
    assert read_replay(path, "stamp", {"rows": 1000}) is None
    monkeypatch.setattr(np.lib.format, "read_magic", failing(MemoryError()))
    assert read_replay(path, "stamp", {"rows": 1000}) is None


def test_a_rollback_says_what_it_could_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_checkpoint(tmp_path / "good.pt", {"step": 5})
    (tmp_path / "step_5.pt").write_bytes(b"half a file")
    with monkeypatch.context() as patch:
        patch.setattr(torch, "load", failing(MemoryError()))
        with pytest.raises(UserError, match=r"good\.pt: not enough memory"):
            read_good(tmp_path, 5)
    found = read_good(tmp_path, 5)
    assert found is not None
    assert found["step"] == 5
    (tmp_path / "good.pt").unlink()
    assert read_good(tmp_path, 5) is None


def test_memory_that_ends_while_a_run_is_put_together_is_not_another_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = load_config(None, [*SMALL, "run.steps=400"])
    games = FakeGames(config.run.num_envs, 0)
    Trainer(config, tmp_path, games=games, teacher=FakeTeacher()).run()

    def many(_config: Any) -> NoReturn:
        raise RuntimeError(TORCH)

    with pytest.raises(RuntimeError, match="can't allocate memory"):
        Trainer.resume(tmp_path, games=many, teacher=FakeTeacher())


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.EIO, "Input/output error", "run/x"), "cannot use run/x: Input/output error"),
        (OSError(errno.EMFILE, "Too many open files"), "Too many open files"),
        (FileNotFoundError(errno.ENOENT, "No such file", "run/x"), "cannot use run/x: No such"),
        (OSError(errno.ENOTCONN, "Transport endpoint is not connected", "x"), "cannot use x"),
        (OSError(errno.ENOSPC, "No space left", "run/x"), "cannot write run/x: No space left"),
        (RuntimeError(TORCH), "not enough memory"),
    ],
)
def test_errors_of_the_machine_are_one_line(
    monkeypatch: pytest.MonkeyPatch, error: Exception, words: str
) -> None:
    monkeypatch.setattr("tempest_agent.commands.diagnose.diagnose.callback", failing(error))
    result = CliRunner().invoke(cli, ["diagnose", os.curdir])
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stderr.count("\n") == 1

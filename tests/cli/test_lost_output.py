"""Runs whose output nobody reads any more are saved and ended, and can be resumed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tempest_agent.agent.checkpoints.checkpoint_files import newest_checkpoint

PROGRAM = """
import atexit, pathlib, sys
atexit.register(lambda: pathlib.Path("modules").write_text(" ".join(sys.modules)))
from tempest_agent.cli import main
main()
"""
"""The command line, which leaves the names of the modules that it has imported."""

TRAIN = [sys.executable, "-c", PROGRAM, "train", "--config", "smoke", "--eval-games", "0"]
LONG = ["--run-dir", "one", "--set", "run.steps=10_000_000", "--set", "run.log_interval=200"]
LONG += ["--set", "replay.learning_starts=100"]


@contextmanager
def training(folder: Path, **streams: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A run of many hours in ``folder``/one, which does not outlive the test."""
    run = subprocess.Popen([*TRAIN, *LONG], cwd=folder, **streams)
    try:
        yield run
    finally:
        run.kill()
        run.wait()


def wait_until_it_learns(output: int) -> None:
    with open(output, encoding="utf-8", closefd=False) as text:
        assert any("updates/s" in line for line in text)


def test_a_pipe_that_is_closed(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    with training(tmp_path, stdout=writing, stderr=writing) as run:
        os.close(writing)
        wait_until_it_learns(reading)
        os.close(reading)
        assert run.wait(250) == 130
    assert newest_checkpoint(tmp_path / "one" / "checkpoints").is_file()
    # It has learned without torch's compiler, which takes 2 s to import.
    modules = (tmp_path / "modules").read_text().split()
    assert "torch" in modules
    assert "torch._dynamo" not in modules


def test_a_terminal_that_is_closed(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    with training(tmp_path, stdin=theirs, stdout=theirs, stderr=theirs) as run:
        os.close(theirs)
        wait_until_it_learns(ours)
        os.close(ours)
        run.send_signal(signal.SIGHUP)
        assert run.wait(250) == 130
    assert newest_checkpoint(tmp_path / "one" / "checkpoints").is_file()


@pytest.mark.parametrize("arguments", ["nosuch 2>/dev/full", "--help >/dev/full"])
def test_the_exit_code_is_told_where_no_word_can_be(arguments: str) -> None:
    command = f"{sys.executable} -m tempest_agent {arguments}"
    done = subprocess.run(["bash", "-c", command], capture_output=True)
    assert done.returncode == 2, done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["eval", "--help"],
        ["eval", "random", "--episodes", "2", "--max-ticks", "9", "--json"],
        ["eval", "random", "--episodes", "2", "--max-ticks", "9"],
        ["play", "random", "--max-ticks", "9"],
    ],
)
def test_a_reader_that_has_gone_ends_a_command_quietly(arguments: list[str]) -> None:
    """As it ends other programs: the code is that of a process which SIGPIPE ended."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "tempest_agent", *arguments]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert done.returncode == 141
    assert b"Traceback" not in done.stderr
    assert b"BrokenPipe" not in done.stderr


def test_nobody_reads_the_progress(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "tempest_agent", "eval", "random", "--episodes", "1"]
    done = subprocess.run([*command, "--max-ticks", "9"], stdout=subprocess.PIPE, stderr=writing)
    os.close(writing)
    assert done.returncode == 141

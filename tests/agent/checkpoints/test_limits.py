"""Writers of files that are killed, and files where the disk or the memory is short.

All in one process, whose start takes longer than all else.
"""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import IO

import numpy as np
import pytest
import torch
from places import DATA

from tempest_agent.agent.checkpoints.checkpoint_files import read_checkpoint

RECORDING = DATA / "recordings" / "level01_random_101.npz"

DELAYS = (0.0, 0.002, 0.004, 0.007)
"""Seconds after which writers are killed."""

PROGRAM = """
import os, resource, signal, sys, time, torch
from pathlib import Path
from tempest_agent.agent.checkpoints.checkpoint_files import (
    read_checkpoint, read_replay, write_checkpoint,
)
from tempest_agent.envs.recordings.recording import load_recording
from tempest_agent.errors import UserError

torch.set_num_threads(1)
for number, delay in enumerate(map(float, sys.argv[1:])):
    reading, writing = os.pipe()
    path, step = Path("killed", f"step_{number}.pt"), 0
    writer = os.fork()
    while writer == 0:
        write_checkpoint(path, {"step": step, "big": torch.full((100_000,), float(step))})
        os.write(writing, b".")
        step += 1
    for _ in range(3):
        os.read(reading, 1)
    time.sleep(delay)
    os.kill(writer, signal.SIGKILL)
    os.waitpid(writer, 0)

used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**25, used + 2**25))
for read, path in (
    (read_checkpoint, "packed.pt"),
    (lambda path: read_replay(path, "stamp", {"codes": 10_000}), "replay.npz"),
    (load_recording, "trace.npz"),
):
    try:
        read(Path(path))
    except (UserError, ValueError) as error:
        print(error)

resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    write_checkpoint(Path("full", "step_1.pt"), {"weights": torch.zeros(20_000)})
except UserError as error:
    print(error)
"""
"""Forks writers of checkpoints, each killed a while after its third one; then it reads with 32 MB
of memory, and writes what is too large."""


def zeros(entry: IO[bytes], size: int) -> None:
    for _ in range(size // 2**20):
        entry.write(bytes(2**20))


def write_large_files(folder: Path, size: int) -> None:
    """Small ones that unpack to ``size`` bytes: a checkpoint and rows; a recording to 256 MB."""
    torch.save({"format": "tempest-agent checkpoint", "x": torch.zeros(size // 4)}, folder / "x.pt")
    with (
        zipfile.ZipFile(folder / "x.pt") as stored,
        zipfile.ZipFile(folder / "packed.pt", "w", zipfile.ZIP_DEFLATED) as packed,
    ):
        for name in stored.namelist():
            with stored.open(name) as source, packed.open(name, "w", force_zip64=True) as entry:
                while piece := source.read(2**20):
                    entry.write(piece)
    with (
        zipfile.ZipFile(folder / "replay.npz", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("codes.npy", "w", force_zip64=True) as entry,
    ):
        zeros(entry, size)
    ram = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        ram, {"descr": "|u1", "fortran_order": False, "shape": (2**17, 2048)}
    )
    with (
        zipfile.ZipFile(RECORDING) as whole,
        zipfile.ZipFile(folder / "trace.npz", "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name in whole.namelist():
            if name != "ram.npy":
                archive.writestr(name, whole.read(name))
        with archive.open("ram.npy", "w", force_zip64=True) as entry:
            entry.write(ram.getvalue())
            zeros(entry, 2**28)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("limits")
    for name in ("killed", "full"):
        (folder / name).mkdir()
    write_large_files(folder, 2**26)
    return folder


@pytest.fixture(scope="module")
def words(folder: Path) -> list[str]:
    """What the process said about the three files that it read, and the one that it wrote."""
    command = [sys.executable, "-c", PROGRAM, *map(str, DELAYS)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=280)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.usefixtures("words")
def test_a_kill_while_writing_leaves_a_whole_file(folder: Path) -> None:
    for number in range(len(DELAYS)):
        content = read_checkpoint(folder / "killed" / f"step_{number}.pt")
        assert torch.equal(content["big"], torch.full((100_000,), float(content["step"])))


def test_what_does_not_fit_says_why_and_leaves_nothing(folder: Path, words: list[str]) -> None:
    assert "step_1.pt: File too large; free some space" in words[-1]
    assert list((folder / "full").iterdir()) == []


def test_a_small_file_does_not_take_a_large_memory(folder: Path, words: list[str]) -> None:
    """What is left to them is 32 MB; the files unpack to 64 MB, the recording to 256 MB."""
    names = ("packed.pt", "replay.npz", "trace.npz")
    assert all((folder / name).stat().st_size < 1_000_000 for name in names)
    checkpoint, replay, recording = words[:-1]
    assert "compressed in a way that is not read" in checkpoint
    assert "such a file needs at most" in replay
    assert "such a file needs at most" in recording

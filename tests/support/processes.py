"""Processes of this machine, as tests look at them through ``/proc``."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

GONE = (FileNotFoundError, ProcessLookupError, PermissionError)
"""What reading about a process raises that has ended, or is about to."""


class Process(NamedTuple):
    """One process; ``started`` tells it from a later one that gets its number."""

    pid: int
    started: int

    def read(self, name: str) -> str:
        """A file about it, ``cmdline`` or ``maps`` say; empty if it has ended."""
        try:
            return Path(f"/proc/{self.pid}/{name}").read_text(errors="replace")
        except GONE:
            return ""

    @property
    def alive(self) -> bool:
        """Whether it runs; one that has ended and was not waited for does not."""
        found = _stat(self.pid)
        return found is not None and found[0] != "Z" and int(found[19]) == self.started

    def variable(self, name: str) -> str:
        """One of the variables that it was started with; empty if there is none."""
        entries = self.read("environ").split("\0")
        return next((each.partition("=")[2] for each in entries if each.startswith(f"{name}=")), "")


def _stat(pid: int) -> list[str] | None:
    """State, parent, and the other fields of ``/proc/PID/stat`` after the name."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except GONE:
        return None


def process(pid: int) -> Process:
    """The process that has this number now; one that has ended for a number that nobody has."""
    found = _stat(pid)
    return Process(pid, -1 if found is None else int(found[19]))


def below(pid: int) -> list[Process]:
    """All processes that this one started, and those that they did."""
    parents, all_of_them = {}, {}
    for entry in Path("/proc").iterdir():
        found = _stat(int(entry.name)) if entry.name.isdigit() else None
        if found is not None:
            parents[int(entry.name)] = int(found[1])
            all_of_them[int(entry.name)] = Process(int(entry.name), int(found[19]))
    family = [pid]
    for one in family:
        family += [child for child, parent in parents.items() if parent == one]
    return [all_of_them[one] for one in family[1:]]


def listening(processes: Iterable[Process]) -> set[str]:
    """The addresses at which they wait for connections over TCP."""
    theirs = set()
    for each in processes:
        try:
            files = list(Path(f"/proc/{each.pid}/fd").iterdir())
            theirs |= {os.readlink(file) for file in files}
        except GONE:
            continue
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            _, local, _, state, *others = line.split()
            if state == "0A" and f"socket:[{others[5]}]" in theirs:
                words = bytes.fromhex(local.partition(":")[0])
                # Words of four bytes, in the order of this machine.
                turned = b"".join(words[at : at + 4][::-1] for at in range(0, len(words), 4))
                address = ip_address(turned)
                found.add(str(getattr(address, "ipv4_mapped", None) or address))
    return found


def shared_memory(one: Process) -> set[str]:
    """The files of shared memory that it holds."""
    found = (line.split(maxsplit=5) for line in one.read("maps").splitlines())
    return {parts[5] for parts in found if parts[5:] and "/dev/shm" in parts[5]}


def kill(processes: Iterable[Process]) -> None:
    """End those that still run."""
    for each in processes:
        if each.alive:
            os.kill(each.pid, signal.SIGKILL)


def eventually(holds: Callable[[], bool], seconds: float = 200.0) -> None:
    """Wait until ``holds()``; it fails after a time that no busy machine needs."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.02)

"""Run the processes of a sweep: here on this machine, a few at a time (see ``ray_executor``).

An executor knows nothing about training: a ``Task`` gives it one command after the other, depending
on the files that earlier commands have written.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Protocol

from tempest_agent.files.own_files import open_own
from tempest_agent.sweep.parent_watch import release, watch_over

POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Command:
    """One process.

    Its stdout becomes the file ``output`` when the process has ended with exit code 0.  Its stderr
    is appended to ``log``; it runs in ``folder``.  It uses ``cpus`` and the ``device`` (``auto``,
    ``cpu`` or ``cuda``).
    """

    arguments: tuple[str, ...]
    output: Path
    log: Path
    folder: Path
    cpus: int = 1
    device: str = "cpu"


class Task(Protocol):
    """Commands to run one after the other."""

    @property
    def name(self) -> str:
        """Its name in messages."""

    def next_command(self) -> Command | None:
        """Return the command to run next, given the files on disk; None when all are done."""


class Executor(Protocol):
    """Runs tasks side by side."""

    def run(
        self, tasks: Sequence[Task], watch: Callable[[], None], failed: Callable[[Task, int], None]
    ) -> None:
        """Run every task to its end.

        ``watch`` is called periodically.  A task whose command fails is given up, and ``failed``
        called with its exit code; the others continue.

        Raises:
            KeyboardInterrupt: on SIGINT or SIGTERM; no process is left.
        """


@dataclass
class _Running:
    task: Task
    command: Command
    process: subprocess.Popen[bytes]
    watcher: subprocess.Popen[bytes]


class LocalProcesses:
    """Processes of this machine, ``jobs`` of them at a time."""

    def __init__(self, jobs: int = 1) -> None:
        self._jobs = jobs

    def run(
        self, tasks: Sequence[Task], watch: Callable[[], None], failed: Callable[[Task, int], None]
    ) -> None:
        """See ``Executor``.  A signal asks the processes to save and end; a second one kills."""
        waiting, running = deque(tasks), list[_Running]()
        with signals_seen() as signals:
            try:
                while (waiting or running) and not signals:
                    while waiting and len(running) < self._jobs:
                        running += _started(waiting.popleft())
                    time.sleep(POLL_SECONDS if running else 0.0)
                    for each in [one for one in running if one.process.poll() is not None]:
                        running.remove(each)
                        code = _collected(each)
                        if code == 0:
                            running += _started(each.task)
                        elif not signals:
                            failed(each.task, code)
                    watch()
            finally:
                _end(running, signals)
            if signals:
                raise KeyboardInterrupt


def _started(task: Task) -> list[_Running]:
    """Start the next command of ``task``; return nothing if there is none."""
    command = task.next_command()
    if command is None:
        return []
    process = start_process(command)
    try:
        # If this process is killed, the run saves and ends as after Ctrl-C.
        watcher = watch_over(process, signal.SIGTERM)
    except BaseException:
        process.terminate()
        raise
    return [_Running(task, command, process, watcher)]


def _collected(running: _Running) -> int:
    release(running.watcher)
    return collected(running.process, running.command)


def start_process(command: Command) -> subprocess.Popen[bytes]:
    """Start the process of ``command``, in its own session.

    Raises:
        UserError: a link is in the place of one of its files.
    """
    with (
        open(part_of(command), "wb", opener=open_own) as output,
        open(command.log, "ab", opener=open_own) as log,
    ):
        return subprocess.Popen(
            command.arguments,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=log,
            cwd=command.folder,
            # A terminal's Ctrl-C is for the sweep, which passes it on.
            start_new_session=True,
        )


def collected(process: subprocess.Popen[bytes], command: Command) -> int:
    """Keep the output of an ended process, or remove it if it failed; return the exit code."""
    code = process.wait()
    if code == 0:
        os.replace(part_of(command), command.output)
    else:
        part_of(command).unlink(missing_ok=True)
    return code


def part_of(command: Command) -> Path:
    """Return where the output is written until it is complete."""
    return command.output.with_name(f"{command.output.name}.part")


def _end(running: Sequence[_Running], signals: Sequence[int]) -> None:
    """Ask the processes to end and wait for them; kill them at the second signal."""
    for each in running:
        each.process.terminate()
    for each in running:
        while each.process.poll() is None:
            if len(signals) > 1:
                each.process.kill()
            with suppress(subprocess.TimeoutExpired):
                each.process.wait(POLL_SECONDS)
    for each in running:  # Last: it raises if the files are gone.
        _collected(each)


@contextmanager
def signals_seen() -> Iterator[list[int]]:
    """Collect SIGINT and SIGTERM in a list instead of handling them."""
    seen: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        seen.append(number)

    with _handled_by(note):
        yield seen


def signals_interrupt() -> AbstractContextManager[None]:
    """Let SIGINT and SIGTERM raise KeyboardInterrupt."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    return _handled_by(interrupt)


@contextmanager
def _handled_by(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)

"""What a Ray worker does with a command of a sweep."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tempest_agent.sweep.executor import POLL_SECONDS, Command, collected, start_process
from tempest_agent.sweep.parent_watch import release, watch_over

KILLED = -signal.SIGKILL


@dataclass(frozen=True)
class Sight:
    """What a worker must know of the driver: a file that both must see, and its Python."""

    file: Path
    python: str


@dataclass(frozen=True)
class Outcome:
    """How a command ended: its exit code, or the machine that does not share the folder."""

    code: int
    blind: str = ""


def carry_out(command: Command, sight: Sight) -> Outcome:
    """Run ``command`` to its end, or until the task is cancelled."""
    if not sight.file.exists():
        return Outcome(KILLED, f"the machine {socket.gethostname()}")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # Shells start background jobs with it ignored, and Ray cancels a task through it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    python, *arguments = command.arguments
    if python == sight.python:  # Its path may differ on this machine.
        command = replace(command, arguments=(sys.executable, *arguments))
    process = start_process(command)
    watcher: subprocess.Popen[bytes] | None = None
    stopped = False
    while process.poll() is None:
        try:
            # Ray ends the children of a worker, but not of one that is killed; SIGKILL because
            # the task is then submitted to another worker.
            watcher = watcher or watch_over(process, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                process.wait(POLL_SECONDS)
        except KeyboardInterrupt:  # How Ray cancels a task.
            stopped = True
            process.terminate()
    if watcher is not None:
        release(watcher)
    code = collected(process, command)
    if stopped:
        raise KeyboardInterrupt
    return Outcome(code)

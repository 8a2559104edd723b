"""Runs a command that ends when whoever asked for it ends, however that happens.

``python -m tempest_agent.sweep.leash COMMAND...`` with a pipe as stdin: when the other end of the
pipe is closed, as the system does for a process that is killed, the command is killed.  SIGTERM and
SIGINT are passed on.  The exit code is the command's, or 128 and the number of the signal.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from types import FrameType

OF_SIGNALS = 128
KILLED = OF_SIGNALS + signal.SIGKILL


def hold(arguments: Sequence[str]) -> int:
    """Run the command ``arguments`` for as long as stdin is open; its exit code."""
    stops: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        stops.append(number)
        if started:
            started[0].terminate()

    started: list[subprocess.Popen[bytes]] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, note)
    started.append(subprocess.Popen(arguments, stdin=subprocess.DEVNULL))
    if stops:  # It came before there was a process to pass it to.
        started[0].terminate()

    def watch() -> None:
        # Not through ``sys.stdin``, whose lock this thread would still hold at the end.
        while os.read(0, 1024):
            continue
        started[0].kill()

    threading.Thread(target=watch, daemon=True).start()
    code = started[0].wait()
    return code if code >= 0 else OF_SIGNALS - code


if __name__ == "__main__":
    sys.exit(hold(sys.argv[1:]))

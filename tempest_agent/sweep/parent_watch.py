"""Signals a process when whoever watches over it ends, however that happens.

It is started as a program, with the number of the process and that of the signal, and a pipe as
stdin.  The system closes the other end of the pipe when its holder is gone, also if that was
killed.  A byte in the pipe says that the process has ended by itself.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress


def watch_over(process: subprocess.Popen[bytes], number: signal.Signals) -> subprocess.Popen[bytes]:
    """Let ``process``, a child of this one, get the signal ``number`` when this one is gone.

    What it returns is to be given to ``release``.
    """
    return subprocess.Popen(
        # Alone, because the package would take longer to import than many a process runs.
        [sys.executable, "-I", "-S", __file__, str(process.pid), str(int(number))],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )


def release(watcher: subprocess.Popen[bytes]) -> None:
    """The process has ended."""
    with suppress(BrokenPipeError):  # Somebody has killed the watcher.
        watcher.communicate(b"x")


if __name__ == "__main__":
    for own in (signal.SIGINT, signal.SIGTERM):
        signal.signal(own, signal.SIG_IGN)
    if not os.read(0, 1):
        with suppress(ProcessLookupError):
            os.kill(int(sys.argv[1]), int(sys.argv[2]))

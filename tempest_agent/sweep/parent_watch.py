"""Signal a process when its parent ends, however that happens.

Runs as a program with the process id and the signal as arguments and a pipe as stdin.  The system
closes the pipe when the parent is gone, even if it was killed.  A byte in the pipe means that the
process has ended by itself.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress


def watch_over(process: subprocess.Popen[bytes], number: signal.Signals) -> subprocess.Popen[bytes]:
    """Send ``process``, a child of this one, the signal ``number`` when this process is gone.

    Returns the watcher, for ``release``.
    """
    return subprocess.Popen(
        # As a script, because importing the package takes too long.
        [sys.executable, "-I", "-S", __file__, str(process.pid), str(int(number))],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )


def release(watcher: subprocess.Popen[bytes]) -> None:
    """End the watcher of a process that has ended."""
    with suppress(BrokenPipeError):  # The watcher was killed.
        watcher.communicate(b"x")


if __name__ == "__main__":
    for own in (signal.SIGINT, signal.SIGTERM):
        signal.signal(own, signal.SIG_IGN)
    if not os.read(0, 1):
        with suppress(ProcessLookupError):
            os.kill(int(sys.argv[1]), int(sys.argv[2]))

"""Kills a process when whoever watches over it ends, however that happens.

``python -m tempest_agent.sweep.end_with PID`` with a pipe as stdin.  The system closes the other
end of the pipe when its holder is gone, also if that was killed, and then the process is killed
too.  A byte in the pipe says that it has ended by itself.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress


def watch_over(process: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
    """Let ``process``, a child of this one, end with this one.  To be given to ``release``."""
    return subprocess.Popen(
        [sys.executable, "-m", __name__, str(process.pid)],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )


def release(watcher: subprocess.Popen[bytes]) -> None:
    """The process has ended."""
    with suppress(BrokenPipeError):  # Somebody has killed the watcher.
        watcher.communicate(b"x")


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    if not os.read(0, 1):
        with suppress(ProcessLookupError):
            os.kill(int(sys.argv[1]), signal.SIGKILL)

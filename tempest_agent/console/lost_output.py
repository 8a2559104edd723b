"""Output that nobody can read any more: a pipe whose reader ended, a terminal that was closed."""

from __future__ import annotations

import os
import select
import sys

_STDOUT, _STDERR = 1, 2


def drop_lost_output() -> bool:
    """Send standard output and errors nowhere from now on, each if its reader is gone.

    Else every later line would raise again, also those that end a command in order.  Returns
    whether there was one.
    """
    if sys.platform == "win32":
        return True  # Which has no way to ask.
    dropped = False
    for number in (_STDOUT, _STDERR):
        asked = select.poll()
        asked.register(number, 0)
        lost = select.POLLERR | select.POLLHUP
        if any(events & lost for _, events in asked.poll(0)):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, number)
            os.close(nowhere)
            dropped = True
    return dropped

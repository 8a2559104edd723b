"""Handle lost output: a pipe whose reader has ended, a terminal that was closed."""

from __future__ import annotations

import os
import select
import sys

_STDOUT, _STDERR = 1, 2


def drop_lost_output() -> bool:
    """Redirect stdout and stderr to nowhere if their readers are gone; return whether one was.

    Otherwise every later line would raise again, even those of an orderly end.
    """
    if sys.platform == "win32":
        return True  # There is no way to ask.
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

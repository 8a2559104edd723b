"""A program's output, read as it comes; only the last part is kept."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from tempest_agent.envs.messages import shown

from .errors import MameError

_PART = 1 << 16
_KEPT = 1 << 13
"""Bytes of a running program's words that are kept, the last ones."""

_ANSWER_MAX = 1 << 18
"""Bytes of an answer that are read; MAME's has some 10,000."""


class Words:
    """The last output of a running program, read from its pipe ``number``.

    The program waits while the pipe is full, so that it needs no more memory or disk than that.
    """

    def __init__(self, number: int) -> None:
        os.set_blocking(number, False)
        self.number = number
        self._kept = b""

    def hear(self) -> bool:
        """Read what has come; False where nothing more can come now."""
        try:
            part = os.read(self.number, _PART) if self.number >= 0 else b""
        except BlockingIOError:
            return False
        self._kept = (self._kept + part)[-_KEPT:]
        if not part:
            self.close()
        return bool(part)

    def lines(self) -> list[str]:
        """Return the last lines."""
        return self._kept.decode(errors="backslashreplace").splitlines()

    def close(self) -> None:
        """Close the pipe; may be called twice."""
        if self.number >= 0:
            os.close(self.number)
            self.number = -1


def ask(command: Sequence[str], folder: Path, seconds: float) -> str:
    """Return what ``command`` prints, started in ``folder``, which is its home.

    Ends it after ``seconds``, or when it prints far too much.  Raises ``MameError`` if it cannot be
    run or takes too long.
    """
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={**os.environ, "HOME": str(folder)},
            start_new_session=True,
        )
    except OSError as error:
        raise MameError(f"{command[0]} cannot be run: {error}") from error
    answer = b""
    deadline = time.monotonic() + seconds
    try:
        assert process.stdout is not None
        poller = select.poll()
        poller.register(process.stdout, select.POLLIN)
        while len(answer) < _ANSWER_MAX:
            wait = deadline - time.monotonic()
            if wait <= 0 or not poller.poll(wait * 1000):
                raise MameError(
                    f"{shown(command[0])} has not checked the ROM files within {seconds:g} s: is "
                    "it MAME, and is this computer very busy?"
                )
            part = os.read(process.stdout.fileno(), _PART)
            if not part:
                break
            answer += part
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
    return answer.decode(errors="backslashreplace")

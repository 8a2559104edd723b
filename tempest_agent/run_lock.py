"""One process at a time works on a run: a lock that ends with its holder, however that ends."""

from __future__ import annotations

import errno
import logging
import os
import sys
from pathlib import Path

from tempest_agent.errors import UserError

LOCK_FILE = ".lock"

_HELD = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)
"""What locking a file ends in where another process holds it."""

log = logging.getLogger("tempest_agent")

if sys.platform == "win32":
    import msvcrt

    _LOCKED_BYTE = 1 << 20
    """Far behind the holder's number, which others could not read otherwise."""

    def _lock(file: int) -> None:
        os.lseek(file, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        os.lseek(file, 0, os.SEEK_SET)
else:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class RunLock:
    """The right to write into the folder ``run``, held from here to ``release``.

    The system takes it back when the process ends, also when it is killed; the file ``.lock``
    stays, and means nothing by itself.  On a file system without locks there is one line of
    warning and no protection.

    Raises:
        UserError: another process (or another lock of this one) holds it.
        OSError: the file cannot be written.
    """

    def __init__(self, run: Path) -> None:
        self.path = run / LOCK_FILE
        self._file: int | None = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _lock(self._file)
        except OSError as error:
            if error.errno in _HELD:
                holder = _holder(self._file)
                self.release()
                raise UserError(
                    f"{run} is being trained by {holder}: stop that one first (Ctrl-C saves), or "
                    "start a new run without --resume"
                ) from error
            log.warning("%s cannot be locked (%s): start it only once", run, error.strerror)
            return
        try:
            os.ftruncate(self._file, 0)
            os.write(self._file, str(os.getpid()).encode())
        except OSError as error:  # The disk is full, and only the run's name can say which.
            self.discard()
            raise OSError(error.errno, error.strerror, str(self.path)) from error

    def release(self) -> None:
        """Let go of the run; more than once does no harm."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def discard(self) -> None:
        """Let go of a run that never began, and remove the file."""
        self.path.unlink(missing_ok=True)
        self.release()


def is_locked(run: Path) -> bool:
    """Whether a process works on ``run``; nothing is written."""
    try:
        file = os.open(run / LOCK_FILE, os.O_RDWR)
    except OSError:
        return False
    try:
        _lock(file)
    except OSError as error:
        return error.errno in _HELD
    finally:
        os.close(file)
    return False


def _holder(file: int) -> str:
    number = os.read(file, 32).decode(errors="replace")
    return f"process {number}" if number.isdigit() else "another process"

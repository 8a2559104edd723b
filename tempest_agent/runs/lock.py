"""The lock that lets one process at a time work on a run, and that ends with its holder."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

from tempest_agent.errors import UserError
from tempest_agent.files.own_files import LINK_ERRORS, LinkedFileError, require_own
from tempest_agent.runs.file_names import LOCK_FILE

_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)
"""Errors of locking on a file system without locks."""

log = logging.getLogger("tempest_agent")


class RunLock:
    """The right to write into the folder ``run``, held until ``release``.

    The system releases it when the process ends, also if it is killed; the file ``.lock`` stays and
    means nothing by itself.  On a file system without locks there is a warning and no protection.

    Raises:
        UserError: another process (or another lock of this one) holds it, or it is a link.
        OSError: the file cannot be written.
    """

    def __init__(self, run: Path) -> None:
        self.path = run / LOCK_FILE
        self._run, self._identity = run, _identity(run)
        self._lock = _lock_of(self.path, self._sign)
        try:
            self._lock.acquire()
        except Timeout as error:
            raise UserError(
                f"{run} is being trained by {_holder(self.path)}: stop that one first (Ctrl-C "
                "saves), or start a new run without --resume"
            ) from error
        except OSError as error:
            if error.errno in LINK_ERRORS:
                raise LinkedFileError(self.path) from error
            if error.errno not in _NO_LOCKS:
                raise
            log.warning("%s cannot be locked (%s): start it only once", run, error.strerror)

    def _sign(self, file: int) -> None:
        """Write the number of this process into the lock file."""
        require_own(file, self.path)
        try:
            os.ftruncate(file, 0)
            os.write(file, str(os.getpid()).encode())
        except OSError as error:  # A full disk does not say which file it was.
            self.path.unlink()
            raise OSError(error.errno, error.strerror, str(self.path)) from error

    @property
    def is_in_place(self) -> bool:
        """Whether the run's folder is still the one that was locked."""
        return self._identity == _identity(self._run)

    def release(self) -> None:
        """Release the run; repeated calls have no effect."""
        self._lock.release()

    def discard(self) -> None:
        """Release a run that never started, and remove the file."""
        self.path.unlink(missing_ok=True)
        self.release()


def is_locked(run: Path) -> bool:
    """Return whether a process works on ``run``, writing nothing."""
    path = run / LOCK_FILE
    if not path.is_file():
        return False
    lock = _lock_of(path)
    try:
        lock.acquire()
    except Timeout:
        return True
    except OSError:
        return False
    lock.release()
    return False


def _lock_of(path: Path, on_acquired: Callable[[int], None] | None = None) -> BaseFileLock:
    """Return a lock that is never waited for, and whose file stays."""
    return FileLock(
        path,
        timeout=0,
        thread_local=False,
        fallback_to_soft=False,
        preserve_lock_file=True,
        on_acquired=on_acquired,
    )


def _identity(folder: Path) -> tuple[int, int] | None:
    """Return what distinguishes a folder from another of the same name; None if it is missing."""
    try:
        found = folder.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _holder(path: Path) -> str:
    try:
        number = path.read_text(errors="replace")
    except OSError:  # Windows does not allow reading a locked file.
        number = ""
    return f"process {number}" if number.isdigit() else "another process"

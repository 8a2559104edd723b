"""Machine code kept on disk: one file for each compiled function and signature.

Every file begins with a digest of its key (function, types, processor, versions) and its content.
One that is damaged, cut short, or renamed is therefore never unpickled or run: the code is compiled
again and the file replaced.  A file is written under another
name and renamed, and depends on no other file, so processes may write at the same time.

Unpickling a file means running it.  Only those are read that belong to this user, or to root, and
that nobody else can write.

No fault of the cache is an error.  The first one of a process is reported in one line.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import logging
import os
import pickle
import re
import stat
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import numba
import numpy as np
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps as _numba_dumps

CHOSEN = "TEMPEST_AGENT_CACHE"
"""The variable of the environment that names the folder of the cache."""

DIGEST_BYTES = hashlib.sha256().digest_size
MOST_BYTES = 2**28
"""No kernel has so much code: a file of this size is not read."""

DAY = 86_400.0
MONTH = 30 * DAY
NEWEST = 32
"""So many versions are kept longer than a day; one of the package's sources makes about four."""

_VERSION = re.compile(r"[0-9a-f]{16}")
_OURS = re.compile(r"\.nb[ci](\.tmp\.\w+)?$")
"""Endings of the cache's files: ours, and Numba's."""

_READING = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_WRITING = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)

log = logging.getLogger("tempest_agent")
_told: list[str] = []


_dumps = cast(Callable[[Any], bytes], _numba_dumps)


class CodeCache(_Cache):
    """The machine code of one function, as Numba's dispatchers load and save it.

    Args:
        function: the function.
        version: digest of all sources that it may have been built from, the name of a folder.
    """

    def __init__(self, function: Callable[..., Any], version: str) -> None:
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        made_of = hashlib.sha256(function.__code__.co_code + _dumps(cells)).hexdigest()
        self._function = f"{function.__module__}.{function.__qualname__}"
        self._made_by = (
            *(self._function, function.__code__.co_firstlineno, made_of, version),
            *(numba.__version__, np.__version__, sys.implementation.cache_tag),
        )
        self._version = version

    @property
    def cache_path(self) -> str:
        """Folder of the files."""
        return str(next(_roots(), Path()) / self._version)

    @property
    def is_empty(self) -> bool:
        """Whether no code of this version of the sources had been kept."""
        return _is_empty(self._version)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled function for the arguments ``sig``; None if no whole one is kept."""
        target_context.refresh()
        name, key = self._address(sig, target_context.codegen())
        for root in _roots():
            payload = _read(root / self._version / name, key)
            if payload is not None:
                _note_use(root / self._version)
                return cast(Any, CompileResult)._rebuild(target_context, *pickle.loads(payload))
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the compiled function ``data`` in the first folder that takes it."""
        if data.lifted or data.library.has_dynamic_globals:
            _warn(f"{self._function} cannot be kept: it refers to memory of this process")
            return
        name, key = self._address(sig, data.codegen)
        payload = _dumps(data._reduce())
        content = _seal(key, payload) + payload
        faults = []
        for root in _roots():
            try:
                _write(root, self._version, name, content)
            except OSError as error:
                faults.append(f"{root} ({error.strerror or error})")
            else:
                if faults:
                    _warn(f"compiled code cannot be kept in {faults[0]}, and goes to {root}")
                return
        _warn(
            f"compiled code cannot be kept in {' or '.join(faults) or 'any folder'}: every start "
            f"compiles again; name another folder in {CHOSEN}"
        )

    def enable(self) -> None:
        """Do nothing: the cache is always in use."""

    def disable(self) -> None:
        """Do nothing: the cache is always in use."""

    def flush(self) -> None:
        """Do nothing: code of other sources is never found."""

    def _address(self, sig: Any, codegen: Any) -> tuple[str, bytes]:
        """Return the name of the file, and what it is for."""
        key = str((self._made_by, str(sig), codegen.magic_tuple())).encode()
        return f"{self._function}-{hashlib.sha256(key).hexdigest()[:24]}.nbc", key


def _roots() -> Iterator[Path]:
    """Yield the cache folders: the one chosen, or the user's, and a temporary one.

    The second serves if the first cannot be written.
    """
    chosen = os.environ.get(CHOSEN)
    if chosen:
        yield Path(chosen).absolute()
    else:
        if sys.platform == "win32":
            home = os.environ.get("LOCALAPPDATA", "~")
        else:
            home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
        # Without HOME and without an entry for this user, "~" stays as it is.
        home = os.path.expanduser(home)
        if os.path.isabs(home):
            yield Path(home, "tempest-agent")
    with contextlib.suppress(OSError):  # No folder at all can be written.
        yield _temporary_root()


def _temporary_root() -> Path:
    user = "" if sys.platform == "win32" else f"-{os.getuid()}"
    return Path(tempfile.gettempdir()) / f"tempest-agent{user}"


@functools.cache
def _is_empty(version: str) -> bool:
    for root in _roots():
        with contextlib.suppress(OSError), os.scandir(root / version) as files:
            if any(_OURS.search(file.name) for file in files):
                return False
    return True


@functools.cache
def _note_use(folder: Path) -> None:
    """Set a folder's time to now, its last use."""
    with contextlib.suppress(OSError):  # It may be another user's, or read-only.
        os.utime(folder)


def _warn(text: str) -> None:
    """Log ``text``, only once a process: further faults mostly have the same cause."""
    if not _told:
        _told.append(text)
        log.warning(text)


def _seal(key: bytes, payload: bytes | memoryview) -> bytes:
    digest = hashlib.sha256(key)
    digest.update(payload)
    return digest.digest()


def _read(path: Path, key: bytes) -> memoryview | None:
    """Return what ``path`` holds for ``key``; None if nothing, or nothing to be trusted."""
    try:
        # A pipe without a writer is not waited for.
        with open(os.open(path, _READING), "rb") as file:
            info = os.fstat(file.fileno())
            if not _is_private(info):
                _warn(f"{path} may be written by others: not used, its code is compiled again")
                return None
            content = file.read() if info.st_size < MOST_BYTES else b""
    except FileNotFoundError:
        return None
    except OSError as error:
        if not isinstance(error, NotADirectoryError):  # It shows when code is to be kept.
            _warn(f"{path} cannot be read ({error.strerror}): its code is compiled again")
        return None
    payload = memoryview(content)[DIGEST_BYTES:]
    if content[:DIGEST_BYTES] != _seal(key, payload):
        _warn(f"{path} is damaged: compiling again, up to a minute in all ...")
        return None
    return payload


def _is_private(info: os.stat_result) -> bool:
    """Return whether a file is one that only this user, or root, can have written."""
    if not stat.S_ISREG(info.st_mode):
        return False
    if sys.platform == "win32":
        return True
    return info.st_uid in (0, os.getuid()) and not info.st_mode & 0o022


def _write(root: Path, version: str, name: str, content: bytes) -> None:
    """Write a file whole or not at all.

    Raises:
        OSError: it cannot be written, or others could change it there.
    """
    if root == _temporary_root():
        claim(root)
    folder = root / version
    is_new = not folder.is_dir()
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f"{name}.tmp.{uuid.uuid4().hex}"
    try:
        with open(os.open(part, _WRITING, 0o644), "wb") as file:
            file.write(content)
            if not _is_private(os.fstat(file.fileno())):
                raise PermissionError(errno.EPERM, "others may write there")
        os.replace(part, folder / name)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink()
        raise
    if is_new:
        with contextlib.suppress(OSError):  # Another process may be at it.
            _remove_old(root)


def claim(root: Path) -> None:
    """Create a folder in a public place, and check that it is this user's alone.

    Raises:
        OSError: it cannot be made, or is not.
    """
    with contextlib.suppress(FileExistsError):
        root.mkdir(mode=0o700)
    if sys.platform == "win32":
        return
    info = root.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid() or info.st_mode & 0o077:
        raise PermissionError(errno.EPERM, "it is not this user's alone", str(root))


def _remove_old(root: Path) -> None:
    """Remove versions not used for a month, or for a day if ``NEWEST`` were used later.

    A process that still runs one of them compiles what it has not loaded yet.
    """
    versions = [each for each in root.iterdir() if _VERSION.fullmatch(each.name)]
    used = {each: each.lstat().st_mtime for each in versions}
    for place, folder in enumerate(sorted(versions, key=used.__getitem__, reverse=True)):
        unused = time.time() - used[folder]
        if (unused > MONTH or (place >= NEWEST and unused > DAY)) and not folder.is_symlink():
            _empty(folder)


def _empty(folder: Path) -> None:
    """Remove the cache's files in ``folder``, and the folder if nothing else is there."""
    for path, _, names in os.walk(folder, topdown=False):
        for name in filter(_OURS.search, names):
            os.unlink(os.path.join(path, name))
        with contextlib.suppress(OSError):
            os.rmdir(path)

"""How the rules are compiled: two decorators around ``numba.njit``.

``rule`` compiles one small function; ``kernel`` compiles one that Python calls, and keeps the
machine code on disk.  Numba alone would look only at the kernel's own file to decide whether the
code on disk is still good, and would go on running yesterday's rules after an edit of another
file.  Here the cache folder carries a digest of every source file a kernel may have been built
from, so stale code is never found.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import os
import stat
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba import types
from numba.core import cgutils, event
from numba.core.registry import CPUDispatcher
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])

int64: Callable[[Any], int] = cast(Any, np.int64)
"""Cast to a signed 64-bit number.

Numba makes the difference of two bytes an unsigned number, and the sum of an unsigned and a
signed one a float: every byte that takes part in arithmetic with another goes through this.
"""

_RULES = Path(__file__).resolve().parent
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "nogil": True}


class _Announcer(event.Listener):
    """Says on stderr, once a process, why the first call takes so long."""

    def __init__(self) -> None:
        self.not_on_disk: set[Callable[..., Any]] = set()
        """Kernels of folders of which no machine code had been kept when they were imported."""

    def on_start(self, event: Any) -> None:
        if event.data["dispatcher"].py_func in self.not_on_disk:
            self.not_on_disk.clear()
            if sys.stderr is not None:
                print("compiling the simulator (once, about a minute) ...", file=sys.stderr)

    def on_end(self, event: Any) -> None:
        pass


_announcer = _Announcer()
cast(Any, event).register("numba:compile", _announcer)


class _Rule(CPUDispatcher):
    """A compiled function without the entries for Python and C that Numba gives to every one.

    They take half of the time it takes to compile a small function.  Nor is it compiled again for
    each constant that a caller passes: the machine code is made in the caller's, where the
    constants are known.
    """

    def get_call_template(self, args: Any, kws: Any) -> Any:
        plain = cast(Any, types).unliteral
        named = {name: plain(kind) for name, kind in kws.items()}
        return super().get_call_template(tuple(map(plain, args)), named)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        bound = inspect.signature(self.py_func).bind(*arguments, **named)
        return self._entry(*bound.args)

    @functools.cached_property
    def _entry(self) -> Callable[..., Any]:
        """What Python calls: a compiled function around this one."""
        called = self

        @numba.njit(**_OPTIONS)
        def entry(*arguments):  # type: ignore[no-untyped-def]
            return called(*arguments)

        return cast(Callable[..., Any], entry)


def rule(function: F) -> F:
    """Compile ``function`` for use inside other compiled functions.

    Python can call it too, with more ado than a ``kernel``.
    """
    inside = {"nopython": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast(F, _Rule(function, targetoptions={**_OPTIONS, **inside}))


def kernel(function: F) -> F:
    """Compile ``function`` for use from Python, with its machine code kept on disk."""
    return _kept_on_disk(function, _OPTIONS)


def sum_kernel(function: F) -> F:
    """A ``kernel`` whose sums may be taken in any order, which lets them run on vectors.

    A product and a sum may also be rounded once instead of twice.  The last bits are the same in
    every run on one machine, but not on every machine: not for the game.  Infinities and NaN stay
    what they are.
    """
    return _kept_on_disk(function, {**_OPTIONS, "fastmath": {"reassoc", "nsz", "contract"}})


def _kept_on_disk(function: F, options: dict[str, Any]) -> F:
    source = Path(inspect.getfile(function)).resolve().parent
    folder = cache_root() / _digest(source)
    config: Any = numba.config
    before = config.CACHE_DIR
    config.CACHE_DIR = str(folder)
    try:
        compiled: F = numba.njit(cache=True, **options)(function)
    finally:
        config.CACHE_DIR = before
    # In a folder of its own for each copy of the source: another installation's does not help.
    if not any(Path(cast(Any, compiled).stats.cache_path).glob("*.nbi")):
        _announcer.not_on_disk.add(function)
    return compiled


def _clear(_context, record):  # type: ignore[no-untyped-def]
    def generate(_context, builder, _signature, arguments):  # type: ignore[no-untyped-def]
        size = cgutils.intp_t(record.size)
        cast(Any, cgutils).memset(builder, arguments[0], size, 0)

    return types.void(record), generate


clear: Callable[[Any], None] = cast(Any, intrinsic(_clear))
"""Set every byte of a record to 0 (compiled code only)."""


@functools.cache
def cache_root() -> Path:
    """Folder of the compile cache: ``TEMPEST_AGENT_CACHE``, else the user's cache folder.

    Falls back to the temporary folder where the user's is not writable, or there is no user.
    """
    chosen = os.environ.get("TEMPEST_AGENT_CACHE")
    if chosen:
        root = Path(chosen).absolute()
        if _can_be_written(root):
            return root
        warnings.warn(f"TEMPEST_AGENT_CACHE={chosen} cannot be written to", stacklevel=2)
        return _temporary_root()
    if sys.platform == "win32":
        home = Path(os.environ.get("LOCALAPPDATA", Path.home()))
    else:
        # Without HOME and without an entry for this user, "~" stays as it is.
        home = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    root = home / "tempest-agent"
    return root if root.is_absolute() and _can_be_written(root) else _temporary_root()


def _can_be_written(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _temporary_root() -> Path:
    """A cache in the temporary folder that nobody else can have filled: machine code is run."""
    if sys.platform == "win32":
        return Path(tempfile.gettempdir()) / "tempest-agent"
    root = Path(tempfile.gettempdir()) / f"tempest-agent-{os.getuid()}"
    with contextlib.suppress(FileExistsError):
        root.mkdir(mode=0o700)
    found = root.lstat()
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022:
        return root
    return Path(tempfile.mkdtemp(prefix="tempest-agent-"))


@functools.cache
def _digest(source: Path) -> str:
    """Of everything that a kernel in the folder ``source`` may have been built from."""
    bounds_checked: Any = cast(Any, numba.config).BOUNDSCHECK
    digest = hashlib.sha256(f"{numba.__version__} {bounds_checked}".encode())
    folders = {_RULES} if source == _RULES else {_RULES.parent, source}
    for folder in sorted(folders):
        for file in sorted(folder.rglob("*")):
            if file.suffix in {".py", ".json"}:
                digest.update(file.read_bytes())
    return digest.hexdigest()[:16]

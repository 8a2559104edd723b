"""How the rules are compiled: two decorators around ``numba.njit``.

``rule`` compiles one small function; ``kernel`` compiles one that Python calls, and keeps the
machine code on disk (see ``code_cache``).  Numba alone would look only at the kernel's own file to
decide whether the code on disk is still good, and would keep running yesterday's rules after an
edit of another file.  Here a digest of every source file that a kernel may have been built from is
part of the path, so stale code is never found.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba import types
from numba.core import cgutils, event
from numba.core.registry import CPUDispatcher
from numba.extending import intrinsic

from .code_cache import CodeCache

F = TypeVar("F", bound=Callable[..., Any])

int64: Callable[[Any], int] = cast(Any, np.int64)
"""Cast to a signed 64-bit number.

Numba makes the difference of two bytes an unsigned number, and the sum of an unsigned and a
signed one a float: every byte that takes part in arithmetic with another goes through this.
"""

_ENVS = Path(__file__).resolve().parent.parent
_RULES = frozenset({_ENVS / "machine", _ENVS / "arcade"})
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "nogil": True}


class _Announcer(event.Listener):
    """Prints to stderr, once a process, why the first call takes so long."""

    def __init__(self) -> None:
        self.not_on_disk: set[Callable[..., Any]] = set()
        """Kernels of sources of which no machine code had been kept when they were imported."""

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

    They take half of the compile time of a small function.  Nor is it compiled again for each
    constant that a caller passes: it is inlined into the caller, where the constants are known.
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
    """Compile ``function`` for calls from other compiled functions.

    Python can call it too, with more overhead than a ``kernel``.
    """
    inside = {"nopython": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast(F, _Rule(function, targetoptions={**_OPTIONS, **inside}))


def kernel(function: F) -> F:
    """Compile ``function`` for calls from Python; its machine code is kept on disk."""
    return _kept_on_disk(function, _OPTIONS)


def sum_kernel(function: F) -> F:
    """Compile a ``kernel`` whose sums may be taken in any order, which lets them run on vectors.

    A product and a sum may also be rounded once instead of twice.  The last bits are the same in
    every run on one machine, but not on every machine: not for the game.  Infinities and NaN stay
    what they are.
    """
    return _kept_on_disk(function, {**_OPTIONS, "fastmath": {"reassoc", "nsz", "contract"}})


def _kept_on_disk(function: F, options: dict[str, Any]) -> F:
    compiled: F = numba.njit(**options)(function)
    cache = CodeCache(function, _digest(_folders(function)))
    cast(Any, compiled)._cache = cache
    if cache.is_empty:
        _announcer.not_on_disk.add(function)
    return compiled


def _clear(_context, record):  # type: ignore[no-untyped-def]
    def generate(_context, builder, _signature, arguments):  # type: ignore[no-untyped-def]
        size = cgutils.intp_t(record.size)
        cast(Any, cgutils).memset(builder, arguments[0], size, 0)

    return types.void(record), generate


clear: Callable[[Any], None] = cast(Any, intrinsic(_clear))
"""Set every byte of a record to 0 (compiled code only)."""


def _folders(function: Callable[..., Any]) -> frozenset[Path]:
    """Return the folders of everything that a kernel may have been built from."""
    rules = [each for each in function.__globals__.values() if isinstance(each, CPUDispatcher)]
    sources = [function, *(rule.py_func for rule in rules)]
    found = frozenset(Path(inspect.getfile(each)).resolve().parent for each in sources)
    if found <= _RULES:
        # The rules import nothing but each other.
        return _RULES
    # Constants leave no trace of where they come from: everything that can be imported counts.
    own = frozenset(map(_subpackage, sources)) | {_ENVS}
    return frozenset(each for each in own if not own.intersection(each.parents))


def _subpackage(function: Callable[..., Any]) -> Path:
    """Return the folder of ``tempest_agent.X`` that defines ``function``, else its file's."""
    parts = function.__module__.split(".")
    package = sys.modules.get(".".join(parts[:2]))
    if parts[0] == "tempest_agent" and hasattr(package, "__path__"):
        return Path(package.__path__[0]).resolve()
    return Path(inspect.getfile(function)).resolve().parent


@functools.cache
def _digest(folders: frozenset[Path]) -> str:
    bounds_checked: Any = cast(Any, numba.config).BOUNDSCHECK
    digest = hashlib.sha256(f"{numba.__version__} {bounds_checked}".encode())
    for each in sorted(map(_contents, folders)):
        digest.update(each)
    return digest.hexdigest()[:16]


@functools.cache
def _contents(folder: Path) -> bytes:
    """Return a digest of the sources in ``folder``."""
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        if file.suffix in {".py", ".json"}:
            digest.update(file.read_bytes())
    return digest.digest()

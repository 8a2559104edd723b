"""A digest of everything that the page's module is made of, to notice one that is out of date.

It covers the code of each function that the entries reach, without comments and docstrings, and the
value of each constant that these functions name.
"""

from __future__ import annotations

import hashlib
import inspect
import io
import textwrap
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
from numba.core.registry import CPUDispatcher

from tempest_agent.envs.machine import compiled, intrinsics, randomness

from .entries import ENTRIES

STATIC = Path(__file__).parent / "static"
MODULE = STATIC / "tempest.wasm"
RECORD = STATIC / "sources.sha256"
"""The digest of what ``MODULE`` was built from."""

_WHOLE = (compiled, intrinsics, randomness)
"""Modules with code that generates code, which no function names."""

_LAYOUT = (
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
)


def digest_of_sources() -> str:
    """Return the digest of what a module would be built from now."""
    digest = hashlib.sha256()
    for module in _WHOLE:
        digest.update(_code_of(inspect.getsource(module)).encode())
    found: dict[str, bytes] = {}
    for function, count in ENTRIES.items():
        digest.update(f"{function.__name__} {count}\n".encode())
        _collect(function, found)
    for name in sorted(found):
        digest.update(name.encode() + b"\0" + found[name] + b"\0")
    return digest.hexdigest()


def _collect(function: Callable[..., Any], found: dict[str, bytes]) -> None:
    """Add a function, and all that it names, by their full names."""
    name = f"{function.__module__}.{function.__qualname__}"
    if name in found:
        return
    found[name] = _code_of(textwrap.dedent(inspect.getsource(function))).encode()
    for used, value in _named_by(function):
        plain = value.py_func if isinstance(value, CPUDispatcher) else value
        if isinstance(plain, FunctionType):
            if plain.__module__.startswith("tempest_agent."):
                _collect(plain, found)
        elif isinstance(value, np.ndarray):
            found[f"{name}: {used}"] = f"{value.dtype} {value.shape} ".encode() + value.tobytes()
        elif isinstance(value, (bool, int, float, str, tuple, np.generic, np.dtype)):
            shown = value.descr if isinstance(value, np.dtype) else value
            found[f"{name}: {used}"] = repr(shown).encode()


def _named_by(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """Yield the global names that a function uses, and those of this package's modules."""
    names = inspect.unwrap(function).__code__.co_names
    for name in names:
        value = function.__globals__.get(name)
        if isinstance(value, ModuleType) and value.__name__.startswith("tempest_agent."):
            members = ((each, getattr(value, each, None)) for each in names)
            yield from ((f"{name}.{each}", member) for each, member in members)
        elif value is not None:
            yield name, value


def _code_of(source: str) -> str:
    """Return the tokens of some source without comments, docstrings and layout."""
    kept: list[str] = []
    starts_statement = True
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in _LAYOUT:
            starts_statement = starts_statement or token.type != tokenize.COMMENT
            continue
        if not (token.type == tokenize.STRING and starts_statement):
            kept.append(token.string)
        starts_statement = False
    return " ".join(kept)

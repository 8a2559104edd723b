"""Values quoted in error messages: bounded, on one line and printable, for any value.

A value may come from a foreign file: a few bytes of it can stand for gigabytes of ``repr``, and its
text can hold terminal control codes.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from enum import Enum
from pathlib import PurePath

import numpy as np

LONGEST = 120
"""Characters of one quoted value."""
LONGEST_PATH = 300

_DEEPEST = 4
_MOST_BITS = 133
"""Of a whole number that is written out: 40 digits.  Python refuses to write those of thousands."""


def shown(value: object) -> str:
    """Return ``value`` as a message quotes it: like ``repr``, of at most ``LONGEST`` characters.

    A ``Path`` may have ``LONGEST_PATH``, as its end says most.  Takes little time and memory
    however large, deep or recursive ``value`` is, and never runs a foreign ``__repr__``.

    >>> shown([1, "two", {"three": 3.0}])
    "[1, 'two', {'three': 3.0}]"
    >>> shown(10**5000)
    '<a whole number of about 5,001 digits>'
    """
    limit = LONGEST_PATH if isinstance(value, PurePath) else LONGEST
    text = printable(_text(value, limit, _DEEPEST), 2 * limit)
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def printable(text: str, limit: int) -> str:
    """Return ``text`` on one line, its middle left out if it has more than ``limit`` characters.

    Characters that are not printable, such as terminal control codes, are escaped.
    """
    words = " ".join(_cut(text, limit).split())
    if not words.isprintable():
        words = "".join(
            each if each.isprintable() else each.encode("unicode_escape").decode() for each in words
        )
    return _cut(words, limit)


def nearest(word: object, known: Iterable[str], likeness: float = 0.5) -> str | None:
    """Return the member of ``known`` that resembles ``word`` most, or None if none is close."""
    if not isinstance(word, str) or len(word) > LONGEST:
        return None
    by_lower = {each.lower(): each for each in reversed(list(known))}
    found = difflib.get_close_matches(word.lower(), by_lower, 1, likeness)
    return by_lower[found[0]] if found else None


def _text(value: object, room: int, depth: int) -> str:
    """Write ``value`` in about ``room`` characters, containers in ``depth`` levels."""
    if isinstance(value, str):
        return _quoted(str.__str__(value), room)
    if isinstance(value, bytes):
        return _quoted(bytes(value), room)
    if isinstance(value, PurePath):
        return _quoted(str(value), room)
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if value is None or isinstance(value, (bool, np.bool_, np.number)):
        return str(value)
    if isinstance(value, int):
        return _whole_number(value)
    if isinstance(value, (float, complex)):
        return str(value)
    if isinstance(value, np.ndarray):
        if value.size > room or value.dtype.kind not in "biufcSU":
            return f"<array of {printable(str(value.dtype), 40)}, shape {value.shape}>"
        return f"array({_text(value.tolist(), room, depth)})"
    if isinstance(value, type):
        return type.__repr__(value)
    if isinstance(value, range):
        return f"range{_text((value.start, value.stop, value.step), room, depth)}"
    return _container(value, room, depth)


def _container(value: object, room: int, depth: int) -> str:
    if isinstance(value, dict):
        parts: Iterable[object] = dict.items(value)
        opening, closing = "{", "}"
    elif isinstance(value, (set, frozenset)):
        parts = value
        opening, closing = "{", "}"
    elif isinstance(value, list):
        parts = list.__iter__(value)
        opening, closing = "[", "]"
    elif isinstance(value, tuple):
        parts = tuple.__iter__(value)
        opening, closing = "(", ",)" if tuple.__len__(value) == 1 else ")"
    else:
        return f"<{type(value).__name__}>"
    texts: list[str] = []
    for part in parts:
        if room <= 0 or depth == 0:
            texts.append("...")
            break
        if isinstance(value, dict) and isinstance(part, tuple):
            name = _text(part[0], room, depth - 1)
            text = f"{name}: {_text(part[1], room - len(name), depth - 1)}"
        else:
            text = _text(part, room, depth - 1)
        texts.append(text)
        room -= len(text) + 2
    return f"{opening}{', '.join(texts)}{closing}"


def _quoted(text: str | bytes, room: int) -> str:
    if len(text) <= room:
        return repr(text)
    written = repr(text[: max(room - 8, 0)])
    return f"{written[:-1]}...{written[-1]}"


def _whole_number(value: int) -> str:
    bits = int.bit_length(value)
    if bits > _MOST_BITS:
        return f"<a whole number of about {int(bits * 0.30103) + 1:,} digits>"
    return int.__repr__(value)


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    end = limit // 3
    return f"{text[: limit - end - 5]} ... {text[len(text) - end :]}"

"""The one exception for mistakes of the user, and the words that help to repair them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """A wrong value, file or setting given by the user.

    The commands print its message as one line on stderr and exit with code 2.  The message names
    the value, the likely mistake and the fix.
    """

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


def one_line(error: BaseException) -> str:
    """What ``error`` says in one line; its type where it says nothing."""
    return " ".join(str(error).split()) or type(error).__name__


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The member of ``known`` that resembles ``name`` most, or None if none does."""
    names = sorted(known)
    by_lower = {each.lower(): each for each in reversed(names)}
    found = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.5)
    return by_lower[found[0]] if found else None


def unknown_name(what: str, name: str, known: Iterable[str]) -> str:
    """One line for an unknown ``name``: the nearest known one, or all of them.

    >>> unknown_name("policy", "exprt", ["expert", "random"])
    "unknown policy 'exprt': did you mean 'expert'? (known: expert, random)"
    """
    names = sorted(known)
    guess = nearest(name, names)
    known_names = ", ".join(names)
    if guess is None:
        return f"unknown {what} {name!r}: use one of {known_names}"
    return f"unknown {what} {name!r}: did you mean {guess!r}? (known: {known_names})"

"""``UserError``, the exception for mistakes of the user, and texts that help to fix them."""

from __future__ import annotations

from collections.abc import Iterable

from tempest_agent.envs.messages import nearest, printable, shown

LONGEST_MESSAGE = 2_000
LONGEST_CAUSE = 500
LONGEST_QUOTE = 200


class UserError(Exception):
    """A wrong value, file or setting given by the user.

    The commands print its message as one line on stderr and exit with code 2.  The message names
    the value, the likely mistake and the fix; it is printable and bounded, even if it quotes names
    or contents of foreign files.
    """

    def __init__(self, message: str) -> None:
        super().__init__(printable(message, LONGEST_MESSAGE))


def one_line(error: BaseException) -> str:
    """Return the message of ``error``, one line without a full stop; its type if there is none."""
    text = printable(str(error), LONGEST_CAUSE) or type(error).__name__
    return text if text.endswith("...") else text.removesuffix(".")


def suggestion(name: object, known: Iterable[str], likeness: float = 0.5) -> str:
    """Return "did you mean 'X'?" for the member of ``known`` nearest to ``name``, or ""."""
    guess = nearest(name, known, likeness)
    return f"did you mean {shown(guess)}?" if guess else ""


def brief(value: object) -> str:
    """Return the text of ``value``, such as a space, on one bounded line."""
    return printable(str(value), LONGEST_QUOTE)


def unknown_name(what: str, name: object, known: Iterable[str]) -> str:
    """Return one line for an unknown ``name``: the nearest known one, and all of them.

    >>> unknown_name("policy", "exprt", ["expert", "random"])
    "unknown policy 'exprt': did you mean 'expert'? (known: expert, random)"
    """
    names = sorted(known)
    near, listed = suggestion(name, names), ", ".join(names)
    return f"unknown {what} {shown(name)}: " + (
        f"{near} (known: {listed})" if near else f"use one of {listed}"
    )

"""The one exception for mistakes of the user, and the words that help to repair them."""

from __future__ import annotations

from collections.abc import Iterable

from tempest_agent.envs.messages import nearest, printable, shown

__all__ = ["UserError", "brief", "nearest", "one_line", "printable", "shown", "unknown_name"]

LONGEST_MESSAGE = 2_000
LONGEST_CAUSE = 500
LONGEST_QUOTE = 200


class UserError(Exception):
    """A wrong value, file or setting given by the user.

    The commands print its message as one line on stderr and exit with code 2.  The message names
    the value, the likely mistake and the fix.  It is printable and has an end, also where it quotes
    the name or the content of somebody else's file.
    """

    def __init__(self, message: str) -> None:
        super().__init__(printable(message, LONGEST_MESSAGE))


def one_line(error: BaseException) -> str:
    """What ``error`` says in one line; its type where it says nothing."""
    return printable(str(error), LONGEST_CAUSE) or type(error).__name__


def brief(value: object) -> str:
    """What ``value``, such as a space, says of itself, in one line with an end."""
    return printable(str(value), LONGEST_QUOTE)


def unknown_name(what: str, name: object, known: Iterable[str]) -> str:
    """One line for an unknown ``name``: the nearest known one, or all of them.

    >>> unknown_name("policy", "exprt", ["expert", "random"])
    "unknown policy 'exprt': did you mean 'expert'? (known: expert, random)"
    """
    names = sorted(known)
    guess = nearest(name, names)
    known_names = ", ".join(names)
    if guess is None:
        return f"unknown {what} {shown(name)}: use one of {known_names}"
    return f"unknown {what} {shown(name)}: did you mean {shown(guess)}? (known: {known_names})"

"""What can go wrong with the real machine, and how the user reads it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tempest_agent.envs.messages import printable
from tempest_agent.errors import UserError

WORDS_MAX = 500
"""Characters of a program's output that a message repeats."""


class MameError(ValueError):
    """MAME, its ROMs or its options are not available as asked: one line with cause and remedy."""


class MachineError(RuntimeError):
    """One MAME process hung, died or answered nonsense.

    ``reason`` in a sentence, ``phase`` says what was being done, ``status`` how the process ended
    (``None`` while unknown), ``words`` its last output.
    """

    def __init__(self, reason: str, phase: str, status: str | None = None, words: str = "") -> None:
        self.reason = printable(reason, WORDS_MAX)
        self.phase = phase
        self.status = status
        self.words = printable(words[-WORDS_MAX:], WORDS_MAX)
        parts = [f"MAME, {phase}: {self.reason}"]
        if status is not None:
            parts.append(status)
        if words:
            parts.append(f"its last words: {self.words}")
        super().__init__("; ".join(parts))


@contextmanager
def machine_errors() -> Iterator[None]:
    """Turn both errors into ``UserError``, one line for the user."""
    try:
        yield
    except MameError as error:
        raise UserError(str(error)) from error
    except MachineError as error:
        raise UserError(f"{error}; the machine failed too often in a row") from error

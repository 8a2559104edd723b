"""What can go wrong with the real machine."""

from __future__ import annotations

WORDS_MAX = 500
"""Characters of what a program has printed that a message repeats."""


def printable(text: str, limit: int = WORDS_MAX) -> str:
    """The end of ``text`` in at most ``limit`` characters, with control characters escaped."""
    shown = "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode()
        for each in text[-limit:]
    )
    return shown if len(text) <= limit and len(shown) <= limit else "..." + shown[3 - limit :]


class MameError(ValueError):
    """The machine cannot be had as asked for: one line with the cause and the remedy."""


class MachineError(RuntimeError):
    """One MAME process hung, died or answered nonsense.

    ``reason`` in a sentence, ``phase`` says what was being done, ``status`` how the process ended
    (``None`` while unknown), ``words`` the last ones that it printed.
    """

    def __init__(self, reason: str, phase: str, status: str | None = None, words: str = "") -> None:
        self.reason = printable(reason)
        self.phase = phase
        self.status = status
        self.words = printable(words)
        parts = [f"MAME, {phase}: {self.reason}"]
        if status is not None:
            parts.append(status)
        if words:
            parts.append(f"its last words: {self.words}")
        super().__init__("; ".join(parts))

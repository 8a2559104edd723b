"""What can go wrong with the real machine."""

from __future__ import annotations

from tempest_agent.envs.messages import printable

WORDS_MAX = 500
"""Characters of what a program has printed that a message repeats."""


class MameError(ValueError):
    """The machine cannot be had as asked for: one line with the cause and the remedy."""


class MachineError(RuntimeError):
    """One MAME process hung, died or answered nonsense.

    ``reason`` in a sentence, ``phase`` says what was being done, ``status`` how the process ended
    (``None`` while unknown), ``words`` the last ones that it printed.
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

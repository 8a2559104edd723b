"""What can go wrong with the real machine."""

from __future__ import annotations


class MameError(ValueError):
    """The machine cannot be had as asked for: one line with the cause and the remedy."""


class MachineError(RuntimeError):
    """One MAME process hung, died or answered nonsense.

    ``reason`` in a sentence, ``phase`` says what was being done, ``status`` how the process ended
    (``None`` while unknown), ``log`` its last lines.
    """

    def __init__(self, reason: str, phase: str, status: str | None = None, log: str = "") -> None:
        self.reason = reason
        self.phase = phase
        self.status = status
        self.log = log
        parts = [f"MAME, {phase}: {reason}"]
        if status is not None:
            parts.append(status)
        if log:
            parts.append("its last words: " + " | ".join(log.splitlines()))
        super().__init__("; ".join(parts))

"""What is said about names that are unknown."""

from __future__ import annotations

from collections.abc import Iterable

from tempest_agent.errors import nearest, shown


def did_you_mean(word: object, known: Iterable[str]) -> str:
    near = nearest(word, known)
    return f"; did you mean {near}?" if near else ""


def unknown(word: object, known: Iterable[str], what: str) -> str:
    known = list(known)
    # "replay.gamma" and plain "gamma" should both find "learner.gamma".
    last = word.rpartition(".")[2] if isinstance(word, str) else None
    moved = [key for key in known if key.rpartition(".")[2] == last]
    near = f"; did you mean {moved[0]}?" if moved else did_you_mean(word, known)
    if not near:
        by_last = {key.rpartition(".")[2]: key for key in known}
        match = nearest(last, by_last, 0.6)
        near = f"; did you mean {by_last[match]}?" if match else f"; known: {', '.join(known)}"
    return f"unknown {what} {shown(word)}{near}"

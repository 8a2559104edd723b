"""What is said about names that are unknown."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; did you mean {near[0]}?" if near else ""


def unknown(word: str, known: Iterable[str], what: str) -> str:
    known = list(known)
    # "replay.gamma" and plain "gamma" should both find "learner.gamma".
    last = word.rpartition(".")[2]
    moved = [key for key in known if key.rpartition(".")[2] == last]
    near = f"; did you mean {moved[0]}?" if moved else nearest(word, known)
    if not near:
        by_last = {key.rpartition(".")[2]: key for key in known}
        match = difflib.get_close_matches(last, list(by_last), n=1, cutoff=0.6)
        near = f"; did you mean {by_last[match[0]]}?" if match else f"; known: {', '.join(known)}"
    return f"unknown {what} {word!r}{near}"

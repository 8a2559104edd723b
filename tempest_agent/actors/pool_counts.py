"""Counts of what the actors sent, what became of it, and how old its weights were."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .messages import Chunk

TOTALS = ("received", "taken", "lost", "duplicates", "restarts")


class PoolCounts:
    """Counters of an ``ActorPool``.

    Args:
        clock: seconds.

    Attributes:
        received: rows that arrived.
        taken: rows passed to the learner, each once.
        lost: rows that may have been played and never arrived, or were dropped because the steps
            of a game must be consecutive.
        duplicates: chunks that came twice or unrequested, and were dropped.
        restarts: restarted actors.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.received = self.taken = self.lost = self.duplicates = self.restarts = 0
        self._begin()

    def _begin(self) -> None:
        self._began = self._clock()
        self._taken_before = self.taken
        self._waited = self._played = 0.0
        self._lags: list[int] = []
        self._bytes = 0

    def take(self, chunks: Sequence[Chunk], version: int, waited: float) -> None:
        """Count a taken round; ``version`` is the newest one, ``waited`` seconds of the learner."""
        self.taken += sum(chunk.samples for chunk in chunks)
        self._lags += [version - chunk.version for chunk in chunks]
        self._played += sum(chunk.seconds for chunk in chunks) / len(chunks)
        self._bytes += sum(chunk.nbytes for chunk in chunks)
        self._waited += waited

    def read(self) -> dict[str, float]:
        """Return metrics by name: totals, and means since the last call.

        Rates are per second of the clock.  A version lag is the number of newer versions when the
        learner got rows; it is left out if there were none.
        """
        seconds = max(self._clock() - self._began, 1e-9)
        figures = {f"actors_{name}": float(getattr(self, name)) for name in TOTALS}
        figures["actors_samples_per_second"] = (self.taken - self._taken_before) / seconds
        figures["actors_bytes_per_second"] = self._bytes / seconds
        figures["actors_busy_share"] = self._played / seconds
        figures["actors_wait_share"] = self._waited / seconds
        if self._lags:
            figures["actors_version_lag"] = sum(self._lags) / len(self._lags)
            figures["actors_version_lag_max"] = float(max(self._lags))
        self._begin()
        return figures

    def state_dict(self) -> dict[str, Any]:
        """Return the totals."""
        return {name: getattr(self, name) for name in TOTALS}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue counting from ``state_dict``."""
        for name in TOTALS:
            setattr(self, name, int(state[name]))
        self._begin()

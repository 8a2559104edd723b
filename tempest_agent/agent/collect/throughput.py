"""Speeds of a run between two log rows."""

from __future__ import annotations

import time


class Throughput:
    """Counts per second of wall-clock time since the last call of ``read``.

    Args:
        batch_size: samples of one update.
    """

    def __init__(self, batch_size: int) -> None:
        self.batch_size = batch_size
        self.restart(0, 0, 0)

    def restart(self, steps: int, frames: int, updates: int) -> None:
        """Start an interval at these counts."""
        self._since = time.perf_counter()
        self._steps, self._frames, self._updates = steps, frames, updates

    def read(self, steps: int, frames: int, updates: int) -> dict[str, float]:
        """Return the metrics of the interval that ends at these counts, and start the next."""
        seconds = max(time.perf_counter() - self._since, 1e-9)
        trained = (updates - self._updates) / seconds
        metrics = {
            "env_steps_per_second": (steps - self._steps) / seconds,
            "frames_per_second": (frames - self._frames) / seconds,
            "updates_per_second": trained,
            "samples_per_second": trained * self.batch_size,
        }
        self.restart(steps, frames, updates)
        return metrics

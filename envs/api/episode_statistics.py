"""Episode return and length of each environment, in the form of SB3's ``Monitor``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class EpisodeStatistics:
    """Counters of ``num_envs`` environments.

    Attributes:
        returns: sum of rewards of each running episode, float64 ``(num_envs,)``.
        lengths: steps of each running episode, int64 ``(num_envs,)``.
    """

    def __init__(self, num_envs: int) -> None:
        self.returns = np.zeros(num_envs)
        self.lengths = np.zeros(num_envs, np.int64)

    def add(self, reward: NDArray[np.floating[Any]]) -> None:
        """Count one step of every environment and its ``reward``, ``(num_envs,)``."""
        self.returns += reward
        self.lengths += 1

    def pop(self, done: NDArray[np.bool_]) -> dict[int, dict[str, float]]:
        """Return ``{"r": return, "l": length}`` of the episodes that ended, and reset them."""
        ended = {
            game: {"r": float(self.returns[game]), "l": int(self.lengths[game])}
            for game in np.flatnonzero(done).tolist()
        }
        self.reset(done)
        return ended

    def reset(self, which: NDArray[np.bool_] | None = None) -> None:
        """Restart the counters of the environments in the mask ``which`` (default: all)."""
        chosen = slice(None) if which is None else which
        self.returns[chosen] = 0.0
        self.lengths[chosen] = 0

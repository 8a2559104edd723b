"""A sum tree for sampling in proportion to priority, in compiled loops over whole batches.

Leaf i holds the priority of row i; every inner node the sum of its children.  A parent is always
recomputed from its children, never adjusted by differences, so rounding cannot accumulate.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.arcade.compiled import kernel


@kernel
def _set(tree: NDArray[np.float64], rows: NDArray[np.int64], values: NDArray[np.float64]) -> None:
    leaves = tree.size // 2
    for i in range(rows.size):
        node = rows[i] + leaves
        tree[node] = values[i]
        node >>= 1
        while node >= 1:
            tree[node] = tree[2 * node] + tree[2 * node + 1]
            node >>= 1


@kernel
def _find(tree: NDArray[np.float64], masses: NDArray[np.float64], out: NDArray[np.int64]) -> None:
    leaves = tree.size // 2
    for i in range(masses.size):
        mass = masses[i]
        node = 1
        while node < leaves:
            node *= 2
            # A right child of weight 0 is never entered, even if rounding points there.
            if mass >= tree[node] and tree[node + 1] > 0.0:
                mass -= tree[node]
                node += 1
        out[i] = node - leaves


class SumTree:
    """Priorities of ``size`` rows, all 0 at first."""

    def __init__(self, size: int) -> None:
        leaves = 1
        while leaves < size:
            leaves *= 2
        self.size = size
        self._leaves = leaves
        self._tree = np.zeros(2 * leaves, np.float64)

    @property
    def total(self) -> float:
        """Sum of all priorities."""
        return float(self._tree[1])

    @property
    def priorities(self) -> NDArray[np.float64]:
        """Priorities by row, a view of shape ``(size,)``."""
        return self._tree[self._leaves : self._leaves + self.size]

    def set(self, rows: NDArray[np.int64], values: NDArray[np.float64]) -> None:
        """Give ``rows`` new priorities; of a row named twice the last value stays."""
        _set(self._tree, rows, values)

    def sample(self, count: int, random: np.random.Generator) -> NDArray[np.int64]:
        """``count`` rows, one from each of ``count`` equal slices of the total priority."""
        masses = (np.arange(count) + random.random(count)) * (self.total / count)
        rows = np.empty(count, np.int64)
        _find(self._tree, masses, rows)
        return rows

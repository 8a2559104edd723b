"""A sum tree for sampling in proportion to priority, in compiled loops over whole batches.

Leaf i holds the priority of row i.  The leaves lie in blocks, each summed by one leaf of a small
binary tree: a walk through a tree of a million leaves misses the cache at nearly every level, while
the small tree stays in it and a block is read at once.  A sum is always recomputed from its parts,
never adjusted by differences, so rounding cannot accumulate.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.machine.compiled import kernel

BLOCK = 32


@kernel
def _set(
    tree: NDArray[np.float64],
    leaves: NDArray[np.float64],
    rows: NDArray[np.int64],
    values: NDArray[np.float64],
) -> None:
    blocks = tree.size // 2
    for i in range(rows.size):
        leaves[rows[i]] = values[i]
    for i in range(rows.size):
        block = rows[i] // BLOCK
        total = 0.0
        for leaf in range(block * BLOCK, (block + 1) * BLOCK):
            total += leaves[leaf]
        node = block + blocks
        tree[node] = total
        node >>= 1
        while node >= 1:
            tree[node] = tree[2 * node] + tree[2 * node + 1]
            node >>= 1


@kernel
def _find(
    tree: NDArray[np.float64],
    leaves: NDArray[np.float64],
    masses: NDArray[np.float64],
    out: NDArray[np.int64],
) -> None:
    blocks = tree.size // 2
    for i in range(masses.size):
        mass = masses[i]
        node = 1
        while node < blocks:
            node *= 2
            # A right child of weight 0 is never entered, even if rounding points there.
            if mass >= tree[node] and tree[node + 1] > 0.0:
                mass -= tree[node]
                node += 1
        first = (node - blocks) * BLOCK
        found = first
        for leaf in range(first, first + BLOCK):
            # The last leaf of weight above 0 catches what rounding leaves over.
            if leaves[leaf] > 0.0:
                found = leaf
                if mass < leaves[leaf]:
                    break
                mass -= leaves[leaf]
        out[i] = found


class SumTree:
    """Priorities of ``size`` rows, all 0 at first."""

    def __init__(self, size: int) -> None:
        blocks = 1
        while blocks * BLOCK < size:
            blocks *= 2
        self.size = size
        self._tree = np.zeros(2 * blocks, np.float64)
        self._leaves = np.zeros(blocks * BLOCK, np.float64)

    @property
    def total(self) -> float:
        """Return the sum of all priorities."""
        return float(self._tree[1])

    @property
    def values(self) -> NDArray[np.float64]:
        """Return the priorities by row, a view of shape ``(size,)``."""
        return self._leaves[: self.size]

    def numpy(self) -> NDArray[np.float64]:
        """Return the priorities as a plain array, for a snapshot."""
        return self.values

    def set(self, rows: NDArray[np.int64], values: NDArray[np.float64]) -> None:
        """Give ``rows`` new priorities; of a row named twice the last value stays."""
        _set(self._tree, self._leaves, rows, values)

    def sample(self, count: int, random: np.random.Generator) -> NDArray[np.int64]:
        """Return ``count`` rows, one from each of ``count`` equal slices of the total priority."""
        masses = (np.arange(count) + random.random(count)) * (self.total / count)
        rows = np.empty(count, np.int64)
        _find(self._tree, self._leaves, masses, rows)
        return rows

"""Priorities on a device: one running sum and one search instead of a tree.

On a GPU the running sum of a million numbers takes microseconds, less than the levels of a tree
one after the other.  Nothing is read back to the host.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tempest_agent.agent.devices import to_device


class DevicePriorities:
    """Priorities of ``size`` rows, all 0 at first; as ``SumTree``, with tensors."""

    def __init__(self, size: int, device: torch.device) -> None:
        self.size = size
        self.values = torch.zeros(size, dtype=torch.float64, device=device)

    @property
    def total(self) -> Tensor:
        """Return the sum of all priorities."""
        return self.values.sum()

    def numpy(self) -> NDArray[np.float64]:
        """Return a copy on the host."""
        out: NDArray[np.float64] = self.values.cpu().numpy()
        return out

    def set(self, rows: Any, values: Any) -> None:
        """Give ``rows`` new priorities; of a row named twice any of its values stays."""
        self.values[self._here(rows)] = self._here(values)

    def sample(self, count: int, random: np.random.Generator) -> Tensor:
        """Return ``count`` rows, one from each of ``count`` equal slices of the total priority."""
        places = self._here((np.arange(count) + random.random(count)) / count)
        sums = self.values.cumsum(0)
        # The first row whose sum is above: a row of priority 0 has the sum of the one before it.
        rows = torch.searchsorted(sums, places * sums[-1], right=True)
        # What rounding leaves over goes to the last row of weight above 0.
        last = torch.searchsorted(sums, sums[-1:])
        return torch.minimum(rows, last)

    def _here(self, array: Any) -> Tensor:
        column = array if isinstance(array, Tensor) else np.ascontiguousarray(array)
        return to_device(column, self.values.device)

"""Means, sums, maxima and minima that stay on the device until a line of metrics is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


class Metrics:
    """Running figures of many updates; nothing is read back before ``read``."""

    def __init__(self) -> None:
        self._sums: dict[str, tuple[Tensor, Tensor | float]] = {}
        self._totals: dict[str, Tensor] = {}
        self._highest: dict[str, Tensor] = {}
        self._lowest: dict[str, Tensor] = {}
        self.before_reading: Callable[[], None] | None = None
        """Adds what has been counted elsewhere; called before anything is read."""

    def mean(self, name: str, total: Tensor, count: Tensor | float = 1.0) -> None:
        """Add ``total`` over ``count`` rows to the mean ``name``."""
        before = self._sums.get(name)
        if before is None:
            self._sums[name] = (total.detach().clone(), count)
        else:
            self._sums[name] = (before[0] + total.detach(), before[1] + count)

    def total(self, name: str, value: Tensor) -> None:
        """Add ``value`` to the sum ``name``."""
        before = self._totals.get(name)
        value = value.detach().clone()
        self._totals[name] = value if before is None else before + value

    def highest(self, name: str, value: Tensor) -> None:
        """Keep the largest ``value``."""
        before = self._highest.get(name)
        value = value.detach().clone()
        self._highest[name] = value if before is None else torch.maximum(before, value)

    def lowest(self, name: str, value: Tensor) -> None:
        """Keep the smallest ``value``."""
        before = self._lowest.get(name)
        value = value.detach().clone()
        self._lowest[name] = value if before is None else torch.minimum(before, value)

    def read(self) -> dict[str, float]:
        """All figures as floats, and begin anew; means over no rows are left out."""
        self._complete()
        figures: dict[str, float] = {}
        for name, (total, count) in self._sums.items():
            rows = float(count)
            if rows > 0:
                figures[name] = float(total) / rows
        for kept in (self._totals, self._highest, self._lowest):
            figures |= {name: float(value) for name, value in kept.items()}
        self._sums, self._totals, self._highest, self._lowest = {}, {}, {}, {}
        return figures

    def _complete(self) -> None:
        if self.before_reading is not None:
            self.before_reading()

    def state_dict(self) -> dict[str, Any]:
        """The running figures as tensors and floats."""
        self._complete()
        return {
            "sums": {name: [total, float(count)] for name, (total, count) in self._sums.items()},
            "totals": dict(self._totals),
            "highest": dict(self._highest),
            "lowest": dict(self._lowest),
        }

    def load_state_dict(self, state: dict[str, Any], device: torch.device) -> None:
        """Go on from ``state_dict`` with the figures on ``device``."""
        self._sums = {
            name: (total.to(device), count) for name, (total, count) in state["sums"].items()
        }
        for kept, name in (
            (self._totals, "totals"),
            (self._highest, "highest"),
            (self._lowest, "lowest"),
        ):
            kept.clear()
            kept.update({figure: value.to(device) for figure, value in state[name].items()})

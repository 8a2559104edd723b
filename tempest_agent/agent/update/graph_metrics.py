"""Metrics of a recorded update, which no code of the host sees, added up on the device."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tempest_agent.agent.learner.metrics import Metrics

Name = tuple[str, str]
"""Kind of a metric (a method of ``Metrics``) and its name."""


class GraphMetrics(Metrics):
    """The metrics of one pass, in the order in which they come."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[Name] = []
        self._values: list[tuple[Tensor, Tensor | float]] = []

    def _keep(self, kind: str, name: str, value: Tensor, count: Tensor | float = 0.0) -> None:
        self.names.append((kind, name))
        self._values.append((value.detach(), count))

    def mean(self, name: str, values: Tensor, count: Tensor | float | None = None) -> None:
        """Keep the sum of ``values``, over ``count`` rows or as many as they are."""
        self._keep("mean", name, values.sum(), values.numel() if count is None else count)

    def means(self, names: tuple[str, ...], totals: Tensor, counts: Tensor) -> None:
        """Keep ``totals`` ``(M,)`` over ``counts`` ``(M,)`` rows."""
        for i, name in enumerate(names):
            self._keep("mean", name, totals[i], counts[i])

    def total(self, name: str, value: Tensor) -> None:
        """Keep ``value``."""
        self._keep("total", name, value)

    def highest(self, name: str, values: Tensor) -> None:
        """Keep the largest of ``values``."""
        self._keep("highest", name, values.max())

    def lowest(self, name: str, values: Tensor) -> None:
        """Keep the smallest of ``values``."""
        self._keep("lowest", name, values.min())

    def table(self) -> Tensor:
        """Return values and counts, ``(2, M)``, float32."""
        device = self._values[0][0].device
        values = torch.stack([value.float() for value, _ in self._values])
        counts = torch.stack(
            [
                count.float() if isinstance(count, Tensor) else torch.full((), count, device=device)
                for _, count in self._values
            ]
        )
        return torch.stack((values, counts))


class GraphMetricSums:
    """Tables of ``GraphMetrics`` of many updates, added up in the device's memory.

    Args:
        names: metrics of a table, column by column.
        device: where.
    """

    def __init__(self, names: list[Name], device: torch.device) -> None:
        self.names = names
        kinds = [kind for kind, _ in names]
        self._is_highest = torch.tensor([kind == "highest" for kind in kinds], device=device)
        self._is_lowest = torch.tensor([kind == "lowest" for kind in kinds], device=device)
        self._table = torch.zeros(2, len(names), dtype=torch.float64, device=device)
        self.updates = torch.zeros((), device=device)
        """Tables since the last ``give``."""

    def add(self, table: Tensor) -> None:
        """Add one table, in place."""
        before, first = self._table, self.updates == 0
        added = before + table
        highest = torch.where(first, table, torch.maximum(before, table))
        lowest = torch.where(first, table, torch.minimum(before, table))
        kept = torch.where(self._is_highest, highest, torch.where(self._is_lowest, lowest, added))
        before.copy_(kept)
        self.updates += 1

    def give(self, metrics: Metrics) -> None:
        """Add everything to ``metrics`` and reset."""
        if not self.updates:
            return
        for i, (kind, name) in enumerate(self.names):
            value, count = self._table[0, i].float(), self._table[1, i]
            arguments: tuple[Any, ...] = (value, count.clone()) if kind == "mean" else (value,)
            getattr(metrics, kind)(name, *arguments)
        self._table.zero_()
        self.updates.zero_()

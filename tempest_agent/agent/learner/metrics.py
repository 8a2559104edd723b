"""Means, sums, maxima and minima that stay on the device until a line of metrics is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

HELD = 32
"""Updates whose figures are added up together: one by one that takes longer than small updates."""


Figure = tuple[str, tuple[str, ...]]
"""Its kind and its names, more than one in ``means``."""


class Metrics:
    """Running figures of many updates; nothing is read back before ``read``.

    What is given is kept as it is until it is added up: it is not to be written into later.
    """

    def __init__(self) -> None:
        self._held: dict[Figure, list[tuple[Tensor, Tensor | float]]] = {}
        self._sums: dict[str, tuple[Tensor, Tensor | float]] = {}
        self._totals: dict[str, Tensor] = {}
        self._highest: dict[str, Tensor] = {}
        self._lowest: dict[str, Tensor] = {}
        self.before_reading: Callable[[], None] | None = None
        """Adds what has been counted elsewhere; called before anything is read."""

    def mean(self, name: str, values: Tensor, count: Tensor | float | None = None) -> None:
        """Add ``values`` to the mean ``name``, over ``count`` rows or as many as they are."""
        self._hold(("mean", (name,)), values, values.numel() if count is None else count)

    def means(self, names: tuple[str, ...], totals: Tensor, counts: Tensor) -> None:
        """Add ``totals`` ``(M,)`` over ``counts`` ``(M,)`` rows to M means."""
        self._hold(("means", names), totals, counts)

    def total(self, name: str, value: Tensor) -> None:
        """Add ``value`` to the sum ``name``."""
        self._hold(("total", (name,)), value)

    def highest(self, name: str, values: Tensor) -> None:
        """Keep the largest of ``values``."""
        self._hold(("highest", (name,)), values)

    def lowest(self, name: str, values: Tensor) -> None:
        """Keep the smallest of ``values``."""
        self._hold(("lowest", (name,)), values)

    def _hold(self, figure: Figure, values: Tensor, count: Tensor | float = 0.0) -> None:
        held = self._held.setdefault(figure, [])
        if held and held[0][0].shape != values.shape:
            self._add_up(figure, held)
            held.clear()
        held.append((values.detach() if values.requires_grad else values, count))
        if len(held) == HELD:
            self._add_up(figure, held)
            held.clear()

    def _add_up(self, figure: Figure, held: list[tuple[Tensor, Tensor | float]]) -> None:
        kind, names = figure
        name = names[0]
        values = torch.stack([value for value, _ in held])
        if kind == "means":
            counts = torch.stack([torch.as_tensor(count) for _, count in held])
            for i, each in enumerate(names):
                self._add_mean(each, values[:, i], list(counts[:, i]))
        elif kind == "mean":
            self._add_mean(name, _of_each(values), [count for _, count in held])
        elif kind == "total":
            self._totals[name] = _added(self._totals.get(name), _of_each(values))
        elif kind == "highest":
            highest = values.max()
            before = self._highest.get(name, highest)
            self._highest[name] = torch.maximum(before, highest)
        else:
            lowest = values.min()
            self._lowest[name] = torch.minimum(self._lowest.get(name, lowest), lowest)

    def _add_mean(self, name: str, totals: Tensor, counts: Sequence[Tensor | float]) -> None:
        before, rows = self._sums.get(name, (None, 0.0))
        if isinstance(rows, Tensor) or isinstance(counts[0], Tensor):
            each = torch.stack([torch.as_tensor(count) for count in counts]).to(torch.float32)
            rows = _added(torch.as_tensor(rows).to(each), each)
        else:
            for count in counts:
                rows += count
        self._sums[name] = _added(before, totals), rows

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
        for figure, held in self._held.items():
            if held:
                self._add_up(figure, held)
        self._held.clear()

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
        """Continue from ``state_dict``, whose tensors may be plain floats, on ``device``."""
        self._held.clear()
        self._sums = {
            name: (_on(total, device), count) for name, (total, count) in state["sums"].items()
        }
        for kept, name in (
            (self._totals, "totals"),
            (self._highest, "highest"),
            (self._lowest, "lowest"),
        ):
            kept.clear()
            kept.update({figure: _on(value, device) for figure, value in state[name].items()})


def _on(value: Tensor | float, device: torch.device) -> Tensor:
    if isinstance(value, Tensor):
        return value.to(device)
    return torch.tensor(value, dtype=torch.float64, device=device)


def _of_each(values: Tensor) -> Tensor:
    """Sums ``(U,)`` of what U updates gave, ``(U, ...)``."""
    return values if values.dim() == 1 else values.flatten(1).sum(dim=1)


def _added(before: Tensor | None, each: Tensor) -> Tensor:
    """``before`` and U numbers added one after the other, so that it does not matter when."""
    numbers = each if before is None else torch.cat((before.reshape(1), each))
    if numbers.device.type != "cpu":
        return numbers.sum()
    return torch.from_numpy(np.add.accumulate(numbers.numpy()))[-1].clone()

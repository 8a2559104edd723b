"""What goes into a replay, and what comes out."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tempest_agent.agent.devices import Column

from .plans import Plans

AGENT, EXPLORATION, EXPERT = range(3)
DRIVER_NAMES = ("agent", "exploration", "expert")

TERMINATED, TRUNCATED, EPISODE_START, ZAP_LEGAL = 1, 2, 4, 8
DRIVER_SHIFT = 4
LABELLED = 64
HAS_PLANS = 128


class Rows(NamedTuple):
    """One step of each of N games, to be added."""

    codes: NDArray[np.int8]
    """``(N, F)`` observation codes; code / 127 is the feature."""
    spin: NDArray[np.int8]
    """``(N,)`` executed knob counts."""
    buttons: NDArray[np.uint8]
    """``(N,)`` executed buttons."""
    reward: NDArray[np.float32]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    episode_start: NDArray[np.bool_]
    zap_legal: NDArray[np.bool_]
    driver: NDArray[np.uint8]
    label_spin: NDArray[np.int8]
    label_buttons: NDArray[np.uint8]
    labelled: NDArray[np.bool_]
    final_codes: NDArray[np.int8]
    """``(N, F)``; read only where truncated and not terminated."""
    final_zap_legal: NDArray[np.bool_]


class Path(NamedTuple):
    """The n steps that each of B returns is made of, the first one included."""

    codes: Column
    """``(B, n, F)`` their observations; anything where not ``valid``."""
    spin: Column
    """``(B, n)``, like all that follow."""
    buttons: Column
    zap_legal: Column
    driver: Column
    reward: Column
    valid: Column
    """1 for steps of the return, 0 behind its end."""


class Batch(NamedTuple):
    """B sampled starts, as arrays, or as tensors where the replay is on a device."""

    codes: Column
    next_codes: Column
    """Where to bootstrap; meaningless where ``discounts`` is 0."""
    spin: Column
    buttons: Column
    returns: Column
    discounts: Column
    """gamma to the power of the row's own horizon; 0 after a termination."""
    horizons: Column
    zap_legal: Column
    next_zap_legal: Column
    driver: Column
    label_spin: Column
    label_buttons: Column
    labelled: Column
    weights: Column
    """Importance weights, at most 1; all 1 when sampling is uniform."""
    rows: Column
    """Flat row numbers, for ``update_priorities``."""
    path: Path | None = None
    """The steps of each return; only for retrace."""

    def part(self, first: int, last: int) -> Batch:
        """Return rows ``first`` to ``last - 1``, without copying."""
        parts: dict[str, Any] = {}
        for name, column in self._asdict().items():
            if isinstance(column, Path):
                parts[name] = Path(*(part[first:last] for part in column))
            elif column is not None:
                parts[name] = column[first:last]
        return Batch(**parts)


class PlanBatch(NamedTuple):
    """B states whose plans are valued, drawn beside a ``Batch``."""

    codes: NDArray[np.int8]
    zap_legal: NDArray[np.bool_]
    plans: Plans

    def part(self, first: int, last: int) -> PlanBatch:
        """Return rows ``first`` to ``last - 1``, without copying."""
        plans = Plans(*(column[first:last] for column in self.plans))
        return PlanBatch(self.codes[first:last], self.zap_legal[first:last], plans)


def micro_batches(rows: int, count: int) -> list[tuple[int, int]]:
    """Return first row and end of each of ``count`` micro-batches of ``rows`` rows.

    Early ones are one row longer where it does not divide.
    """
    least, more = divmod(rows, count)
    return list(pairwise(least * i + min(i, more) for i in range(count + 1)))

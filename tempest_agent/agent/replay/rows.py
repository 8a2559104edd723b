"""What goes into a replay and what comes out, and how n-step returns are put together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tempest_agent.agent.devices import Column
from tempest_agent.envs.machine.compiled import kernel

AGENT, EXPLORATION, EXPERT = range(3)
DRIVER_NAMES = ("agent", "exploration", "expert")

TERMINATED, TRUNCATED, EPISODE_START, ZAP_LEGAL = 1, 2, 4, 8
DRIVER_SHIFT = 4
LABELLED = 64

NO_ROW = -1
ASIDE = -2


class Rows(NamedTuple):
    """One decision of each of N games, to be added."""

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
    """The n decisions that each of B returns is made of, the first one included."""

    codes: Column
    """``(B, n, F)`` observations they were made on; anything where not ``valid``."""
    spin: Column
    """``(B, n)``, like all that follow."""
    buttons: Column
    zap_legal: Column
    driver: Column
    reward: Column
    valid: Column
    """1 for decisions of the return, 0 behind its end."""


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
    """The decisions of each return; only for retrace."""

    def part(self, first: int, last: int) -> Batch:
        """Rows ``first`` to ``last - 1``, without copying."""
        columns = self._asdict()
        path = columns.pop("path")
        parts: dict[str, Any] = {name: column[first:last] for name, column in columns.items()}
        if path is not None:
            parts["path"] = Path(*(column[first:last] for column in path))
        return Batch(**parts)


@kernel
def assemble(
    rows: NDArray[np.int64],
    codes: NDArray[np.int8],
    reward: NDArray[np.float32],
    flags: NDArray[np.uint8],
    newest: int,
    n_steps: int,
    gamma: float,
    cut: bool,
    out_codes: NDArray[np.int8],
    out_next: NDArray[np.int8],
    out_returns: NDArray[np.float32],
    out_discounts: NDArray[np.float32],
    out_horizons: NDArray[np.int64],
    out_boot: NDArray[np.int64],
) -> None:
    """Write the n-step returns that start at ``rows``; see ``replay`` for the cases.

    ``out_boot`` is the flat row to bootstrap on, ``NO_ROW``, or ``ASIDE`` minus the row of a
    truncation.
    """
    length, games, features = codes.shape
    for i in range(rows.size):
        t = rows[i] // games
        game = rows[i] % games
        for f in range(features):
            out_codes[i, f] = codes[t, game, f]
        total = 0.0
        discount = 1.0
        steps = 0
        boot = NO_ROW
        last = t
        while True:
            total += discount * reward[t, game]
            discount *= gamma
            steps += 1
            last = t
            flag = flags[t, game]
            if flag & TERMINATED:
                discount = 0.0
                break
            if flag & TRUNCATED:
                boot = ASIDE
                break
            t = (t + 1) % length
            others = cut and ((flags[t, game] >> DRIVER_SHIFT) & 3) != AGENT
            if steps == n_steps or t == newest or others:
                boot = t * games + game
                break
        if boot >= 0:
            for f in range(features):
                out_next[i, f] = codes[t, game, f]
        elif boot == NO_ROW:
            for f in range(features):
                out_next[i, f] = 0
        else:
            boot = ASIDE - (last * games + game)
        out_returns[i] = total
        out_discounts[i] = discount
        out_horizons[i] = steps
        out_boot[i] = boot

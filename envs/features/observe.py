"""The default observation, written from the RAM image: see ``layout`` for its numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.forecast.table import TABLE_DTYPE, Table
from tempest_agent.envs.machine.compiled import int64, kernel, rule
from tempest_agent.envs.machine.inputs import MAX_INPUT_DELAY
from tempest_agent.envs.machine.memory import RAM_DTYPE, Ram

from .enemies import write_enemies
from .forecast import write_forecast
from .globals import write_clocks, write_crowd, write_level, write_pending, write_player
from .lanes import write_lanes, write_nymphs, write_shots
from .layout import GLOBALS_START, NUM_FEATURES, PLAIN_FEATURES


@rule
def write_features(
    ram: Ram,
    pending_spin: NDArray[np.int8],
    pending_buttons: NDArray[np.uint8],
    input_delay: int,
    table: Table,
    out: NDArray[np.int8],
) -> None:
    """Write one game's observation codes into ``out``, int8.

    Its shape is ``(NUM_FEATURES,)``, or ``(PLAIN_FEATURES,)`` to leave out the forecast; ``table``
    is memory that the forecast works in.

    ``pending_spin`` and ``pending_buttons`` (fire + 2*zap) hold the inputs that have been chosen
    but not yet put in, the next one first; the first ``input_delay`` (0-4) are read.
    """
    out[:] = 0
    me = int64(ram.player_lane) & 15
    write_lanes(ram, me, out)
    write_enemies(ram, me, out)
    write_shots(ram, me, out)
    write_nymphs(ram, me, out)
    # Called from here one by one: through a function between, the compiler inlines less of them.
    g = write_player(ram, out, GLOBALS_START)
    g = write_level(ram, out, g)
    g = write_clocks(ram, out, g)
    g = write_crowd(ram, out, g)
    write_pending(pending_spin, pending_buttons, input_delay, out, g)
    if len(out) > PLAIN_FEATURES:
        write_forecast(ram, me, pending_spin, input_delay, table, out)


@kernel
def _write_images(ram: Ram, tables: NDArray[np.void], out: NDArray[np.int8]) -> None:
    spin = np.zeros(MAX_INPUT_DELAY, np.int8)
    buttons = np.zeros(MAX_INPUT_DELAY, np.uint8)
    for i in range(len(ram)):
        write_features(ram[i], spin, buttons, 0, tables[0], out[i])


def observe(ram: NDArray[np.void]) -> NDArray[np.int8]:
    """Return the observation codes of RAM images without pending inputs.

    ``ram`` has dtype ``RAM_DTYPE`` and shape ``(n,)``; the result has shape
    ``(n, NUM_FEATURES)``.
    """
    if ram.dtype != RAM_DTYPE or ram.ndim != 1:
        raise TypeError(
            f"observe() takes an array of RAM_DTYPE with one axis, got {ram.dtype.itemsize}-byte "
            f"items of shape {ram.shape}: convert bytes with machine.memory.from_bytes()"
        )
    out = np.empty((len(ram), NUM_FEATURES), np.int8)
    _write_images(ram, np.zeros(1, TABLE_DTYPE), out)
    return out

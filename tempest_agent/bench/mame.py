"""Speed of the real game: the cost of the bridge compared with MAME alone."""

from __future__ import annotations

import time

import numpy as np

from tempest_agent.bench.figures import Figure, compared, figure
from tempest_agent.envs.engine.settings import GameSettings
from tempest_agent.envs.mame import protocol
from tempest_agent.envs.mame.mame_batch import MameBatch
from tempest_agent.envs.mame.mame_options import MameOptions

TICKS = 300
ROUNDS = 7
FRAMES_PER_TICK = 60 / 27.34
CYCLES_PER_TICK = 9 * 6144
STATE_LOADS = 20


def measure(machine: MameOptions) -> dict[str, Figure]:
    """Measure one MAME; its own speed is the same process without the bridge's taps.

    Both take turns, so that other load slows both down.
    """
    settings = GameSettings(skip_idle=False)
    bridged: list[float] = []
    free: list[float] = []
    with MameBatch(1, settings, machine, autoreset=True, observe=False) as batch:
        began = time.perf_counter()
        batch.reset(seeds=0)
        first_game = time.perf_counter() - began
        for _ in range(ROUNDS):
            bridged.append(_bridged(batch))
            free.append(_free(batch))
        began = time.perf_counter()
        for seed in range(STATE_LOADS):
            batch.reset(seeds=seed)
        reset = (time.perf_counter() - began) / STATE_LOADS
    slow, fast = min(bridged), min(free)
    return {
        "mame_ticks_per_second": figure(1 / slow, "ticks/s", 1 / fast),
        "bridge_overhead": compared(
            slow / fast, "time of a tick with its exchange beyond MAME's own", fast, slow / fast - 1
        ),
        "first_game_seconds": figure(first_game, "s from nothing to the first play tick"),
        "reset_seconds": figure(reset, "s from one game to the next one's first play tick"),
    }


def _bridged(batch: MameBatch) -> float:
    """Return the seconds per tick with everything that an environment's step does."""
    spin, buttons = np.zeros(1, np.int8), np.ones(1, np.uint8)
    # A new game, so that none is started in between.
    batch.reset()
    began = time.perf_counter()
    for _ in range(TICKS):
        batch.step(spin, buttons)
    return (time.perf_counter() - began) / TICKS


def _free(batch: MameBatch) -> float:
    """Return the seconds per tick of MAME alone."""
    frames = round(TICKS * FRAMES_PER_TICK)
    start = batch.frame(0)
    began = time.perf_counter()
    end = batch.command(0, protocol.run_free(frames) + protocol.go(), seconds=60.0)
    return (time.perf_counter() - began) / ((end.cycle - start.cycle) / CYCLES_PER_TICK)

"""Speed and size of the replay: prioritised and uniform sampling at a million rows."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from tempest_agent.agent.games.tempest_games import TEMPEST_LAYOUT
from tempest_agent.agent.learner.learner import Learner
from tempest_agent.agent.networks.layout import Layout
from tempest_agent.agent.replay.buffer import ReplayBuffer
from tempest_agent.agent.replay.rows import AGENT, Rows
from tempest_agent.bench.figures import Figure, compared, figure
from tempest_agent.bench.learner import random_batch
from tempest_agent.bench.timing import fastest, seconds_of
from tempest_agent.config import load_config

ROWS = 1_000_000
GAMES = 128
BATCH = 512
LARGER_BATCHES = (4096, 16_384)
CALLS = 20
"""Batches of ``BATCH`` per measurement: a single one is too short to time."""

FEATURES = 171
"""Of the compared rows; more would favour priorities, whose cost does not depend on it."""


def measure() -> dict[str, Figure]:
    """Return every figure of the replay, see ``docs/commands.md``."""
    buffer = filled(FEATURES)
    costs = {rows: _measured(buffer, rows) for rows in (BATCH, *LARGER_BATCHES)}
    small = costs[BATCH]
    real = ReplayBuffer.bytes_per_row(TEMPEST_LAYOUT.num_features)
    figures: dict[str, Figure] = {
        "prioritised_to_uniform": compared(
            small.prioritised / small.uniform,
            f"time to sample {BATCH} of {ROWS:,} rows and update them, to sampling alone",
            small.uniform,
        ),
        "prioritised_update_ratio": small.ratio,
    }
    figures |= {f"prioritised_update_ratio_{rows}": costs[rows].ratio for rows in LARGER_BATCHES}
    return figures | {
        "rows_per_second": figure(BATCH / small.prioritised, "rows/s", BATCH / small.uniform),
        "bytes_per_row": figure(
            float(real),
            f"bytes; an observation of {TEMPEST_LAYOUT.num_features} codes, stored once",
        ),
    }


@dataclass(frozen=True)
class _Costs:
    """Seconds per batch of ``rows``."""

    rows: int
    uniform: float
    prioritised: float
    update: float

    @property
    def ratio(self) -> Figure:
        """Time of a whole update with priorities, compared with one without."""
        without = self.update + self.uniform
        ratio = (self.update + self.prioritised) / without
        unit = f"time of a whole update of the default network from {self.rows:,} rows, to the same"
        return compared(ratio, f"{unit} without priorities", without)


def _measured(buffer: ReplayBuffer, rows: int) -> _Costs:
    calls = max(2, CALLS * BATCH // rows)
    uniform, prioritised = fastest(
        lambda: _uniform(buffer, rows, calls), lambda: _prioritised(buffer, rows, calls)
    )
    return _Costs(rows, uniform / calls, prioritised / calls, _update_seconds(rows))


def filled(num_features: int) -> ReplayBuffer:
    """Return a prioritised replay filled with random rows."""
    buffer = ReplayBuffer(
        ROWS, GAMES, num_features, n_steps=5, gamma=0.99, prioritised=True, seed=0
    )
    random = np.random.default_rng(0)
    nothing = np.zeros(GAMES, np.bool_)
    for _ in range(buffer.length):
        codes: NDArray[np.int8] = random.integers(-127, 128, (GAMES, num_features), np.int8)
        buffer.add(
            Rows(
                codes=codes,
                spin=np.zeros(GAMES, np.int8),
                buttons=np.zeros(GAMES, np.uint8),
                reward=random.random(GAMES, np.float32),
                terminated=random.random(GAMES) < 0.005,
                truncated=nothing,
                episode_start=nothing,
                zap_legal=nothing,
                driver=np.full(GAMES, AGENT, np.uint8),
                label_spin=np.zeros(GAMES, np.int8),
                label_buttons=np.zeros(GAMES, np.uint8),
                labelled=nothing,
                final_codes=codes,
                final_zap_legal=nothing,
            )
        )
    rows = np.arange(buffer.length * GAMES)
    buffer.update_priorities(rows[: len(buffer)], random.exponential(size=len(buffer)))
    return buffer


def _uniform(buffer: ReplayBuffer, rows: int, calls: int) -> Callable[[], None]:
    plain = copy.copy(buffer)
    plain.priorities = None

    def run() -> None:
        for _ in range(calls):
            plain.sample(rows)

    return run


def _prioritised(buffer: ReplayBuffer, rows: int, calls: int) -> Callable[[], None]:
    errors = np.random.default_rng(0).exponential(size=rows)

    def run() -> None:
        for _ in range(calls):
            buffer.update_priorities(buffer.sample(rows, 0.5).rows, errors)

    return run


def _update_seconds(rows: int) -> float:
    """Return the seconds of an update of the default network on a sampled batch."""
    layout: Layout = TEMPEST_LAYOUT
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    learner = Learner(layout, load_config(), torch.device("cpu"))
    batch = random_batch(layout, rows)
    best = min(seconds_of(lambda: learner.update(batch, 1e-4, 0.0)) for _ in range(5))
    torch.set_num_threads(threads)
    return best

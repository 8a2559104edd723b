"""Speed and size of the replay: priorities against uniform sampling at a million rows."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from tempest_agent.agent.learner import Learner
from tempest_agent.agent.networks import Layout
from tempest_agent.agent.replay import AGENT, ReplayBuffer, Rows
from tempest_agent.agent.tempest_games import TEMPEST_LAYOUT
from tempest_agent.commands.bench import Figure, figure
from tempest_agent.commands.bench_env import fastest
from tempest_agent.commands.bench_learner import random_batch
from tempest_agent.config import load_config

ROWS = 1_000_000
GAMES = 128
BATCH = 512
CALLS = 20
"""Batches of one measurement: a single one is too short to time."""

FEATURES = 171
"""Of the rows that are compared; more would favour priorities, whose cost they do not change."""


def measure() -> dict[str, Figure]:
    """Every figure of the replay, see ``docs/commands.md``."""
    buffer = filled(FEATURES)
    uniform, prioritised = fastest(lambda: _uniform(buffer), lambda: _prioritised(buffer))
    update = _update_seconds()
    per_batch, per_prioritised = uniform / CALLS, prioritised / CALLS
    with_priorities, without = update + per_prioritised, update + per_batch
    real = ReplayBuffer.bytes_per_row(TEMPEST_LAYOUT.num_features)
    return {
        "prioritised_to_uniform": {
            "value": prioritised / uniform,
            "unit": f"time to sample {BATCH} of {ROWS:,} rows and update them, to sampling alone",
            "baseline": per_batch,
            "ratio": prioritised / uniform,
        },
        "prioritised_update_ratio": {
            "value": with_priorities / without,
            "unit": "time of a whole update of the default network, to the same without priorities",
            "baseline": without,
            "ratio": with_priorities / without,
        },
        "rows_per_second": figure(BATCH / per_prioritised, "rows/s", BATCH / per_batch),
        "bytes_per_row": figure(
            float(real),
            f"bytes; an observation of {TEMPEST_LAYOUT.num_features} codes, stored once",
        ),
    }


def filled(num_features: int) -> ReplayBuffer:
    """A prioritised replay full of random rows."""
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


def _uniform(buffer: ReplayBuffer) -> Callable[[], None]:
    plain = copy.copy(buffer)
    plain.tree = None

    def run() -> None:
        for _ in range(CALLS):
            plain.sample(BATCH)

    return run


def _prioritised(buffer: ReplayBuffer) -> Callable[[], None]:
    errors = np.random.default_rng(0).exponential(size=BATCH)

    def run() -> None:
        for _ in range(CALLS):
            buffer.update_priorities(buffer.sample(BATCH, 0.5).rows, errors)

    return run


def _update_seconds() -> float:
    """Of the learner, from a sampled batch of the default network's observations."""
    layout: Layout = TEMPEST_LAYOUT
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    learner = Learner(layout, load_config(), torch.device("cpu"))
    batch = random_batch(layout, BATCH)
    best = float("inf")
    for _ in range(5):
        began = time.perf_counter()
        learner.update(batch, 1e-4, 0.0)
        best = min(best, time.perf_counter() - began)
    torch.set_num_threads(threads)
    return best

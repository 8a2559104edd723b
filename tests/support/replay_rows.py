"""Rows for a replay buffer, a batch for a learner, and a slow reference of what it draws."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tempest_agent.agent.networks.layout import Layout
from tempest_agent.agent.replay.buffer import ReplayBuffer
from tempest_agent.agent.replay.rows import AGENT, EXPERT, EXPLORATION, Batch, Rows

FEATURES = 4


def make_rows(t: int, games: int, random: np.random.Generator, ends: float = 0.15) -> Rows:
    """Random decisions; codes name the step and the game, final codes are negative."""
    codes = np.zeros((games, FEATURES), np.int8)
    codes[:, 0], codes[:, 1], codes[:, 2] = t % 100, np.arange(games), t // 100
    final = codes.copy()
    final[:, 3] = -1
    return Rows(
        codes=codes,
        spin=random.integers(-31, 32, games).astype(np.int8),
        buttons=random.integers(0, 4, games).astype(np.uint8),
        reward=random.normal(size=games).astype(np.float32),
        terminated=random.random(games) < ends,
        truncated=random.random(games) < ends,
        episode_start=np.zeros(games, np.bool_),
        zap_legal=random.random(games) < 0.5,
        driver=random.integers(0, 3, games).astype(np.uint8),
        label_spin=random.integers(-31, 32, games).astype(np.int8),
        label_buttons=random.integers(0, 4, games).astype(np.uint8),
        labelled=random.random(games) < 0.5,
        final_codes=final,
        final_zap_legal=random.random(games) < 0.5,
    )


def reference(
    history: list[Rows], t: int, game: int, n_steps: int, gamma: float, cut: bool
) -> tuple[float, float, int, NDArray[np.int8] | None, bool]:
    """Return, discount, horizon, bootstrap observation and its zap, written down plainly."""
    total = 0.0
    for k in range(n_steps):
        row = history[t + k]
        total += gamma**k * float(row.reward[game])
        if row.terminated[game]:
            return total, 0.0, k + 1, None, False
        if row.truncated[game]:
            zap = bool(row.final_zap_legal[game])
            return total, gamma ** (k + 1), k + 1, row.final_codes[game], zap
        after = history[t + k + 1]
        stop = t + k + 1 == len(history) - 1 or k + 1 == n_steps
        if stop or (cut and after.driver[game] != AGENT):
            return total, gamma ** (k + 1), k + 1, after.codes[game], bool(after.zap_legal[game])
    raise AssertionError("unreachable")


def check_against_reference(buffer: ReplayBuffer, history: list[Rows], batch: Batch) -> None:
    for i, row in enumerate(batch.rows):
        ring_t, game = divmod(int(row), buffer.num_envs)
        t = max(s for s in range(len(history)) if s % buffer.length == ring_t)
        assert len(history) - buffer.filled <= t < len(history) - 1
        source = history[t]
        total, discount, steps, codes, zap = reference(
            history, t, game, buffer.n_steps, buffer.gamma, buffer.cut
        )
        assert batch.returns[i] == pytest.approx(total, rel=1e-5, abs=1e-6)
        assert batch.discounts[i] == pytest.approx(discount, rel=1e-6)
        assert batch.horizons[i] == steps
        np.testing.assert_array_equal(batch.codes[i], source.codes[game])
        if codes is not None:
            np.testing.assert_array_equal(batch.next_codes[i], codes)
            assert batch.next_zap_legal[i] == zap
        for name in ("spin", "buttons", "driver", "zap_legal", "label_spin", "label_buttons"):
            assert getattr(batch, name)[i] == getattr(source, name)[game]
        assert batch.labelled[i] == source.labelled[game]


def make_batch(rows: int, layout: Layout) -> Batch:
    """A batch without labels, of random numbers."""
    random = np.random.default_rng(1)
    shape = (rows, layout.num_features)
    return Batch(
        codes=random.integers(-127, 128, shape).astype(np.int8),
        next_codes=random.integers(-127, 128, shape).astype(np.int8),
        spin=random.integers(-31, 32, rows).astype(np.int8),
        buttons=random.integers(0, 4, rows).astype(np.uint8),
        returns=random.normal(size=rows).astype(np.float32),
        discounts=np.where(np.arange(rows) % 4 == 0, 0.0, 0.95).astype(np.float32),
        horizons=np.arange(rows) % 3 + 1,
        zap_legal=np.arange(rows) % 2 == 0,
        next_zap_legal=np.arange(rows) % 3 == 0,
        driver=np.resize(np.array([AGENT, EXPLORATION, EXPERT, AGENT], np.uint8), rows),
        label_spin=random.integers(-31, 32, rows).astype(np.int8),
        label_buttons=random.integers(0, 2, rows).astype(np.uint8),
        labelled=np.zeros(rows, np.bool_),
        weights=np.ones(rows, np.float32),
        rows=np.arange(rows),
    )

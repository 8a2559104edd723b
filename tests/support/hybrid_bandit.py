"""A two-stage hybrid-action problem whose best action and values are known, as replayed batches.

A state names a button pair and a place on the spinner axis.  The reward is a bell of height 1
around that place for that pair, and 0 for any other.  The first stage is followed by a second one
at half the worth, and then the game ends: the best values are 1.5 and 1.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from tempest_agent.agent.learner.learner import Learner
from tempest_agent.agent.networks.layout import Layout
from tempest_agent.agent.replay.rows import EXPLORATION, Batch

# Matrices this small only lose time on two threads.
torch.set_num_threads(1)

PLACE, PAIRS, STAGE = 0, slice(1, 5), 5
LAYOUT = Layout(6)
WIDTH = 0.35


def states(random: np.random.Generator, rows: int, stage: NDArray[np.bool_]) -> NDArray[np.int8]:
    codes = np.zeros((rows, LAYOUT.num_features), np.int8)
    codes[:, PLACE] = random.integers(-90, 91, rows)
    codes[np.arange(rows), 1 + random.integers(0, 4, rows)] = 127
    codes[:, STAGE] = stage * 127
    return codes


def reward_of(
    codes: NDArray[np.int8], spin: NDArray[np.int8], buttons: NDArray[np.uint8]
) -> NDArray[np.float32]:
    distance = spin / 31.0 - codes[:, PLACE] / 127.0
    right = codes[:, PAIRS].argmax(axis=1) == buttons
    return (right * np.exp(-0.5 * (distance / WIDTH) ** 2)).astype(np.float32)


def two_peaks(codes: NDArray[np.int8], spin: NDArray[np.int8], _: object) -> NDArray[np.float32]:
    """Whatever the state and the buttons: 1 at 0.7, 0.9 at -0.7, nearly nothing between."""
    place = spin / 31.0
    peaks = np.exp(-0.5 * ((place - 0.7) / 0.2) ** 2) + 0.9 * np.exp(
        -0.5 * ((place + 0.7) / 0.2) ** 2
    )
    return peaks.astype(np.float32)


def random_batch(random: np.random.Generator, rows: int = 256, reward=reward_of) -> Batch:  # type: ignore[no-untyped-def]
    """Random actions in random states of both stages."""
    second = random.random(rows) < 0.5
    codes = states(random, rows, second)
    spin = random.integers(-31, 32, rows).astype(np.int8)
    buttons = random.integers(0, 4, rows).astype(np.uint8)
    return Batch(
        codes=codes,
        next_codes=states(random, rows, np.ones(rows, np.bool_)),
        spin=spin,
        buttons=buttons,
        returns=reward(codes, spin, buttons),
        discounts=np.where(second, 0.0, 0.5).astype(np.float32),
        horizons=np.ones(rows, np.int64),
        zap_legal=np.ones(rows, np.bool_),
        next_zap_legal=np.ones(rows, np.bool_),
        driver=np.full(rows, EXPLORATION, np.uint8),
        label_spin=np.zeros(rows, np.int8),
        label_buttons=np.zeros(rows, np.uint8),
        labelled=np.zeros(rows, np.bool_),
        weights=np.ones(rows, np.float32),
        rows=np.arange(rows),
    )


def train(  # type: ignore[no-untyped-def]
    learner: Learner, updates: int, reward=reward_of, rate: float = 5e-3, rows: int = 256
) -> None:
    random = np.random.default_rng(0)
    for update in range(updates):
        left = 1.0 - update / updates
        learner.update(random_batch(random, rows, reward), rate * (0.1 + 0.9 * left), 0.0)


def greedy_reward(learner: Learner, reward=reward_of) -> float:  # type: ignore[no-untyped-def]
    """Mean reward of the greedy action; 1 is perfect, a random action gets about 0.1."""
    codes = states(np.random.default_rng(1), 500, np.ones(500, np.bool_))
    return float(reward(codes, *learner.act(codes, np.ones(500, np.bool_))).mean())

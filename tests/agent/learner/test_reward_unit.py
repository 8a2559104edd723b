"""The unit of reward: what it changes, what it leaves alone, and how it is measured."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hybrid_bandit import LAYOUT, random_batch
from replay_rows import FEATURES, make_rows

from tempest_agent.agent.learner.learner import Learner
from tempest_agent.agent.learner.targets import measured_unit
from tempest_agent.agent.learner.update_metrics import IN_UNITS
from tempest_agent.agent.networks.layout import Layout
from tempest_agent.agent.replay.buffer import ReplayBuffer
from tempest_agent.agent.replay.rows import Batch
from tempest_agent.agent.replicas import ALONE, Replicas
from tempest_agent.config import ConfigError, load_config

CPU = torch.device("cpu")
SCALE = 2.0**20
"""Multiplying by a power of two is exact."""


def learner_of(*overrides: str, layout: Layout = LAYOUT) -> Learner:
    torch.manual_seed(0)
    base = ["network.hidden=[16]", "learner.precision=float32", "learner.imitation=none"]
    return Learner(layout, load_config(None, [*base, *overrides]), CPU)


def larger(batch: Batch) -> Batch:
    """The same batch where every reward is ``SCALE`` times as large."""
    path = batch.path and batch.path._replace(reward=batch.path.reward * np.float32(SCALE))
    return batch._replace(returns=batch.returns * np.float32(SCALE), path=path)


def batches(trace: str) -> list[Batch]:
    random = np.random.default_rng(0)
    if trace != "retrace":
        return [random_batch(random, 32) for _ in range(4)]
    buffer = ReplayBuffer(36, 3, FEATURES, n_steps=4, gamma=0.8, trace=trace)
    for t in range(12):
        buffer.add(make_rows(t, 3, random))
    return [buffer.sample(32) for _ in range(4)]


@pytest.mark.parametrize(
    ("trace", "settings"),
    [
        ("uncorrected", ()),
        ("uncorrected", ("learner.loss=iqn", "learner.double_q=false")),
        ("uncorrected", ("network.layer_norm=false", "learner.loss=squared")),
        ("retrace", ("learner.trace=retrace",)),
    ],
)
def test_larger_rewards_in_a_larger_unit_are_learned_bit_for_bit_alike(
    trace: str, settings: tuple[str, ...]
) -> None:
    layout = LAYOUT if trace == "uncorrected" else Layout(FEATURES)
    few = learner_of("learner.target_clip=0.25", *settings, layout=layout)
    units = f"learner.target_clip={0.25 * SCALE}", f"learner.reward_unit={SCALE}"
    many = learner_of(*units, *settings, layout=layout)
    for batch in batches(trace):
        torch.manual_seed(1)
        error = few.update(batch, 1e-3, 0.0)
        torch.manual_seed(1)
        np.testing.assert_array_equal(many.update(larger(batch), 1e-3, 0.0), error)
    for ours, theirs in zip(many.online.parameters(), few.online.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    wanted = few.figures()
    assert wanted["target_clip_hits"] > 0
    wanted |= {name: SCALE * wanted[name] for name in IN_UNITS if name in wanted}
    assert many.figures() == wanted


class Two(Replicas):
    """Two processes whose sums are as given."""

    size = 2

    def __init__(self, other: tuple[float, float]) -> None:
        self.other = list(other)

    def total(self, value: Any) -> Any:
        return value + self.other.pop(0)


@pytest.mark.parametrize(
    ("rewards", "unit"),
    [
        ([1.0, 0.0, -1.0], 1.0),
        ([0.01, 0.01], 1.0),
        ([0.002, -0.002], 1e-3),
        ([300.0], 1.0),
        ([400.0], 1e3),
        ([-16e6, -1e6, 0.0], 1e7),
        ([4e-6] * 3, 1e-5),
        ([0.0] * 999 + [1.0], 1.0),
        ([0.0] * 999 + [-1e6], 1e6),
        # A rare large one among usual ones is no other size.
        ([-1.0] * 99 + [1000.0], 1.0),
        ([2e5, np.inf, np.nan], 1e5),
        ([3e38] * 8, 1e30),
        ([1e-40], 1e-30),
        ([0.0, 0.0], 0.0),
        ([], 0.0),
    ],
)
def test_the_unit_is_the_mean_size_of_rewards_that_are_far_from_1(
    rewards: list[float], unit: float
) -> None:
    assert measured_unit(np.array(rewards, np.float32), ALONE) == pytest.approx(unit)


def test_processes_that_learn_together_measure_together() -> None:
    mine, theirs = np.full((4, 1), 2e6, np.float32), np.zeros((4, 1), np.float32)
    assert measured_unit(mine, Two((4.0, 4 * 2e4))) == 1e6
    assert measured_unit(theirs, Two((4.0, 4 * 2e6))) == 1e6


def test_it_is_measured_once_and_kept_by_the_state() -> None:
    learner = learner_of("learner.reward_unit=0")
    learner.measure_unit(np.zeros(5, np.float32))
    assert (learner.reward_unit, learner.unit) == (0.0, 1.0)
    learner.measure_unit(np.full(5, 1e6, np.float32))
    learner.measure_unit(np.ones(5, np.float32))
    assert learner.unit == 1e6
    again = learner_of("learner.reward_unit=0")
    again.load_state_dict(learner.state_dict())
    assert again.unit == 1e6
    old = learner.state_dict()
    del old["reward_unit"]
    again.load_state_dict(old)
    assert again.reward_unit == 1.0


def test_settings_are_kept_and_bins_have_no_other_unit() -> None:
    learner = learner_of()
    learner.measure_unit(np.full(5, 1e6, np.float32))
    assert learner.unit == 1.0
    bins = learner_of("learner.loss=c51", "learner.reward_unit=0")
    bins.measure_unit(np.full(5, 1e6, np.float32))
    assert bins.unit == 1.0
    with pytest.raises(ConfigError, match=r"reward_unit=1000; leave it at 1"):
        load_config(None, ["learner.loss=c51", "learner.reward_unit=1000"])
    with pytest.raises(ConfigError, match="too small to divide by; give at least 1e-30, or 0"):
        load_config(None, ["learner.reward_unit=1e-31"])

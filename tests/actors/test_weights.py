"""Snapshots of the weights: whole, numbered, and found out when they are not."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest
import torch

from tempest_agent.actors.publisher import WeightsPublisher, arithmetic, pack, unpack
from tempest_agent.actors.snapshot import NETWORKS, MixedWeightsError, Snapshot
from tempest_agent.agent.learner.learner import Learner
from tempest_agent.agent.networks.layout import Layout
from tempest_agent.agent.networks.q_network import QNetwork
from tempest_agent.config import Config


def values(fill: float, size: int = 6) -> Any:
    return np.full(size, fill, np.float32)


def test_a_snapshot_is_read_only_and_checks() -> None:
    snapshot = Snapshot.of(3, 70, "bfloat16", np.arange(6, dtype=np.float32))
    snapshot.check()
    assert arithmetic(snapshot) is torch.bfloat16
    assert arithmetic(Snapshot.of(1, 1, None, values(1.0))) is None
    assert [list(snapshot.network(name)) for name in NETWORKS] == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(ValueError, match="read-only"):
        snapshot.values[0] = 1.0
    copied = pickle.loads(pickle.dumps(snapshot, protocol=5))
    copied.check()


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"updates": 2},
        {"dtype": "bfloat16"},
        {"values": np.array([1, 1, 1, 2, 1, 1], np.float32)},
    ],
)
def test_a_mixture_is_found_out(change: dict[str, Any]) -> None:
    snapshot = dataclasses.replace(Snapshot.of(1, 1, None, values(1.0)), **change)
    with pytest.raises(MixedWeightsError, match="checksum"):
        snapshot.check()


def small() -> Config:
    config = Config()
    network = dataclasses.replace(config.network, hidden=(8,))
    return dataclasses.replace(config, network=network)


def test_networks_come_back_bit_for_bit() -> None:
    learner = Learner(Layout(4), small(), torch.device("cpu"))
    found: list[Snapshot] = []
    publisher = WeightsPublisher(learner, found.append, interval=10)
    with torch.no_grad():
        for number, network in enumerate((learner.followers.target, learner.followers.average)):
            for parameter in network.parameters():
                parameter.add_(number + 1.0)
    publisher.publish()
    other = QNetwork(Layout(4), small().network, small().learner)
    originals = (learner.online, learner.followers.target, learner.followers.average)
    for name, original in zip(NETWORKS, originals, strict=True):
        unpack(found[0].network(name), other)
        for own, theirs in zip(original.parameters(), other.parameters(), strict=True):
            assert torch.equal(own, theirs)


def test_values_of_another_form_are_refused() -> None:
    network = torch.nn.Linear(2, 1)
    with pytest.raises(ValueError, match="3 values, the snapshot 4"):
        unpack(values(0.0, 4), network)


def test_published_values_do_not_move_with_the_learner() -> None:
    network = torch.nn.Linear(2, 1)
    before = pack([network])
    kept = before.copy()
    with torch.no_grad():
        network.weight.add_(1.0)
    np.testing.assert_array_equal(before, kept)


def test_a_version_every_so_many_updates_and_after_going_back() -> None:
    learner = Learner(Layout(4), small(), torch.device("cpu"))
    found: list[Snapshot] = []
    publisher = WeightsPublisher(learner, found.append, interval=10)
    published = []
    for updates in (0, 9, 10, 19, 25, 3, 5):
        learner.updates = updates
        published.append(publisher.publish_if_due())
    assert published == [True, False, True, False, True, True, False]
    assert [(each.version, each.updates) for each in found] == [(1, 0), (2, 10), (3, 25), (4, 3)]
    for each in found:
        each.check()

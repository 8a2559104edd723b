"""The value head by lanes: a knob count is worth what the place is where the claw lands."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tempest_agent.agent.checkpoints.policy import Policy
from tempest_agent.agent.games.tempest_games import POSITION_FEATURE, TEMPEST_LAYOUT
from tempest_agent.agent.inference.deterministic_network import DeterministicNetwork
from tempest_agent.agent.learner.learner import Learner
from tempest_agent.agent.networks.landings import LANE_COUNTS, place_in_lane
from tempest_agent.agent.networks.lane_head import (
    HALVES,
    NODES,
    OFFSETS,
    LaneHead,
    landing_weights,
)
from tempest_agent.agent.networks.layout import Layout
from tempest_agent.agent.networks.q_network import QNetwork
from tempest_agent.config import Config, ConfigError, load_config
from tempest_agent.envs.engine.batch import GameBatch
from tempest_agent.envs.engine.settings import GameSettings

SETTINGS = (
    "network.encoder=lanes",
    "network.value_head=lanes",
    "network.spinner_knots=63",
    "network.hidden=[24]",
    "network.lane_width=8",
    "replay.capacity=20000",
)


def config_with(*more: str) -> Config:
    return load_config(None, [*SETTINGS, *more])


def games(levels: list[int], count: int = 32, ticks: int = 40, delay: int = 0) -> GameBatch:
    """Games of which each has played at random for a while."""
    batch = GameBatch(count, GameSettings(start_level=levels, input_delay=delay))
    batch.reset(seeds=np.random.SeedSequence(5))
    random = np.random.default_rng(5)
    for _ in range(ticks):
        spin = random.integers(-31, 32, count).astype(np.int8)
        batch.step(spin, np.ones(count, np.uint8))
    return batch


def test_counts_land_where_the_machine_puts_the_claw() -> None:
    """Closed and open wells; at an end of an open one the claw stops and nothing is said."""
    table = landing_weights(31)
    batch = games([1, 5, 9])
    start = batch.clone()
    place = place_in_lane(torch.from_numpy(batch.codes[:, POSITION_FEATURE] / 127.0)).numpy()
    before = batch.ram["rim_pos"].astype(int)
    np.testing.assert_array_equal(place, before % LANE_COUNTS)
    compared = 0
    for turn in range(-31, 32):
        batch.restore(start)
        batch.step(np.full(32, turn, np.int8), np.zeros(32, np.uint8))
        after = batch.ram["rim_pos"].astype(int)
        alive = (batch.games["step_death"] < 0) & (start.shape[0] == 32)
        free = alive & (after == (before - turn) % 256)
        for game in np.flatnonzero(free):
            shares = table[place[game], :, turn + 31].astype(float) / HALVES
            lanes, within = np.divmod(np.flatnonzero(shares), NODES)
            offset = (after[game] // LANE_COUNTS - before[game] // LANE_COUNTS + 8) % 16 - 8
            assert {OFFSETS[lane] for lane in lanes} == {offset}
            # The nodes stand at counts 0, 7.5 and 15 of the lane.
            counts = (shares[shares > 0] * within * 7.5).sum()
            assert counts == pytest.approx(after[game] % LANE_COUNTS)
            compared += 1
    assert compared > 1000


def test_from_every_place_each_lane_is_worth_the_same() -> None:
    """What one count is worth from one place, the next count is worth from the next place."""
    torch.manual_seed(0)
    head = LaneHead(lane_width=6, width=5, pairs=4, counts=31)
    lanes, latent = torch.rand(1, 16, 6), torch.rand(1, 5)
    with torch.no_grad():
        values = head(lanes.expand(16, -1, -1), latent.expand(16, -1), torch.arange(16))
    assert values.shape == (16, 4, 63)
    assert values.std() > 0.01
    for place in range(15):
        torch.testing.assert_close(values[place, :, :-1], values[place + 1, :, 1:])


def test_only_the_lane_where_it_lands_and_the_whole_state_matter() -> None:
    torch.manual_seed(1)
    head = LaneHead(lane_width=6, width=5, pairs=4, counts=31)
    lanes, latent, middle = torch.rand(1, 16, 6), torch.rand(1, 5), torch.tensor([8])
    other = lanes.clone()
    other[0, 15] += 1.0
    with torch.no_grad():
        change = (head(other, latent, middle) - head(lanes, latent, middle))[0]
    # From place 8 the counts 9 to 24 lead one lane down; all others move by the common mean.
    elsewhere = torch.ones(63, dtype=torch.bool)
    elsewhere[31 + 9 : 31 + 25] = False
    assert change[:, elsewhere].std() < 1e-6
    assert (change[:, ~elsewhere] - change[0, 0]).abs().min() > 1e-6


@pytest.mark.parametrize("lane", [-4, -1, 0, 3])
def test_lanes_count_from_where_inputs_under_way_take_the_claw(lane: int) -> None:
    torch.manual_seed(2)
    head = LaneHead(lane_width=6, width=5, pairs=4, counts=31)
    lanes, latent, place = torch.rand(16, 16, 6), torch.rand(16, 5), torch.arange(16)
    with torch.no_grad():
        there = head(lanes.roll(-lane, 1), latent, place)
        assert torch.equal(head(lanes, latent, 16 * lane + place), there)


@pytest.mark.parametrize("delay", [0, 2])
def test_exact_play_is_that_of_the_network(delay: int) -> None:
    config = config_with()
    torch.manual_seed(3)
    network = QNetwork(TEMPEST_LAYOUT, config.network, config.learner).eval()
    with torch.no_grad():
        network.lane_head.nodes.weight.mul_(30)  # type: ignore[union-attr]
    batch = games([1, 9, 20, 40, 65], count=200, delay=delay)
    legal = np.arange(200) % 2 == 0
    spin, buttons = DeterministicNetwork(network).act(batch.codes, legal)
    with torch.no_grad():
        values = network(torch.from_numpy(batch.codes).float() / 127).values.numpy()
    values[~legal, 2:] = -np.inf
    best = values.max(axis=(1, 2))
    chosen = values[np.arange(200), buttons, spin.astype(int) + 31]
    np.testing.assert_allclose(chosen, best, atol=1e-5)
    assert len(np.unique(spin)) > 3
    assert len(np.unique(buttons)) > 2
    again = Policy(network, config).act(batch.codes[:7], legal[:7])
    np.testing.assert_array_equal(again[0], spin[:7])


def test_updates_move_all_its_parts_and_the_followers(tmp_path) -> None:  # type: ignore[no-untyped-def]
    from tempest_agent.agent.checkpoints.policy import load_policy
    from tempest_agent.training.trainer import Trainer

    config = config_with("network.policy_head=true", "network.acts=policy", "run.num_envs=16",
                         "replay.learning_starts=400", "learner.batch_size=32",
                         "run.steps=2000", "learner.target_update_interval=10",
                         "teacher.score=1000")  # fmt: skip
    trainer = Trainer(config, tmp_path)
    learner: Learner = trainer.loop.learner
    first = {name: value.clone() for name, value in learner.online.state_dict().items()}
    assert not any("weights" in name for name in first), "the landing table is no parameter"
    trainer.run()
    for network in (learner.online, learner.followers.target, learner.followers.average):
        state = network.state_dict()
        unmoved = [name for name in first if torch.equal(first[name], state[name])]
        assert not unmoved
    assert trainer.last_checkpoint is not None
    player = load_policy(trainer.last_checkpoint)
    assert player.network.layout.lane_position == POSITION_FEATURE
    batch = games([1])
    spin, _ = player.act(batch.codes, np.zeros(32, np.bool_))
    assert np.abs(spin.astype(int)).max() <= 31


@pytest.mark.parametrize(
    "change", ["network.encoder=mlp", "network.spinner_knots=9", "learner.loss=c51",
               "network.dueling=false", "network.spinner_head=regression"]
)  # fmt: skip
def test_what_it_does_not_go_with_is_said(change: str) -> None:
    with pytest.raises(ConfigError, match=r"network\.value_head=lanes"):
        config_with(change)


def test_it_needs_to_know_where_the_claw_stands() -> None:
    config = config_with()
    with pytest.raises(ValueError, match="lane_position"):
        QNetwork(Layout(16 * 4 + 3, lane_features=4), config.network, config.learner)

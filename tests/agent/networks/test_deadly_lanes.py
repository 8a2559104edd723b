"""The mask: turns into a lane that is deadly in this tick are no choice, unless all are."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tempest_agent.agent.games.tempest_games import PLAIN_LAYOUT, TEMPEST_LAYOUT
from tempest_agent.agent.inference.deterministic_network import DeterministicNetwork
from tempest_agent.agent.inference.greedy import choose, choose_to_act
from tempest_agent.agent.networks.actions import pair_mask, to_counts
from tempest_agent.agent.networks.deadly_lanes import deadly_turns
from tempest_agent.agent.networks.q_network import QNetwork
from tempest_agent.config import ConfigError, NetworkConfig, load_config
from tempest_agent.envs.engine.batch import GameBatch
from tempest_agent.envs.engine.settings import GameSettings
from tempest_agent.errors import UserError

LAYOUT = TEMPEST_LAYOUT


def games(delay: int = 0, count: int = 48) -> GameBatch:
    """Games on closed and open wells of which each has played at random for a while."""
    settings = GameSettings(start_level=[1, 5, 9], input_delay=delay)
    batch = GameBatch(count, settings)
    batch.reset(seeds=np.random.SeedSequence(5))
    random = np.random.default_rng(5)
    for tick in range(40):
        # Half of the games run into the edges of their wells.
        spin = random.integers(-31, 32, count)
        spin[::2] = 31 if tick % 40 < 20 else -31
        batch.step(spin.astype(np.int8), np.ones(count, np.uint8))
    return batch


def observed(batch: GameBatch, deadly: np.ndarray) -> np.ndarray:
    """The games' codes with a forecast whose first tick is ``deadly``, bool ``(N, 16)``."""
    codes = batch.codes.copy()
    first, size = LAYOUT.forecast_start, LAYOUT.forecast_features
    tail = codes[:, first:].reshape(len(codes), 16, size)
    # All that the mask must not look at is drawn at random.
    tail[:] = np.random.default_rng(1).integers(-127, 128, tail.shape)
    tail[:, :, 0] = deadly * 127
    codes[:, first:] = tail.reshape(len(codes), -1)
    return codes


@pytest.mark.parametrize("delay", [0, 2])
def test_turns_end_where_the_machine_puts_the_claw(delay: int) -> None:
    """Closed and open wells, their edges, and inputs that are still under way."""
    batch = games(delay)
    start, lanes = batch.clone(), batch.ram["player_lane"].astype(int)
    deadly = np.random.default_rng(0).random((len(lanes), 16)) < 0.5
    codes = observed(batch, deadly)
    got = deadly_turns(torch.from_numpy(codes).float() / 127, LAYOUT).numpy()
    compared = at_edge = 0
    for turn in range(-31, 32):
        batch.restore(start)
        alive = np.ones(len(lanes), np.bool_)
        for spin in (turn, *[0] * delay):
            before = batch.ram["rim_pos"].astype(int)
            batch.step(np.full(len(lanes), spin, np.int8), np.zeros(len(lanes), np.uint8))
            alive &= batch.games["step_death"] < 0
        landed = batch.ram["rim_pos"].astype(int)
        for game in np.flatnonzero(alive):
            assert got[game, turn + 31] == deadly[game, (landed[game] // 16 - lanes[game]) % 16]
        at_edge += int((alive & (landed != (before - turn) % 256)).sum())
        compared += int(alive.sum())
    assert compared > 1000
    assert at_edge > 100


def network_of(**settings: object) -> QNetwork:
    lanes = {"value_head": "lanes", "spinner_knots": 63} if "policy_head" in settings else {}
    config = NetworkConfig(
        encoder="lanes",
        hidden=(24,),
        lane_width=8,
        avoids_deadly=True,
        **(lanes | settings),  # type: ignore[arg-type]
    )
    torch.manual_seed(3)
    network = QNetwork(LAYOUT, config).eval()
    with torch.no_grad():
        network.value_head.weight.mul_(30)
        network.spinner_head.weight.mul_(20)
        for head in (network.lane_head, network.policy_head):
            if head is not None:
                head.nodes.weight.mul_(30)
    return network


@pytest.mark.parametrize(
    "settings",
    [
        {"policy_head": True, "acts": "policy"},
        {"policy_head": True, "acts": "values"},
        {},
        {"spinner_head": "regression"},
        {"spinner_interpolation": "quadratic"},
    ],
)
def test_a_deadly_turn_is_chosen_only_where_all_are(settings: dict[str, object]) -> None:
    network = network_of(**settings)
    batch = games(count=200)
    share = np.linspace(0, 1, 200)[:, None]
    deadly = np.random.default_rng(2).random((200, 16)) < share
    deadly[:20], deadly[-20:] = False, True
    codes, legal = observed(batch, deadly), np.arange(200) % 2 == 0
    features = torch.from_numpy(codes).float() / 127
    turns = deadly_turns(features, LAYOUT).numpy()
    exact = DeterministicNetwork(network)
    spin, buttons = exact.act(codes, legal)
    with torch.no_grad():
        choice = choose_to_act(network, network, features, pair_mask(torch.from_numpy(legal)))
    same = (choice.pair.numpy() == buttons) & (to_counts(choice.position).numpy() == spin)
    assert same.mean() > 0.98
    assert (buttons[~legal] < 2).all()
    network.avoids_deadly = False
    spin_without, buttons_without = DeterministicNetwork(network).act(codes, legal)
    row = np.arange(200)
    dies = turns[row, spin.astype(int) + 31]
    # Where a candidate is safe, and with 63 knots every turn is one, a safe one is chosen.
    if network.num_knots == 63:
        assert not dies[~turns.all(axis=1)].any()
        would_die = turns[row, spin_without.astype(int) + 31]
        kept = ~would_die
        assert (would_die & ~turns.all(axis=1)).sum() > 10
        np.testing.assert_array_equal(spin[kept], spin_without[kept])
    assert dies[:-20].mean() < turns[row, spin_without.astype(int) + 31][:-20].mean()
    for untouched in (slice(20), slice(180, 200)):
        np.testing.assert_array_equal(spin[untouched], spin_without[untouched])
        np.testing.assert_array_equal(buttons[untouched], buttons_without[untouched])


def test_targets_have_the_candidates_of_play() -> None:
    """The best value of a state is that of a turn that may be played."""
    network = network_of(policy_head=True)
    batch = games(count=60)
    deadly = np.random.default_rng(4).random((60, 16)) < 0.5
    features = torch.from_numpy(observed(batch, deadly)).float() / 127
    with torch.no_grad():
        heads = network(features)
        choice = choose(network, heads, torch.ones(60, 4, dtype=torch.bool))
    allowed = heads.values.clone()
    assert heads.deadly is not None
    spared = ~heads.deadly.all(dim=1)
    mask = heads.deadly & spared.unsqueeze(1)
    allowed.masked_fill_(mask.unsqueeze(1), -torch.inf)
    torch.testing.assert_close(choice.value, allowed.amax(dim=(1, 2)), rtol=0, atol=1e-5)


def test_without_a_forecast_the_mask_is_refused() -> None:
    settings = ["network.encoder=lanes", "network.avoids_deadly=true"]
    config = load_config(None, settings)
    with pytest.raises(UserError, match="forecast"):
        QNetwork(PLAIN_LAYOUT, config.network, config.learner)
    with pytest.raises(ConfigError, match=r"game\.observation=features"):
        load_config(None, [*settings, "game.observation=features_plain"])

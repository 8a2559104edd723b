"""Networks of all forms that a page plays choose there what they choose in Python."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from in_node import choices_of, thoughts_of
from numpy.typing import NDArray

from tempest_agent.agent.games.tempest_games import PLAIN_LAYOUT, TEMPEST_LAYOUT
from tempest_agent.agent.inference.deterministic_network import DeterministicNetwork
from tempest_agent.agent.networks.deadly_lanes import deadly_turns
from tempest_agent.agent.networks.landings import landings
from tempest_agent.agent.networks.layout import Layout
from tempest_agent.agent.networks.q_network import QNetwork
from tempest_agent.config import load_config
from tempest_agent.envs.engine.batch import GameBatch
from tempest_agent.envs.engine.settings import GameSettings
from tempest_agent.envs.features.layout import ZAP_LEGAL_FEATURE
from tempest_agent.errors import UserError
from tempest_agent.web.mind import UNKNOWN
from tempest_agent.web.network_file import network_bytes

PLAIN = ("network.avoids_deadly=false", "game.observation=features_plain")
BY_VALUES = ("network.acts=values",)


def network_of(layout: Layout, *changes: str) -> QNetwork:
    """An untrained network of the shipped recipe, narrower, whose actions differ much."""
    narrow = ("network.hidden=[48]", "network.lane_width=16")
    config = load_config("champion", [*narrow, *changes])
    torch.manual_seed(3)
    network = QNetwork(layout, config.network, config.learner).eval()
    with torch.no_grad():
        network.spinner_head.weight.mul_(30)
        for head in (network.lane_head, network.policy_head):
            if head is not None:
                head.nodes.weight.mul_(30)
    return network


@pytest.fixture(scope="module")
def codes() -> NDArray[np.int8]:
    """Observations of games on closed and open wells, half of them at the edges, some late."""
    games = 60
    batch = GameBatch(
        games,
        GameSettings(start_level=[1, 5, 9, 17, 33, 65, 81, 99], input_delay=[0, 0, 0, 1, 2, 4]),
    )
    batch.reset(seeds=np.random.SeedSequence(5))
    random = np.random.default_rng(5)
    seen = []
    for tick in range(40):
        spin = random.integers(-31, 32, games)
        spin[::2] = 31 if tick < 20 else -31
        batch.step(spin.astype(np.int8), random.integers(0, 2, games).astype(np.uint8))
        seen.append(batch.codes.copy())
    codes = np.concatenate(seen)
    # Lanes are seldom deadly in the next tick: in half of the rows some are said to be, or all.
    first, size = TEMPEST_LAYOUT.forecast_start, TEMPEST_LAYOUT.forecast_features
    half = np.arange(len(codes)) % 2 == 0
    deadly = random.random((half.sum(), 16)) < random.choice([0.3, 0.7, 1.0], (half.sum(), 1))
    codes[half, first::size] = deadly * 127
    return codes


@pytest.mark.parametrize(
    ("layout", "changes"),
    [
        (TEMPEST_LAYOUT, ()),
        (TEMPEST_LAYOUT, BY_VALUES),
        (TEMPEST_LAYOUT, (*BY_VALUES, "network.avoids_deadly=false", "network.layer_norm=false")),
        (PLAIN_LAYOUT, PLAIN),
    ],
    ids=["policy", "values", "values-without-mask", "plain-policy"],
)
def test_it_chooses_as_in_python(
    codes: NDArray[np.int8], layout: Layout, changes: tuple[str, ...]
) -> None:
    network = network_of(layout, *changes)
    seen, legal = codes[:, : layout.num_features], codes[:, ZAP_LEGAL_FEATURE] > 0
    spin, buttons = DeterministicNetwork(network).act(seen, legal)
    chosen = choices_of(network_bytes(network, "it"), codes)
    np.testing.assert_array_equal(chosen[:, 0], spin)
    np.testing.assert_array_equal(chosen[:, 1], buttons)
    assert len(np.unique(spin)) > 20
    assert len(np.unique(buttons)) > 1
    if network.avoids_deadly:
        deadly = deadly_turns(torch.from_numpy(codes).float() / 127, layout).numpy()
        some = deadly.any(axis=1) & ~deadly.all(axis=1)
        assert some.sum() > 400
        assert deadly.all(axis=1).any()
        assert not deadly[some, chosen[some, 0].astype(int) + 31].any()


def test_a_policys_thoughts_are_the_chances_that_it_goes_there() -> None:
    ticks, seed, level = 80, 1, 7
    network = network_of(TEMPEST_LAYOUT)
    chances = thoughts_of(
        GameSettings(start_level=level), seed, network_bytes(network, "it"), ticks
    )
    batch = GameBatch(1, GameSettings(start_level=level, max_ticks=ticks))
    batch.reset(seeds=seed)
    exact = DeterministicNetwork(network)
    decisions = 0
    while not (batch.terminated[0] or batch.truncated[0]):
        legal = batch.codes[:, ZAP_LEGAL_FEATURE] > 0
        with torch.no_grad():
            observation = torch.from_numpy(batch.codes).float() / 127
            logits, deadly = network.preferences(observation)
            _, landed = landings(observation, TEMPEST_LAYOUT)
        assert deadly is not None
        logits[0, :, deadly[0] & ~deadly.all()] = -torch.inf
        if not legal[0]:
            logits[0, 2:] = -torch.inf
        shares = torch.softmax(logits.flatten(), 0).view(4, 63).sum(dim=0).numpy()
        lanes = (int(batch.ram["player_lane"][0]) + landed[0].numpy() // 16) % 16
        expected = np.bincount(lanes, shares, 16)
        known = chances[decisions] != UNKNOWN
        np.testing.assert_allclose(chances[decisions][known], expected[known], atol=1e-5)
        assert not expected[~known].any()
        assert chances[decisions][known].sum() == pytest.approx(1.0)
        batch.step(*exact.act(batch.codes, legal))
        decisions += 1
    assert decisions == len(chances)


def test_a_network_of_another_form_is_refused_with_what_shows_it() -> None:
    network = network_of(TEMPEST_LAYOUT, "network.encoder=mlp", "network.value_head=knots",
                         "network.policy_head=false", "teacher.labels=action",
                         *BY_VALUES)  # fmt: skip
    with pytest.raises(UserError, match=r"^my\.pt: a page plays .* play my\.pt --record FILE\.mp4"):
        network_bytes(network, "my.pt")

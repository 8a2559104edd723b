"""Targets as settings change them: retrace, double-Q, clamp."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hybrid_bandit import LAYOUT, random_batch
from replay_rows import FEATURES, make_rows

from tempest_agent.agent.inference.greedy import features
from tempest_agent.agent.learner.learner import Learner
from tempest_agent.agent.learner.retrace import (
    held_actions,
    knot_shares,
    nearest_index,
    pair_chance,
    policy,
    retrace,
    trace_weights,
)
from tempest_agent.agent.networks.interpolation import nearest_knot
from tempest_agent.agent.networks.layout import Layout
from tempest_agent.agent.replay.buffer import ReplayBuffer
from tempest_agent.agent.replay.make_replay import make_replay
from tempest_agent.agent.replay.rows import AGENT, EXPERT, EXPLORATION
from tempest_agent.config import ExplorationConfig, load_config

CPU = torch.device("cpu")


def learner_of(*overrides: str, layout: Layout = LAYOUT) -> Learner:
    torch.manual_seed(0)
    base = ("network.hidden=[16]", "learner.precision=float32", "learner.imitation=none")
    learner = Learner(layout, load_config(None, [*base, *overrides]), CPU)
    with torch.no_grad():
        # Different networks, and values that differ enough to matter.
        learner.online.value_head.weight.mul_(30)
        learner.followers.target.value_head.weight.normal_()
    return learner


def test_trace_weights_by_hand() -> None:
    chance = torch.tensor([0.6, 0.6, 0.02, 0.6, 0.02])
    driver = torch.tensor([AGENT, EXPERT, EXPLORATION, EXPLORATION, EXPLORATION])
    held = torch.tensor([False, False, False, False, True])
    random_chance = torch.full((5,), 0.05)
    got = trace_weights(chance, driver, held, random_chance, decay=0.5)
    torch.testing.assert_close(got, torch.tensor([0.3, 0.3, 0.2, 0.5, 0.01]))


def test_a_random_action_is_held_where_the_one_before_turned_as_much() -> None:
    driver = torch.tensor([[EXPLORATION] * 4, [AGENT, EXPLORATION, EXPLORATION, AGENT]])
    spin = torch.tensor([[5, 5, 5, -3], [7, 7, 7, 7]])
    assert held_actions(driver, spin).tolist() == [
        [False, True, True, False], [False, False, True, False],
    ]  # fmt: skip


def test_random_actions_have_the_chances_they_are_drawn_with() -> None:
    pairs = torch.arange(4)
    settings = ExplorationConfig(fire_share=0.7, zap_share=0.1)
    for legal in (True, False):
        chance = pair_chance(pairs, torch.full((4,), legal), settings)
        assert chance.sum().item() == pytest.approx(1.0)
        assert (chance[2:] > 0).all() == legal
    for counts, knots in ((31, 9), (31, 63), (32_767, 9), (31, 1)):
        shares = knot_shares(counts, knots)
        turns = torch.arange(-counts, counts + 1) / counts
        places = nearest_knot(turns, knots)
        for knot, share in zip(places.unique(), shares, strict=True):
            assert share == pytest.approx((places == knot).float().mean().item(), rel=1e-4)
        assert len(shares) == knots


def test_policy_is_a_softmax_over_legal_knots() -> None:
    values = torch.arange(12.0).view(1, 4, 3)
    legal = torch.tensor([[True, True, False, False]])
    got = policy(values, legal, 2.0)
    assert got[0, 4].item() == pytest.approx(np.exp(4 / 2) / np.exp(np.arange(6) / 2).sum())
    assert (got[0, 6:] == 0).all()
    assert nearest_index(torch.tensor([-1.0, -0.4, 0.1, 0.6, 1.0]), 3).tolist() == [0, 1, 1, 2, 2]


def slow_retrace(buffer, learner, batch, i):  # type: ignore[no-untyped-def]
    """Munos' sum for one row, walked decision by decision along the ring in plain numbers.

    Q(x, a) + sum over t of gamma^t c_1 ... c_t (r_t + gamma E_pi Q(x_t+1, .) - Q(x_t, a_t)), with
    c_s = lambda min(1, pi(a_s | x_s) / mu(a_s | x_s)).
    """
    setting, explore = learner.learner, learner.config.exploration

    def values(network, codes, zap):  # type: ignore[no-untyped-def]
        with torch.no_grad():
            out = network(torch.from_numpy(codes[None]).float() / 127).values
        return out[0, : 4 if zap else 2].double().numpy()

    def pi(codes, zap):  # type: ignore[no-untyped-def]
        powers = np.exp(values(learner.online, codes, zap) / setting.trace_temperature)
        return powers / powers.sum()

    def expected(codes, zap):  # type: ignore[no-untyped-def]
        return float((pi(codes, zap) * values(learner.followers.target, codes, zap)).sum())

    def mu(at, before):  # type: ignore[no-untyped-def]
        if (flags[at] >> 4) & 3 != EXPLORATION:
            return 1.0
        if (flags[before] >> 4) & 3 == EXPLORATION and spins[at] == spins[before]:
            return 1.0
        zap = explore.zap_share * bool(flags[at] & 8)
        presses = zap if buttons[at] >= 2 else 1.0 - zap
        presses *= explore.fire_share if buttons[at] % 2 else 1.0 - explore.fire_share
        # Of the 63 turns, those that lie nearest to the knot of this one.
        nearest = np.rint((np.arange(-31, 32) / 31 + 1) * 0.5 * (knots - 1))
        return presses * (nearest == nearest[31 + spins[at]]).mean()

    flags, spins, buttons, rewards = (
        column.reshape(-1) for column in (buffer.flags, buffer.spin, buffer.buttons, buffer.reward)
    )
    codes, knots = buffer.codes.reshape(-1, FEATURES), learner.online.num_knots
    steps = int(batch.horizons[i])
    way = [(int(batch.rows[i]) + k * buffer.num_envs) % flags.size for k in range(steps + 1)]
    total, trace, effective = 0.0, 1.0, 0.0
    for k, at in enumerate(way[:steps]):
        zap, position = bool(flags[at] & 8), spins[at] / 31
        place = (position + 1) * 0.5 * (knots - 1)
        # Actions that are not legal are never taken, but these rows are random.
        mine = values(learner.followers.target, codes[at], True)[buttons[at]]
        taken = float(np.interp(place, np.arange(knots), mine))
        if k == 0:
            total = taken
        else:
            legal = zap or buttons[at] < 2
            chance = pi(codes[at], zap)[buttons[at], round(place)] if legal else 0.0
            trace *= setting.trace_decay * min(1.0, chance / max(mu(at, way[k - 1]), 1e-6))
        effective += trace
        if k < steps - 1:
            follow = expected(codes[way[k + 1]], bool(flags[way[k + 1]] & 8))
        elif batch.discounts[i] > 0:
            follow = expected(batch.next_codes[i], bool(batch.next_zap_legal[i]))
        else:
            follow = 0.0
        total += buffer.gamma**k * trace * (rewards[at] + buffer.gamma * follow - taken)
    return total, effective


def test_retrace_from_the_replay_equals_a_slow_walk() -> None:
    games, random = 3, np.random.default_rng(4)
    learner = learner_of(
        "learner.trace=retrace", "learner.trace_decay=0.9", "learner.trace_temperature=2",
        "learner.gamma=0.8", layout=Layout(FEATURES),
    )  # fmt: skip
    buffer = ReplayBuffer(games * 12, games, FEATURES, n_steps=4, gamma=0.8, trace="retrace")
    for t in range(20):
        rows = make_rows(t, games, random)
        # Few turns and often random ones, so that some are held.
        turns = random.integers(-2, 3, games).astype(np.int8) * 13
        driver = random.choice([AGENT, EXPLORATION, EXPLORATION, EXPERT], games).astype(np.uint8)
        buffer.add(rows._replace(spin=turns, driver=driver))
    batch = buffer.sample(60)
    assert batch.path is not None
    assert held_actions(*map(torch.from_numpy, (batch.path.driver, batch.path.spin))).any()
    target = learner.targets(batch, learner.target_clip)
    for i in range(60):
        value, effective = slow_retrace(buffer, learner, batch, i)
        assert target.raw[i].item() == pytest.approx(value, rel=1e-3, abs=1e-4)
        assert target.effective_n[i].item() == pytest.approx(effective, rel=1e-3)
    assert target.effective_n.mean().item() < batch.horizons.mean()
    learner.update(batch, 1e-3, 0.0)
    assert learner.metrics.read()["effective_n"] == pytest.approx(target.effective_n.mean().item())


def test_retrace_with_full_traces_is_the_plain_return() -> None:
    random = np.random.default_rng(0)
    taken, following = (torch.from_numpy(random.normal(size=(2, 3))).float() for _ in range(2))
    # Where each following value is the next taken one, everything between cancels.
    following[:, :-1] = taken[:, 1:]
    rewards, ones = torch.ones(2, 3), torch.ones(2, 3)
    valid = torch.tensor([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]])
    target, effective = retrace(taken, following, rewards, ones, valid, gamma=0.5)
    plain = torch.stack(
        (1 + 0.5 + 0.25 + 0.125 * following[0, 2], 1 + 0.5 + 0.25 * following[1, 1])
    )
    torch.testing.assert_close(target, plain)
    assert effective.tolist() == [3.0, 2.0]


@pytest.mark.parametrize(
    ("setting", "delivered"),
    [
        ("learner.trace=retrace", True),
        ("learner.trace=cut", False),
    ],
)
@pytest.mark.parametrize("storage", ["host", "device"])
def test_decisions_on_the_way_are_delivered_to_who_needs_them(
    setting: str, delivered: bool, storage: str
) -> None:
    config = load_config(
        None, [setting, f"replay.storage={storage}", "run.num_envs=3", "replay.capacity=60",
               "replay.learning_starts=9", "learner.batch_size=9"],
    )  # fmt: skip
    replay = make_replay(config, Layout(FEATURES), 3, 0, CPU)
    random = np.random.default_rng(0)
    for t in range(8):
        replay.add(make_rows(t, 3, random))
    path = replay.sample(9).path
    assert (path is not None) == delivered
    assert path is None or tuple(path.reward.shape) == (9, config.learner.n_steps)


@pytest.mark.parametrize("double_q", [True, False])
def test_who_chooses_the_bootstrap(double_q: bool) -> None:
    learner = learner_of(f"learner.double_q={str(double_q).lower()}")
    batch = random_batch(np.random.default_rng(0), 50)
    observation = features(batch.next_codes, LAYOUT, CPU)
    with torch.no_grad():
        online = learner.online(observation).values.flatten(1)
        target = learner.followers.target(observation).values.flatten(1)
    chooser = online if double_q else target
    best = target.gather(1, chooser.argmax(dim=1, keepdim=True)).squeeze(1).numpy()
    expected = batch.returns + batch.discounts * best
    np.testing.assert_allclose(
        learner.targets(batch, learner.target_clip).raw.numpy(), expected, rtol=1e-4, atol=1e-5
    )
    assert (online.argmax(1) != target.argmax(1)).any()


@pytest.mark.parametrize("loss", ["huber", "c51", "iqn"])
def test_targets_are_clamped_and_counted_at_both_ends(loss: str) -> None:
    learner = learner_of(f"learner.loss={loss}", "learner.target_clip=3")
    batch = random_batch(np.random.default_rng(0), 8)._replace(
        returns=np.array([9, -9, 0, 0, -4, 2, 1, 0], np.float32), discounts=np.zeros(8, np.float32)
    )
    target = learner.targets(batch, learner.target_clip)
    torch.testing.assert_close(target.raw, torch.from_numpy(batch.returns))
    assert target.above.tolist() == pytest.approx([1, 0, 0, 0, 0, 0, 0, 0])
    assert target.below.tolist() == pytest.approx([0, 1, 0, 0, 1, 0, 0, 0])
    assert target.points.abs().max().item() == pytest.approx(3.0, rel=1e-5)

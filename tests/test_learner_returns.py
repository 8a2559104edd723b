"""Targets as settings change them: retrace, Munchausen, double-Q, rescaling, clamp."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hybrid_bandit import LAYOUT, random_batch
from test_replay import FEATURES, make_rows

from tempest_agent.agent.learner import Learner
from tempest_agent.agent.networks import Layout
from tempest_agent.agent.replay import AGENT, EXPERT, EXPLORATION, ReplayBuffer
from tempest_agent.agent.retrace import exploration_chance, policy_chance, retrace, trace_weights
from tempest_agent.agent.targets import choose, value_at
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
    chance = torch.tensor([0.6, 0.6, 0.02, 0.6])
    driver = torch.tensor([AGENT, EXPERT, EXPLORATION, EXPLORATION])
    random_chance = torch.full((4,), 0.05)
    got = trace_weights(chance, driver, random_chance, decay=0.5)
    torch.testing.assert_close(got, torch.tensor([0.3, 0.3, 0.2, 0.5]))


def test_random_actions_have_chances_that_add_up_to_one() -> None:
    pairs = torch.arange(4)
    settings = ExplorationConfig(fire_share=0.7, zap_share=0.1)
    for legal in (True, False):
        zap_legal = torch.full((4,), legal)
        chance = exploration_chance(pairs, zap_legal, 9, settings)
        assert chance.sum().item() * 9 == pytest.approx(1.0)
        assert (chance[2:] > 0).all() == legal


def test_policy_is_a_softmax_over_legal_knots() -> None:
    values = torch.arange(12.0).view(1, 4, 3)
    legal = torch.tensor([[True, True, False, False]])
    got = policy_chance(values, legal, torch.tensor([1]), torch.tensor([0.1]), 2.0)
    assert got.item() == pytest.approx(np.exp(4 / 2) / np.exp(np.arange(6) / 2).sum())


def slow_retrace(buffer, learner, batch, i):  # type: ignore[no-untyped-def]
    """One row, walked decision by decision along the ring."""
    setting = learner.learner
    row = int(batch.rows[i])

    def heads(network, codes):  # type: ignore[no-untyped-def]
        with torch.no_grad():
            return network(torch.from_numpy(codes[None]).float() / 127)

    def best(codes, zap):  # type: ignore[no-untyped-def]
        legal = torch.tensor([[True, True, bool(zap), bool(zap)]])
        choice = choose(learner.online, heads(learner.online, codes), legal)
        target = heads(learner.followers.target, codes).values
        return value_at(target, choice.pair, choice.position).item()

    flags, steps = buffer.flags.reshape(-1), int(batch.horizons[i])
    total, trace, effective = 0.0, 1.0, 0.0
    for k in range(steps):
        at = (row + k * buffer.num_envs) % flags.size
        codes = buffer.codes.reshape(-1, FEATURES)[at]
        pair = torch.tensor([int(buffer.buttons.reshape(-1)[at])])
        position = torch.tensor([buffer.spin.reshape(-1)[at] / 31])
        zap = bool(flags[at] & 8)
        legal = torch.tensor([[True, True, zap, zap]])
        taken = value_at(heads(learner.followers.target, codes).values, pair, position).item()
        if k == 0:
            total = taken
        else:
            values = heads(learner.online, codes).values
            pi = policy_chance(values, legal, pair, position, setting.trace_temperature).item()
            mu = 1.0
            if (flags[at] >> 4) & 3 == EXPLORATION:
                mu = exploration_chance(
                    pair, torch.tensor([zap]), values.shape[2], learner.config.exploration
                ).item()
            trace *= setting.trace_decay * min(1.0, pi / max(mu, 1e-6))
        effective += trace
        if k < steps - 1:
            after = (at + buffer.num_envs) % flags.size
            follow = best(buffer.codes.reshape(-1, FEATURES)[after], flags[after] & 8)
        elif batch.discounts[i] > 0:
            follow = best(batch.next_codes[i], batch.next_zap_legal[i])
        else:
            follow = 0.0
        error = buffer.reward.reshape(-1)[at] + buffer.gamma * follow - taken
        total += buffer.gamma**k * trace * error
    return total, effective


def test_retrace_from_the_replay_equals_a_slow_walk() -> None:
    games, random = 3, np.random.default_rng(4)
    learner = learner_of(
        "learner.trace=retrace", "learner.trace_decay=0.9", "learner.trace_temperature=2",
        "learner.gamma=0.8", layout=Layout(FEATURES),
    )  # fmt: skip
    buffer = ReplayBuffer(games * 12, games, FEATURES, n_steps=4, gamma=0.8, trace="retrace")
    for t in range(20):
        buffer.add(make_rows(t, games, random))
    batch = buffer.sample(60)
    target = learner.bootstrap(batch)
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


def by_hand(learner: Learner, batch) -> list[float]:  # type: ignore[no-untyped-def]
    """Munchausen targets (of plain values) in plain loops."""
    setting = learner.learner
    tau, out = setting.munchausen_temperature, []
    with torch.no_grad():
        now, after = (
            learner.followers.target(learner.bootstrap.observation(codes)).values
            for codes in (batch.codes, batch.next_codes)
        )
    for i in range(len(batch.returns)):
        own = now[i, : 4 if batch.zap_legal[i] else 2].double().flatten()
        pair, position = torch.tensor([int(batch.buttons[i])]), torch.tensor([batch.spin[i] / 31])
        value = value_at(now[i : i + 1], pair, position).item()
        log_pi = value - tau * torch.logsumexp(own / tau, 0).item()
        bonus = setting.munchausen * min(0.0, max(setting.munchausen_floor, log_pi))
        following = after[i, : 4 if batch.next_zap_legal[i] else 2].double().flatten()
        pi = torch.softmax(following / tau, 0)
        soft = (pi * (following - tau * torch.log(pi.clamp(min=1e-300)))).sum().item()
        out.append(batch.returns[i] + bonus + batch.discounts[i] * soft)
    return out


def test_munchausen_targets_equal_a_slow_loop() -> None:
    learner = learner_of("learner.munchausen=0.9", "learner.munchausen_temperature=0.5")
    batch = random_batch(np.random.default_rng(0), 40)
    batch = batch._replace(
        next_zap_legal=np.arange(40) % 3 == 0,
        zap_legal=(np.arange(40) % 2 == 0) | (batch.buttons >= 2),
    )
    expected = by_hand(learner, batch)
    np.testing.assert_allclose(learner.bootstrap(batch).raw.numpy(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("double_q", [True, False])
def test_who_chooses_the_bootstrap(double_q: bool) -> None:
    learner = learner_of(f"learner.double_q={str(double_q).lower()}")
    batch = random_batch(np.random.default_rng(0), 50)
    observation = learner.bootstrap.observation(batch.next_codes)
    with torch.no_grad():
        online = learner.online(observation).values.flatten(1)
        target = learner.followers.target(observation).values.flatten(1)
    chooser = online if double_q else target
    best = target.gather(1, chooser.argmax(dim=1, keepdim=True)).squeeze(1).numpy()
    expected = batch.returns + batch.discounts * best
    np.testing.assert_allclose(learner.bootstrap(batch).raw.numpy(), expected, rtol=1e-4, atol=1e-5)
    assert (online.argmax(1) != target.argmax(1)).any()


@pytest.mark.parametrize("loss", ["huber", "c51", "hl_gauss", "iqn"])
@pytest.mark.parametrize("rescaling", ["none", "sqrt", "symlog"])
def test_targets_are_clamped_and_counted_at_both_ends(loss: str, rescaling: str) -> None:
    learner = learner_of(
        f"learner.loss={loss}", f"learner.value_rescaling={rescaling}", "learner.target_clip=3"
    )
    batch = random_batch(np.random.default_rng(0), 8)._replace(
        returns=np.array([9, -9, 0, 0, -4, 2, 1, 0], np.float32), discounts=np.zeros(8, np.float32)
    )
    target = learner.bootstrap(batch)
    torch.testing.assert_close(target.raw, torch.from_numpy(batch.returns))
    assert target.above.tolist() == pytest.approx([1, 0, 0, 0, 0, 0, 0, 0])
    assert target.below.tolist() == pytest.approx([0, 1, 0, 0, 1, 0, 0, 0])
    scale = {"none": 3.0, "sqrt": 1.03, "symlog": np.log(4)}[rescaling]
    assert target.points.abs().max().item() == pytest.approx(scale, rel=1e-5)


def test_values_of_a_rescaled_network_are_reported_in_units_of_reward() -> None:
    learner = learner_of("learner.value_rescaling=symlog")
    batch = random_batch(np.random.default_rng(0), 16)
    with torch.no_grad():
        heads = learner.online(learner.bootstrap.observation(batch.codes))
        pair = torch.from_numpy(batch.buttons).long()
        seen = value_at(heads.values, pair, torch.from_numpy(batch.spin) / 31)
    learner.update(batch, 1e-3, 0.0)
    expected = (seen.sign() * torch.expm1(seen.abs())).mean().item()
    assert learner.metrics.read()["q_mean"] == pytest.approx(expected, rel=1e-4)

"""An update as one recorded graph against ``Learner.update``, here without the recording."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from tempest_agent.agent.learner import learner as learner_module
from tempest_agent.agent.learner.learner import Learner
from tempest_agent.agent.networks.layout import Layout
from tempest_agent.agent.replay.device_buffer import DeviceReplay
from tempest_agent.agent.replay.rows import Rows
from tempest_agent.agent.update.graph_update import GraphUpdate
from tempest_agent.config import Config, load_config

pytestmark = pytest.mark.xdist_group("compiler")

CPU = torch.device("cpu")
FEATURES, GAMES, RATE = 35, 10, 1e-2
LAYOUT = Layout(FEATURES, lane_features=2, lane_position=33)
POLICY = ("network.encoder=lanes", "network.value_head=lanes", "network.spinner_knots=63",
          "network.lane_width=8", "network.policy_head=true")  # fmt: skip


class PlainUpdate(NamedTuple):
    """What ``make_update`` gives without a GPU."""

    learner: Learner
    replay: DeviceReplay

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.learner.draw_and_update(self.replay, *arguments, **named)


def uncompiled(function: Callable[..., Any], **_settings: Any) -> Callable[..., Any]:
    return function


def traced(function: Callable[..., Any], **settings: Any) -> Any:
    return torch.compile(function, backend="aot_eager", fullgraph=True, **settings)


@pytest.fixture(autouse=True)
def as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner_module, "aligns", lambda _device: True)


def settings(*changes: str) -> Config:
    return load_config(
        None,
        [
            "network.hidden=[24, 12]",
            "learner.gradient_accumulation_steps=3",
            "learner.precision=float32",
            "learner.compile=false",
            *changes,
        ],
    )


def filled(config: Config) -> DeviceReplay:
    replay = DeviceReplay(
        400, GAMES, FEATURES, device=CPU, n_steps=config.learner.n_steps,
        gamma=config.learner.gamma, prioritised=config.replay.prioritised,
    )  # fmt: skip
    random = np.random.default_rng(0)
    for _ in range(45):
        replay.add(
            Rows(
                codes=random.integers(-127, 128, (GAMES, FEATURES), np.int8),
                spin=random.integers(-31, 32, GAMES, np.int8),
                buttons=random.integers(0, 4, GAMES, np.uint8),
                reward=random.normal(size=GAMES).astype(np.float32),
                terminated=random.random(GAMES) < 0.05,
                truncated=random.random(GAMES) < 0.05,
                episode_start=np.zeros(GAMES, np.bool_),
                zap_legal=random.random(GAMES) < 0.5,
                driver=random.integers(0, 3, GAMES, np.uint8),
                label_spin=random.integers(-31, 32, GAMES, np.int8),
                label_buttons=random.integers(0, 2, GAMES, np.uint8),
                labelled=random.random(GAMES) < 0.5,
                final_codes=random.integers(-127, 128, (GAMES, FEATURES), np.int8),
                final_zap_legal=np.ones(GAMES, np.bool_),
            )
        )
    return replay


def new_learner(config: Config, whole: bool, monkeypatch: pytest.MonkeyPatch) -> Learner:
    torch.manual_seed(0)
    if not whole:
        learner = Learner(LAYOUT, config, CPU)
    else:
        with monkeypatch.context() as patch:
            patch.setattr(torch, "compile", uncompiled)
            compiled = settings_with_compile(config)
            learner = Learner(LAYOUT, compiled, CPU)
    learner.precision.lagged = True
    return learner


def settings_with_compile(config: Config) -> Config:
    return dataclasses.replace(config, learner=dataclasses.replace(config.learner, compile=True))


def both(
    monkeypatch: pytest.MonkeyPatch, *changes: str, compiler: Callable[..., Any] = uncompiled
) -> tuple[PlainUpdate, GraphUpdate]:
    config = settings(*changes)
    plain = PlainUpdate(new_learner(config, False, monkeypatch), filled(config))
    whole = GraphUpdate(new_learner(config, True, monkeypatch), filled(config), compiler=compiler)
    return plain, whole


def assert_same(plain: Learner, whole: Learner) -> None:
    for network in ("online", "average", "target"):
        ours, theirs = (
            getattr(learner if network == "online" else learner.followers, network).state_dict()
            for learner in (whole, plain)
        )
        assert ours.keys() == theirs.keys()
        for name, value in theirs.items():
            torch.testing.assert_close(ours[name], value, rtol=1e-3, atol=1e-5)
    moments = [
        [
            state[name]
            for parameter in learner.online.parameters()
            for state in [learner.optimizer.state.get(parameter, {})]
            for name in sorted(state)
        ]
        for learner in (plain, whole)
    ]
    for theirs, ours in zip(*moments, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-5)


def play(update: PlainUpdate | GraphUpdate, number: int, imitation: float = 0.5) -> list[Tensor]:
    errors = []
    for i in range(number):
        rows, error = update(35, 0.5, RATE / (i + 1), imitation)
        update.replay.update_priorities(rows, error)
        errors.append(error.clone())
    return errors


@pytest.mark.parametrize(
    "changes",
    [
        (),
        ("learner.loss=c51",),
        ("learner.loss=squared", "replay.prioritised=true"),
        ("network.spinner_head=knots",),
        (
            "network.dueling=false", "learner.target_update_interval=2", "learner.reward_unit=0.1",
        ),
        POLICY,
    ],
)  # fmt: skip
def test_it_learns_the_same(monkeypatch: pytest.MonkeyPatch, changes: tuple[str, ...]) -> None:
    plain, whole = both(monkeypatch, *changes)
    for ours, theirs in zip(play(whole, 4), play(plain, 4), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)
    assert_same(plain.learner, whole.learner)
    assert plain.learner.updates == whole.learner.updates == 4
    figures, wanted = whole.learner.metrics.read(), plain.learner.metrics.read()
    assert figures == pytest.approx(wanted, rel=1e-3, abs=1e-5)
    # Handed over once.
    assert "loss" not in whole.learner.metrics.read()


def test_it_can_be_traced_as_one_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, whole = both(monkeypatch, compiler=traced)
    for ours, theirs in zip(play(whole, 2), play(plain, 2), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)
    assert_same(plain.learner, whole.learner)


@pytest.mark.parametrize("changes", [(), POLICY])
def test_it_follows_changes_on_the_way(
    monkeypatch: pytest.MonkeyPatch, changes: tuple[str, ...]
) -> None:
    """Another horizon, clamp, imitation and accumulation, and weights from a checkpoint."""
    plain, whole = both(monkeypatch, *changes)
    for update in (plain, whole):
        play(update, 2)
        update.replay.set_n_steps(2)
        update.learner.target_clip = 0.5
        update(35, 0.5, RATE, 0.0, accumulation=2)
        saved = update.learner.state_dict()
        kept = {
            name: {key: value.clone() for key, value in saved[name].items()}
            for name in ("online", "target", "average")
        }
        play(update, 2)
        update.learner.load_networks(kept, optimizer=False)
        play(update, 2)
    assert_same(plain.learner, whole.learner)


def test_a_gradient_that_is_not_finite_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    _, whole = both(monkeypatch)
    learner = whole.learner
    play(whole, 2)
    before = [value.clone() for value in learner.online.state_dict().values()]
    moments = [s["exp_avg"].clone() for s in learner.optimizer.state.values()]
    reward = whole.replay._small["reward"].clone()
    whole.replay._small["reward"].fill_(float("nan"))
    whole(35, 0.5, RATE, 0.5)
    for value, now in zip(before, learner.online.state_dict().values(), strict=True):
        assert torch.equal(value, now)
    for value, state in zip(moments, learner.optimizer.state.values(), strict=True):
        assert torch.equal(value, state["exp_avg"])
        assert float(state["step"]) == 2
    whole.replay._small["reward"].copy_(reward)
    whole(35, 0.5, RATE, 0.5)
    learner.settle()
    assert (learner.updates, learner.precision.skipped) == (3, 1)
    assert all(torch.isfinite(value).all() for value in learner.online.state_dict().values())


def test_it_is_not_for_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    _, whole = both(monkeypatch)
    assert GraphUpdate.of(whole.learner, whole.replay) is None

"""The gradient without autograd against the single operations, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from tempest_agent.agent.learner.learner import Learner
from tempest_agent.agent.learner.metrics import HELD, Metrics
from tempest_agent.agent.networks import plain_gradient
from tempest_agent.agent.networks.layout import Layout
from tempest_agent.bench.learner import random_batch
from tempest_agent.config import load_config

CPU = torch.device("cpu")
LAYOUT = Layout(20)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def learner_with(*overrides: str) -> Learner:
    torch.manual_seed(0)
    settings = ("network.hidden=[24, 16]", "learner.precision=float32", *overrides)
    return Learner(LAYOUT, load_config(None, settings), CPU)


def batch_of(rows: int) -> Any:
    """Ends, different weights, and errors on both sides of Huber's bend."""
    random = np.random.default_rng(rows)
    return random_batch(LAYOUT, rows)._replace(
        returns=(2.0 * random.normal(size=rows)).astype(np.float32),
        discounts=np.where(random.random(rows) < 0.2, 0.0, 0.9).astype(np.float32),
        weights=random.random(rows).astype(np.float32),
        driver=random.integers(0, 3, rows).astype(np.uint8),
        zap_legal=random.random(rows) < 0.5,
        next_zap_legal=random.random(rows) < 0.5,
    )


def trained(rows: int, *overrides: str) -> list[Any]:
    """All that five updates leave, and what is then played."""
    learner, batch = learner_with(*overrides), batch_of(rows)
    errors = [learner.update(batch, 1e-2, 0.0) for _ in range(5)]
    state = learner.state_dict()
    kept = [
        tensor
        for part in ("online", "target", "average")
        for tensor in state[part].values()
        if isinstance(tensor, torch.Tensor)
    ]
    kept += [p.grad for p in learner.online.parameters() if p.grad is not None]
    return [*errors, *kept, *learner.act(batch.codes, batch.zap_legal), state["metrics"]]


@pytest.mark.parametrize(
    "overrides",
    [
        (),
        ("network.dueling=false",),
        ("network.spinner_head=knots", "learner.loss=squared"),
        ("learner.double_q=false", "network.spinner_knots=2"),
        ("learner.gradient_accumulation_steps=3", "learner.target_clip=0.2"),
        ("learner.max_grad_norm=0.01", "learner.target_update_interval=2"),
        ("network.layer_norm=false",),
    ],
    ids=str,
)
@pytest.mark.parametrize("rows", [7, 33])
def test_updates_are_those_of_the_single_operations(
    monkeypatch: pytest.MonkeyPatch, overrides: tuple[str, ...], rows: int
) -> None:
    at_once = trained(rows, *overrides)
    monkeypatch.setattr(plain_gradient, "applies_to", lambda *_: False)
    one_by_one = trained(rows, *overrides)
    for mine, theirs in zip(at_once[:-1], one_by_one[:-1], strict=True):
        np.testing.assert_array_equal(np.asarray(mine), np.asarray(theirs))
    assert repr(at_once[-1]) == repr(one_by_one[-1]), "the figures too"


def test_the_gradient_is_found_without_a_graph_only_where_it_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    batch = batch_of(8)

    def takes_graph(*overrides: str, imitation: float = 0.0, hook: bool = False) -> bool:
        learner = learner_with(*overrides)
        if hook:
            learner.online.value_head.register_forward_hook(lambda *_: None)
        calls: list[int] = []
        backward = learner.precision.backward
        monkeypatch.setattr(
            learner.precision, "backward", lambda *given: (calls.append(1), backward(*given))
        )
        learner.update(batch, 1e-3, imitation)
        return bool(calls)

    assert not takes_graph()
    assert takes_graph(imitation=0.5)
    assert takes_graph(hook=True)
    for override in (
        "network.layer_norm=false", "learner.loss=c51", "learner.loss=iqn",
        "network.spinner_interpolation=quadratic", "network.spinner_head=regression",
        "learner.precision=bfloat16",
    ):  # fmt: skip
        assert takes_graph(override), override


def test_figures_do_not_depend_on_when_they_are_added_up() -> None:
    """A checkpoint between two updates leaves no trace in them."""
    random = np.random.default_rng(0)
    given = [
        torch.from_numpy(random.normal(size=5).astype(np.float32)) for _ in range(2 * HELD + 3)
    ]
    states = []
    for pauses in ((), (1, 2, 5), range(len(given))):
        metrics = Metrics()
        for i, values in enumerate(given):
            if i in pauses:
                state = metrics.state_dict()
                metrics = Metrics()
                metrics.load_state_dict(state, CPU)
            metrics.mean("mean", values)
            metrics.mean("share", values.sum(), 7.0)
            metrics.means(("a", "b"), values[:2], values[2:4].abs())
            metrics.total("total", values)
            metrics.highest("high", values)
            metrics.lowest("low", values[: 1 + i % 3])
        states.append(metrics.state_dict())
    assert repr(states[0]) == repr(states[1]) == repr(states[2])
    # One after the other in float32, as if each had been added when it came.
    total = np.float32(0.0)
    for values in given:
        total += values.sum().numpy()
    assert states[0]["totals"]["total"].item() == total
    assert states[0]["highest"]["high"].item() == max(float(v.max()) for v in given)
    assert metrics.read()["mean"] == pytest.approx(float(total) / (5 * len(given)))
    assert metrics.read() == {}

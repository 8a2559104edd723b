"""One update from one or many micro-batches: same gradient, same memory, safe in float16."""

from __future__ import annotations

import copy
import logging

import numpy as np
import pytest
import torch
from hybrid_bandit import LAYOUT, greedy_reward, random_batch, train
from stepping import Stepping
from torch import nn

from tempest_agent.agent.learner.adamw import AdamW
from tempest_agent.agent.learner.learner import Learner
from tempest_agent.bench.tensor_memory import peak_bytes
from tempest_agent.config import load_config

pytestmark = pytest.mark.xdist_group("compiler")

CPU = torch.device("cpu")


def learner_of(*overrides: str) -> Learner:
    torch.manual_seed(0)
    base = ("network.hidden=[32]", "learner.precision=float32", "learner.target_clip=2")
    return Learner(LAYOUT, load_config(None, [*base, "learner.value_bins=21", *overrides]), CPU)


@pytest.mark.parametrize("loss", ["huber", "squared", "c51"])
@pytest.mark.parametrize("parts", [2, 3, 5, 24])
def test_the_gradient_of_micro_batches_is_that_of_the_whole(loss: str, parts: int) -> None:
    """With importance weights; 3 and 5 do not divide 64."""
    random = np.random.default_rng(1)
    batch = random_batch(random, 64)._replace(weights=random.random(64).astype(np.float32))
    gradients = []
    for count in (1, parts):
        learner = learner_of(
            f"learner.loss={loss}", f"learner.gradient_accumulation_steps={count}",
            "learner.max_grad_norm=1e9",
        )  # fmt: skip
        learner.update(batch, 0.0, 0.0)
        gradients.append({n: p.grad for n, p in learner.online.named_parameters()})
    for name, whole in gradients[0].items():
        assert whole is not None
        scale = whole.abs().max().item()
        torch.testing.assert_close(gradients[1][name], whole, rtol=1e-5, atol=1e-5 * scale)


@pytest.mark.parametrize("labelled", [64, 23])
def test_each_label_counts_the_same_in_whatever_micro_batch(labelled: int) -> None:
    batch = random_batch(np.random.default_rng(1), 64)._replace(labelled=np.arange(64) < labelled)
    norms = []
    for count in (1, 4):
        learner = learner_of(f"learner.gradient_accumulation_steps={count}")
        learner.update(batch, 0.0, 1.0)
        norms.append(learner.grad_norm.item())
    assert norms[0] == pytest.approx(norms[1], rel=1e-5)


def test_a_run_in_micro_batches_learns_as_fast() -> None:
    rewards = []
    for count in (1, 4):
        learner = learner_of(
            f"learner.gradient_accumulation_steps={count}", "learner.imitation=none"
        )
        train(learner, 150)
        rewards.append(greedy_reward(learner))
        assert learner.updates == 150
    assert min(rewards) > 0.85
    assert rewards[0] == pytest.approx(rewards[1], abs=0.03)


class Watched(nn.Linear):
    """Counts the bytes that wait for a backward pass."""

    kept = most = 0

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        out = super().forward(inputs)
        if not out.requires_grad:
            return out
        size = out.numel() * 4
        Watched.kept += size
        Watched.most = max(Watched.most, Watched.kept)

        def freed(gradient: torch.Tensor) -> None:
            Watched.kept -= size

        out.register_hook(freed)
        return out


def test_each_graph_is_freed_before_the_next_micro_batch() -> None:
    """At equal rows per micro-batch, four of them keep no more activations than one."""
    most = []
    for count in (1, 4):
        learner = learner_of(f"learner.gradient_accumulation_steps={count}")
        first = learner.online.encoder.layers[0]
        first.__class__ = Watched
        Watched.kept = Watched.most = 0
        learner.update(random_batch(np.random.default_rng(0), 64 * count), 1e-3, 0.0)
        assert Watched.kept == 0
        most.append(Watched.most)
    assert most[1] <= 1.1 * most[0]
    assert most[0] == 64 * 32 * 4


@pytest.mark.parametrize("loss", ["huber", "c51", "iqn"])
def test_four_micro_batches_take_the_memory_of_one(loss: str) -> None:
    """All tensors of an update counted, at equal rows per micro-batch."""
    peaks = {}
    for name, parts, rows in (("one", 1, 256), ("four", 4, 1024), ("whole", 1, 1024)):
        learner = learner_of(f"learner.loss={loss}", f"learner.gradient_accumulation_steps={parts}")
        batch = random_batch(np.random.default_rng(0), rows)
        learner.update(batch, 1e-3, 0.5)  # Makes the moments of the optimiser.
        peaks[name] = peak_bytes(lambda: learner.update(batch, 1e-3, 0.5))  # noqa: B023
    # The metrics of a row wait to be added up: five numbers of the rows that are not in one.
    assert peaks["four"] - 5 * 4 * (1024 - 256) <= 1.1 * peaks["one"]
    assert peaks["whole"] > 3 * peaks["one"]


def test_bytes_are_counted_until_they_are_freed() -> None:
    def run() -> None:
        for _ in range(5):
            kept = torch.zeros(1000)
            kept.view(10, 100).add_(1)
            del kept
        first, second = torch.ones(500), torch.ones(250, dtype=torch.float64)
        del first, second

    assert peak_bytes(run) == 4000


# --- mixed precision ----------------------------------------------------------------------------


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
@pytest.mark.parametrize("parts", [1, 3])
def test_reduced_precision_learns_the_same(precision: str, parts: int) -> None:
    learner = learner_of(
        f"learner.precision={precision}", f"learner.gradient_accumulation_steps={parts}",
        "learner.imitation=none",
    )  # fmt: skip
    train(learner, 150)
    assert greedy_reward(learner) > 0.85
    assert learner.precision.skipped < 10
    assert learner.online.value_head.weight.dtype == torch.float32


def overflowing(precision: str, patience: int = 3) -> Stepping:
    layer = nn.Linear(2, 1)
    optimizer = AdamW(layer.parameters(), lr=0.1, fused=True)
    return Stepping(layer, optimizer, 10.0, precision, patience)


def update(stepping: Stepping, factor: float = 1.0) -> bool:
    loss = torch.stack([p.sum() for p in stepping.parameters]).sum() * factor
    return stepping.update((loss, 1.0))


def overflow(stepping: Stepping, times: int) -> None:
    for _ in range(times):
        assert not update(stepping, float("inf"))


@pytest.mark.parametrize("precision", ["float16", "bfloat16"])
def test_repeated_overflow_ends_in_float32_with_one_message(
    precision: str, caplog: pytest.LogCaptureFixture
) -> None:
    stepping = overflowing(precision)
    with caplog.at_level(logging.WARNING):
        overflow(stepping, 2)
        assert not caplog.records
        assert stepping.precision.dtype is not None
        overflow(stepping, 1)
    assert stepping.precision.fell_back
    assert stepping.precision.dtype is None
    assert not stepping.precision.scaler.is_enabled()
    assert [r.message.count("continuing in float32") for r in caplog.records] == [1]
    assert update(stepping)
    assert stepping.precision.skipped == 3


def test_overflows_that_are_not_in_a_row_change_nothing() -> None:
    stepping = overflowing("float16")
    for _ in range(4):
        overflow(stepping, 2)
        assert update(stepping)
    assert stepping.precision.skipped == 8
    assert stepping.precision.dtype is torch.float16


def test_float32_that_overflows_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    stepping = overflowing("float32")
    overflow(stepping, 8)
    assert [r.message.count("nothing is learned") for r in caplog.records] == [1]


def test_the_fall_back_is_remembered() -> None:
    first, second = overflowing("float16"), overflowing("float16")
    overflow(first, 4)
    second.precision.load_state_dict(first.precision.state_dict())
    assert second.precision.dtype is None
    assert (second.precision.skipped, second.precision.skipped_in_a_row) == (4, 1)


def test_the_whole_learner_falls_back() -> None:
    learner = learner_of("learner.precision=float16", "learner.max_skipped_updates=2")
    batch = random_batch(np.random.default_rng(0), 32)
    bad = batch._replace(weights=np.full(32, np.inf, np.float32))
    before = copy.deepcopy(learner.state_dict()["online"])
    for _ in range(2):
        learner.update(bad, 1e-3, 0.0)
    assert learner.updates == 0
    for name, value in learner.online.state_dict().items():
        assert torch.equal(value, before[name])
    assert learner.targets.online is learner.fast_online
    learner.update(batch, 1e-3, 0.0)
    assert (learner.updates, learner.precision.dtype) == (1, None)


@pytest.mark.parametrize("precision", ["float32", "float16"])
def test_a_step_without_any_gradient_is_no_step(precision: str) -> None:
    stepping = overflowing(precision)
    assert not stepping.update()
    assert stepping.precision.skipped == 0


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16"])
def test_a_skip_that_is_learned_of_later_changes_nothing_either(precision: str) -> None:
    """As on a GPU, where nobody waits to hear whether a step was made."""
    random = np.random.default_rng(0)
    batches = [random_batch(random, 32) for _ in range(9)]
    for skipped in (3, 6, 8):
        bad = np.full(32, np.inf, np.float32)
        batches[skipped] = batches[skipped]._replace(weights=bad)
    states = []
    for lagged in (False, True):
        learner = learner_of(
            f"learner.precision={precision}", "learner.target_update_interval=3",
            "learner.tau=0.5", "learner.gradient_accumulation_steps=2",
        )  # fmt: skip
        learner.precision.lagged = lagged
        for batch in batches:
            learner.update(batch, 1e-3, 0.5)
        states.append(learner.state_dict())
        assert (learner.updates, learner.precision.skipped) == (6, 3)
        assert all(np.isfinite(value) for value in learner.metrics.read().values())
    assert states[0]["target_age"] == states[1]["target_age"]
    steps = [s["optimizer"]["state"][0]["step"].item() for s in states]
    assert steps == [6, 6]
    for network in ("online", "target", "average"):
        for name, value in states[0][network].items():
            torch.testing.assert_close(states[1][network][name], value, rtol=1e-5, atol=1e-7)


def test_a_late_fall_back_to_float32(caplog: pytest.LogCaptureFixture) -> None:
    learner = learner_of("learner.precision=float16", "learner.max_skipped_updates=2")
    learner.precision.lagged = True
    batch = random_batch(np.random.default_rng(0), 32)
    bad = batch._replace(weights=np.full(32, np.inf, np.float32))
    for each in (bad, bad, batch, batch):
        learner.update(each, 1e-3, 0.0)
    assert learner.state_dict()["updates"] == 2
    assert learner.precision.dtype is None
    assert [r.message.count("continuing in float32") for r in caplog.records] == [1]

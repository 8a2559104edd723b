"""`bench learner` and `bench replay` on sizes that need no patience."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from tempest_agent.agent.learner.learner import Learner
from tempest_agent.agent.networks.layout import Layout
from tempest_agent.bench import (
    learner as bench_learner,
)
from tempest_agent.bench import (
    replay as bench_replay,
)
from tempest_agent.bench import timing
from tempest_agent.cli import cli
from tempest_agent.config import load_config


def bench(target: str) -> dict[str, Any]:
    result = CliRunner().invoke(cli, ["bench", target, "--json"])
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert printed["name"] == target
    figures: dict[str, Any] = printed["figures"]
    for entry in figures.values():
        assert entry.keys() == {"value", "unit", "baseline", "ratio"}
        assert entry["value"] > 0
    return figures


def test_learner(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in {"BATCH": 8, "DEFAULT_BATCH": 8}.items():
        monkeypatch.setattr(bench_learner, name, size)
    monkeypatch.setattr(bench_learner, "PUBLIC_HIDDEN", "network.hidden=[16, 8]")
    monkeypatch.setattr(bench_learner, "ROUNDS", 1)
    figures = bench("learner")
    assert {
        "samples_per_second", "ratio_to_plain_loop", "ratio_to_matmul", "accumulation_4_ratio",
        "accumulation_4_memory_ratio",
    } <= figures.keys()  # fmt: skip


def test_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_replay, "ROWS", 2_000)
    monkeypatch.setattr(bench_replay, "BATCH", 8)
    monkeypatch.setattr(bench_replay, "LARGER_BATCHES", (16, 32))
    monkeypatch.setattr(timing, "REPETITIONS", 1)
    figures = bench("replay")
    assert figures.keys() == {
        "prioritised_to_uniform", "prioritised_update_ratio", "prioritised_update_ratio_16",
        "prioritised_update_ratio_32", "rows_per_second", "bytes_per_row",
    }  # fmt: skip
    buffer = bench_replay.filled(20)
    stored = sum(array.nbytes for name, array in buffer.arrays().items() if name != "priorities")
    assert stored / (buffer.length * bench_replay.GAMES) == buffer.bytes_per_row(20)
    assert len(np.unique(buffer.sample(64).rows)) > 50


def test_the_plain_loop_does_the_same_arithmetic() -> None:
    """Same weights in, same weights out: the comparison is with equal work."""
    layout = Layout(20)
    config = load_config(
        None, [*bench_learner.COMMON, "network.hidden=[16, 8]", "learner.spinner_weight=0"]
    )
    torch.manual_seed(0)
    learner = Learner(layout, config, torch.device("cpu"))
    plain = bench_learner.PlainNetwork(20, (16, 8))
    with torch.no_grad():
        learner.online.spinner_head.weight.zero_()
        plain.encoder.load_state_dict(learner.online.encoder.layers.state_dict())
        for name in ("weight", "bias"):
            ours = getattr(learner.online.value_head, name)
            getattr(plain.state, name).copy_(ours[:1])
            getattr(plain.advantage, name).copy_(ours[1:])
            getattr(plain.spinner, name).copy_(getattr(learner.online.spinner_head, name))
    learner.followers.target.load_state_dict(learner.online.state_dict())
    learner.fast_target.refresh()
    batch = bench_learner.random_batch(layout, 32)
    bench_learner.plain_update(plain, batch, spinner_weight=0.0)()
    learner.update(batch, 1e-4, 0.0)
    for ours, theirs in zip(
        learner.online.encoder.parameters(), plain.encoder.parameters(), strict=True
    ):
        torch.testing.assert_close(ours, theirs, atol=2e-6, rtol=1e-4)
    for ours, theirs in zip(
        learner.online.encoder.parameters(), plain.encoder.parameters(), strict=True
    ):
        torch.testing.assert_close(ours.grad, theirs.grad, atol=1e-6, rtol=1e-3)

"""The benchmarks measure what they say, on sizes that need no patience."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from tempest_agent.bench import env as bench_env
from tempest_agent.bench import render as bench_render
from tempest_agent.bench import timing
from tempest_agent.bench import train as bench_train
from tempest_agent.cli import cli
from tempest_agent.envs.engine.batch import NO_OUTPUT, GameBatch
from tempest_agent.envs.engine.hybrid_controls import NOT_ACTING
from tempest_agent.envs.machine.memory import as_bytes
from tempest_agent.experts import make_teacher

ENV_FIGURES = {
    "ticks_per_second_core",
    "steps_per_second_core_features",
    "two_threads_ratio",
    "two_batches_ratio",
    "vector_overhead",
    "many_games_ratio",
    "two_threads_crowd_ratio",
    "warm_start_seconds",
    "first_compile_seconds",
    "bytes_per_game",
    "ale_ratio",
}


def bench(target: str) -> dict[str, Any]:
    """The figures of ``tempest-agent bench``, after a check of their form."""
    result = CliRunner().invoke(cli, ["bench", target, "--json"])
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert printed["name"] == target
    for entry in printed["figures"].values():
        assert entry.keys() == {"value", "unit", "baseline", "ratio"}
        assert (entry["baseline"] is None) == (entry["ratio"] is None)
    figures: dict[str, Any] = printed["figures"]
    return figures


def test_env(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {
        "GAMES": 2,
        "TICKS": 30,
        "MANY_GAMES": 4,
        "MANY_TICKS": 10,
        "CROWD_GAMES": 6,
        "CROWD_TICKS": 5,
        "PAIRS": 1,
        "CROWD_PAIRS": 1,
        "WARM_STARTS": 1,
    }
    for name, size in {**sizes, "ALE_FRAMES": 20}.items():
        monkeypatch.setattr(bench_env, name, size)
    monkeypatch.setattr(timing, "REPETITIONS", 1)
    # A cold compilation takes a minute: here the warm start is measured twice.
    monkeypatch.setattr(bench_env, "_first_compile", lambda: bench_env._first_step(None))
    figures = bench("env")
    assert figures.keys() == ENV_FIGURES
    for name in ENV_FIGURES - {"vector_overhead", "ale_ratio"}:
        assert figures[name]["value"] > 0
    assert figures["bytes_per_game"]["value"] >= 2048
    assert figures["vector_overhead"]["baseline"] > 0


def test_the_ticks_that_are_timed_are_those_that_were_recorded() -> None:
    play = bench_env.record(games=5, ticks=200)
    batch = GameBatch(5, bench_env.SETTINGS, observe=False)
    batch.reset(seeds=np.random.SeedSequence(1))
    expert = make_teacher("expert")
    for _ in range(200):
        batch.step(*expert.act(batch.ram))
    again = GameBatch(5, bench_env.SETTINGS)
    again.restore(play.states)
    bench_env.replay_ticks(again.ram, again.streams, play.spins, play.buttons)
    np.testing.assert_array_equal(as_bytes(again.ram), as_bytes(batch.ram))
    again.restore(play.states)
    bench_env.replay_steps(again.step_job(), NOT_ACTING, play.spins, play.buttons, NO_OUTPUT)
    np.testing.assert_array_equal(again.clone(), batch.clone())
    # Played all over the levels, and not waiting for a new game.
    assert len(set(batch.ram["cur_wave"])) > 1
    assert (batch.games["score"] > 0).all()


def test_render(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in {"FRAMES": 2, "WARM_UP": 20}.items():
        monkeypatch.setattr(bench_render, name, size)
    monkeypatch.setattr(timing, "REPETITIONS", 1)
    assert all(entry["value"] > 0 for entry in bench("render").values())


def test_train(monkeypatch: pytest.MonkeyPatch) -> None:
    small = (
        "run.num_envs=16",
        "run.steps=1_000",
        "run.log_interval=200",
        "network.hidden=[16]",
        "learner.batch_size=16",
        "replay.capacity=2_000",
        "replay.learning_starts=100",
    )
    monkeypatch.setattr(bench_train, "SHORT", (*bench_train.SHORT, *small))
    monkeypatch.setattr(bench_train, "SMALL_STEPS", 250)
    monkeypatch.setattr(bench_train, "SMALL_ROUNDS", 1)
    figures = bench("train")
    assert figures.keys() == {
        "env_steps_per_second", "samples_per_second", "updates_per_second", "small_ratio_to_sb3",
    }  # fmt: skip
    assert all(entry["value"] > 0 for entry in figures.values())


def test_fastest_takes_turns_and_leaves_the_first_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 1000))
    monkeypatch.setattr(timing, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    monkeypatch.setattr(timing, "REPETITIONS", 2)
    order: list[str] = []

    def prepare(name: str) -> Any:
        return lambda: lambda: order.append(name)

    assert timing.fastest(prepare("a"), prepare("b")) == [1, 1]
    assert order == ["a", "b"] * 3


def test_a_pair_is_judged_by_its_own_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds of five pairs, the first of which compiles: ratios 2, 3, 2.5 and 20."""
    seconds = [(900, 900), (4, 2), (300, 100), (5, 2), (40, 2)]
    now = [0]
    flat = iter([each for pair in seconds for each in pair])
    monkeypatch.setattr(timing, "time", SimpleNamespace(perf_counter=lambda: now[0]))

    def prepare() -> Any:
        return lambda: now.__setitem__(0, now[0] + next(flat))

    assert timing.paired(4, (prepare, prepare)) == [(2.75 * 2, 2)]

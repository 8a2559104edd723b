"""What a vector step gives out: the same numbers as made afterwards, and arrays that stay."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from tempest_agent.envs.batch import StepOutput
from tempest_agent.envs.buffers import BufferPool
from tempest_agent.envs.features import as_floats
from tempest_agent.envs.information import describe_games
from tempest_agent.envs.report import REPORT_ROWS
from tempest_agent.envs.vector_env import TempestVectorEnv


def address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def test_memory_is_used_again_only_when_no_array_shares_it() -> None:
    pool = BufferPool((3, 4), np.float32)
    first = pool.take()
    assert first.shape == (3, 4)
    assert first.dtype == np.float32
    assert first.flags.writeable
    assert first.flags.c_contiguous
    place = address(first)
    holders: list[Any] = [first, first[1:], first.T[0], memoryview(first), first.reshape(-1)[:2]]
    del first
    while holders:
        assert address(pool.take()) != place
        holders.pop(0)
    places = {address(array) for array in [pool.take(), pool.take(), pool.take()]}
    assert place in places


def test_a_pool_keeps_only_a_few_buffers_and_none_when_pickled() -> None:
    pool = BufferPool((100,), np.int64)
    many = [pool.take() for _ in range(20)]
    assert len({address(array) for array in many}) == 20
    del many
    assert len(pool._free) == 3
    copy = pickle.loads(pickle.dumps(pool))
    assert len(copy._free) == 0
    assert copy.take().shape == (100,)


def actions(env: TempestVectorEnv, random: np.random.Generator) -> dict[str, np.ndarray]:
    return {
        "buttons": random.integers(0, 4, env.num_envs),
        "spinner": random.uniform(-1, 1, (env.num_envs, 1)).astype(np.float32),
    }


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
@pytest.mark.parametrize("threads", [1, 2])
def test_what_a_step_gives_is_what_the_games_say_and_stays(mode: str, threads: int) -> None:
    env = TempestVectorEnv(
        9, autoreset_mode=mode, num_threads=threads, start_level=[1, 17], max_ticks=120, lives=2
    )
    random = np.random.default_rng(3)
    env.reset(seed=5)
    kept: list[tuple[list[np.ndarray], list[np.ndarray]]] = []
    ended = np.zeros(9, np.bool_)
    for _ in range(200):
        if mode == "Disabled" and ended.any():
            env.reset(options={"reset_mask": ended})
        observations, rewards, terminated, truncated, info = env.step(actions(env, random))
        ended = terminated | truncated
        np.testing.assert_array_equal(observations, as_floats(env.batch.codes))
        told = describe_games(env.batch.games, env.batch.ram)
        for name, values in told.items():
            np.testing.assert_array_equal(info[name], values, name)
            assert info[name].dtype == values.dtype
        deaths = env.batch.games["deaths"].sum(1)
        np.testing.assert_array_equal(info["deaths"], deaths)
        np.testing.assert_array_equal(info["level"], env.batch.ram["cur_wave"] + 1)
        given = [observations, rewards, terminated, truncated]
        given += [values for name, values in info.items() if not name.startswith(("_", "final"))]
        kept.append((given, [values.copy() for values in given]))
    assert any(given[3].any() for given, _ in kept)
    for given, copies in kept:
        for values, copy in zip(given, copies, strict=True):
            np.testing.assert_array_equal(values, copy)
    env.close()


def test_an_empty_cause_cannot_be_written_into_and_others_can() -> None:
    env = TempestVectorEnv(2)
    env.reset(seed=0)
    still = {"buttons": np.zeros(2, np.int64), "spinner": np.zeros((2, 1), np.float32)}
    info = env.step(still)[4]
    assert info["death_cause"].tolist() == ["", ""]
    with pytest.raises(ValueError, match="read-only"):
        info["death_cause"][0] = "mine"
    while not any(info["death_cause"]):
        info = env.step(still)[4]
    info["death_cause"][0] = "mine"
    assert env.step(still)[4]["death_cause"].tolist() == ["", ""]


def test_filling_writes_where_the_mask_is_set() -> None:
    env = TempestVectorEnv(4, start_level=[1, 9])
    env.reset(seed=2)
    codes = env.batch.codes
    out = StepOutput(np.full(codes.shape, 7, np.float32), np.full((REPORT_ROWS, 4), 7, np.int64))
    mask = np.array([True, False, False, True])
    env.batch.fill(out, mask)
    np.testing.assert_array_equal(out.observations[mask], as_floats(codes[mask]))
    assert (out.observations[~mask] == 7).all()
    np.testing.assert_array_equal(out.report[1, mask], env.batch.ram["cur_wave"][mask] + 1)
    assert (out.report[:, ~mask] == 7).all()

"""What a vector step gives out: the same numbers as made afterwards, and arrays that stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tempest_agent.envs.api.info import describe_games
from tempest_agent.envs.api.vector_env import TempestVectorEnv
from tempest_agent.envs.engine.batch import GameBatch, StepOutput
from tempest_agent.envs.engine.report import REPORT_SIZE
from tempest_agent.envs.engine.step_kernels import step_games
from tempest_agent.envs.features.floats import as_floats
from tempest_agent.envs.features.layout import NUM_FEATURES


def test_what_is_done_to_a_returned_array_stays_with_it() -> None:
    env = TempestVectorEnv(6)
    env.reset(seed=0)
    still = {"buttons": np.zeros(6, np.int64), "spinner": np.zeros((6, 1), np.float32)}
    for _ in range(4):
        observations, rewards, terminated, truncated, info = env.step(still)
        for array in (observations, rewards, terminated, truncated):
            assert array.flags.writeable
            assert array.shape[0] == 6
            array.flags.writeable = False
        info.clear()
        info["score"] = None


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


def forms_of(action: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    """The same actions as other types and layouts."""
    buttons, spinner = action["buttons"], action["spinner"]
    forms: list[dict[str, Any]] = [
        {"buttons": buttons, "spinner": spinner},
        {"buttons": buttons.tolist(), "spinner": spinner.tolist()},
        {"spinner": spinner.astype(np.float64), "buttons": buttons.astype(np.uint8)},
        {"buttons": np.repeat(buttons, 2)[::2], "spinner": np.repeat(spinner, 2)[::2, None]},
        {"buttons": buttons.copy(), "spinner": spinner.copy()},
    ]
    forms[3]["spinner"] = np.repeat(spinner, 3, axis=1)[:, 1:2]
    for values in forms[4].values():
        values.flags.writeable = False
    return forms


def test_the_form_of_the_actions_changes_nothing_and_compiles_nothing() -> None:
    envs = [TempestVectorEnv(7, start_level=[1, 30]) for _ in range(5)]
    for env in envs:
        env.reset(seed=3)
    random = np.random.default_rng(8)
    compiled = None
    for _ in range(60):
        for env, action in zip(envs, forms_of(actions(envs[0], random)), strict=True):
            env.step(action)
            # The first form may be the first call of all.
            compiled = compiled or list(step_games.signatures)  # type: ignore[attr-defined]
    states = [env.clone_states().tobytes() for env in envs]
    assert states == states[:1] * 5
    assert list(step_games.signatures) == compiled  # type: ignore[attr-defined]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_batch_takes_strided_and_read_only_controls_and_compiles_nothing(threads: int) -> None:
    batches = [GameBatch(6, num_threads=threads) for _ in range(3)]
    for batch in batches:
        batch.reset(seeds=4)
    random = np.random.default_rng(5)
    for _ in range(40):
        spin = random.integers(-31, 32, 6).astype(np.int8)
        buttons = random.integers(0, 4, 6).astype(np.uint8)
        batches[0].step(spin, buttons)
        batches[1].step(np.repeat(spin, 2)[::2], np.repeat(buttons, 3)[::3])
        for values in (spin, buttons):
            values.flags.writeable = False
        batches[2].step(spin, buttons)
    assert len({batch.clone().tobytes() for batch in batches}) == 1
    assert len(step_games.signatures) == 1  # type: ignore[attr-defined]
    for batch in batches:
        batch.close()


@pytest.mark.parametrize("threads", [1, 2])
def test_nothing_is_written_past_the_end_of_an_output(threads: int) -> None:
    batch = GameBatch(5, num_threads=threads)
    batch.reset(seeds=4)
    controls = np.zeros(5, np.int8), np.zeros(5, np.uint8)
    batch.step(*controls)
    before = batch.clone()
    fitting = StepOutput(
        np.zeros((5, NUM_FEATURES), np.float32), np.zeros((5, REPORT_SIZE), np.int64),
        np.zeros((2, 5), np.bool_), np.zeros((2, 5)), 1.0,
    )  # fmt: skip
    short: list[dict[str, Any]] = [
        {"observations": fitting.observations[:4]},
        {"report": np.zeros((5, REPORT_SIZE - 1), np.int64)},
        {"ends": np.zeros((1, 5), np.bool_)},
        {"rewards": np.zeros((2, 4))},
    ]
    for wrong in short:
        with pytest.raises(ValueError, match="each of the 5 games"):
            batch.step(*controls, fitting._replace(**wrong))
    np.testing.assert_array_equal(batch.clone(), before)
    batch.step(*controls, fitting)
    assert (fitting.report[:, 3] == batch.games["ticks"]).all()
    batch.close()


def test_games_that_go_back_to_before_their_reset_cannot_be_stepped() -> None:
    env = TempestVectorEnv(2)
    before = env.batch.clone()
    env.reset(seed=1)
    action = {"buttons": np.zeros(2, np.int64), "spinner": np.zeros((2, 1), np.float32)}
    env.step(action)
    env.batch.restore(before)
    with pytest.raises(RuntimeError, match="reset"):
        env.step(action)
    env.reset(seed=1)
    assert env.step(action)[4]["ticks"].tolist() == env.batch.games["ticks"].tolist()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"buttons": np.zeros(0, np.int64)}, "buttons has shape"),
        ({"buttons": np.zeros(5, np.int64)}, "buttons has shape"),
        ({"spinner": np.zeros((0, 1), np.float32)}, "spinner has shape"),
        ({"spinner": np.zeros((4, 0), np.float32)}, "spinner has shape"),
        ({"spinner": np.zeros((4, 2), np.float32)}, "spinner has shape"),
        ({"buttons": np.array([0, 1, 2, 4])}, r"buttons=\[0, 1, 2, 4\]: numbers from 0 to 3"),
        ({"buttons": np.array([0, -1, 2, 3])}, r"numbers from 0 to 3"),
        ({"spinner": np.array([[0], [0], [0], [np.nan]], np.float32)}, "the spinner is nan"),
        ({"spinner": np.full((4, 1), 0.5j)}, "spinner holds complex128 values"),
        ({"spinner": np.full((4, 1), "0.5")}, "spinner holds <U3 values"),
        ({"spinner": np.full((4, 1), 0.5, object)}, "spinner holds object values"),
    ],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_no_game_goes_on_with_a_wrong_action(
    wrong: dict[str, np.ndarray], words: str, threads: int
) -> None:
    env = TempestVectorEnv(4, num_threads=threads)
    env.reset(seed=1)
    action = {"buttons": np.ones(4, np.int64), "spinner": np.ones((4, 1), np.float32)}
    env.step(action)
    before = env.clone_states()
    with pytest.raises(ValueError, match=words):
        env.step({**action, **wrong})
    np.testing.assert_array_equal(env.clone_states(), before)
    assert env.step(action)[4]["ticks"].tolist() == (env.batch.games["ticks"]).tolist()
    env.close()


def test_filling_writes_where_the_mask_is_set() -> None:
    env = TempestVectorEnv(4, start_level=[1, 9])
    env.reset(seed=2)
    codes = env.batch.codes
    out = StepOutput(np.full(codes.shape, 7, np.float32), np.full((4, REPORT_SIZE), 7, np.int64))
    mask = np.array([True, False, False, True])
    env.batch.fill(out, mask)
    np.testing.assert_array_equal(out.observations[mask], as_floats(codes[mask]))
    assert (out.observations[~mask] == 7).all()
    np.testing.assert_array_equal(out.report[mask, 1], env.batch.ram["cur_wave"][mask] + 1)
    assert (out.report[~mask] == 7).all()

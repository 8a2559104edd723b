"""``TempestEnv`` as a Gymnasium user meets it."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import cv2
import gymnasium as gym
import numpy as np
import pytest
from gymnasium import wrappers
from gymnasium.utils.env_checker import check_env

import tempest_agent
from tempest_agent.envs.api.tempest_env import TempestEnv
from tempest_agent.envs.api.vector_env import TempestVectorEnv
from tempest_agent.envs.features.layout import NUM_FEATURES, PLAIN_FEATURES, describe
from tempest_agent.envs.game_state.death_cause import DEATH_CAUSES
from tempest_agent.envs.machine.memory import RAM_SIZE

INFO = {
    "score", "level", "lives", "ticks", "deaths", "idle_ticks", "death_cause", "terminal_cause",
    "executed_spin", "executed_buttons", "reward_points", "reward_death", "reward_shaping",
}  # fmt: skip


def make(**options: Any) -> Any:
    return gym.make("tempest_agent:Tempest-v0", **options)


def play(env: Any, steps: int, seed: int = 0) -> list[tuple[bytes, float, bool, bool]]:
    env.action_space.seed(seed)
    seen = []
    for _ in range(steps):
        observation, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        seen.append((observation.tobytes(), reward, terminated, truncated))
        if terminated or truncated:
            env.reset()
    return seen


@pytest.mark.parametrize("action_type", ["hybrid", "box", "discrete"])
@pytest.mark.parametrize("obs_type", ["features", "features_plain", "ram", "rgb", "grayscale"])
def test_gymnasium_finds_nothing_to_complain_about(action_type: str, obs_type: str) -> None:
    env = make(action_type=action_type, obs_type=obs_type)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)


def test_importing_registers_and_loads_neither_torch_nor_numba() -> None:
    script = (
        "import sys, tempest_agent, gymnasium;"
        "gymnasium.spec('Tempest-v0');"
        "print([name for name in ('torch', 'numba', 'cv2') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
    assert tempest_agent.__version__


@pytest.mark.parametrize(
    ("obs_type", "shape", "dtype"),
    [
        ("features", (NUM_FEATURES,), np.float32),
        ("features_plain", (PLAIN_FEATURES,), np.float32),
        ("ram", (RAM_SIZE,), np.uint8),
        ("rgb", (112, 84, 3), np.uint8),
        ("grayscale", (112, 84), np.uint8),
    ],
)
def test_observations_have_their_space(obs_type: str, shape: Any, dtype: Any) -> None:
    env = make(obs_type=obs_type)
    observation, _ = env.reset(seed=1)
    assert observation.shape == shape
    assert observation.dtype == dtype
    assert env.observation_space.contains(observation)
    assert observation.any()


def test_same_seed_and_actions_give_the_same_game() -> None:
    first, second = make(), make()
    assert first.reset(seed=0)[0].tobytes() == second.reset(seed=0)[0].tobytes()
    assert play(first, 400) == play(second, 400)
    first.reset(seed=0)
    second.reset(seed=1)
    assert first.unwrapped.ram().tobytes() != second.unwrapped.ram().tobytes()


def test_the_seed_option_counts_for_the_first_reset_only() -> None:
    env, other = TempestEnv(seed=0), TempestEnv()
    env.reset()
    other.reset(seed=0)
    assert env.clone_state() == other.clone_state()
    env.reset()
    other.reset()
    assert env.clone_state() == other.clone_state()
    env.reset(seed=0)
    assert env.clone_state() != other.clone_state()


def test_clone_and_restore_go_back_exactly() -> None:
    env = TempestEnv(start_level=7, input_delay=2, shaping=1.0)
    env.reset(seed=5)
    play(env, 150)
    state, observation = env.clone_state(), env.observe()
    first = play(env, 300, seed=9)
    assert env.restore_state(state).tobytes() == observation.tobytes()
    assert play(env, 300, seed=9) == first
    other = TempestEnv(start_level=7, input_delay=2, shaping=1.0)
    other.restore_state(state)
    assert play(other, 300, seed=9) == first


@pytest.mark.parametrize("state", [b"", b"x" * 100, "text", np.zeros(10)])
def test_restoring_something_else_is_refused(state: Any) -> None:
    env = TempestEnv()
    with pytest.raises(ValueError, match=r"clone_state\(\)"):
        env.restore_state(state)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="this version"):
        env.restore_state(b"OLDSTATE" + env.clone_state()[8:])


@pytest.mark.parametrize("delays", [(0, 2), (4, 1)])
def test_a_state_of_another_input_delay_is_refused(delays: tuple[int, int]) -> None:
    env, other = (TempestEnv(input_delay=delay) for delay in delays)
    env.reset(seed=0)
    other.reset(seed=1)
    before = other.clone_state()
    with pytest.raises(ValueError, match=f"make it with input_delay={delays[0]}"):
        other.restore_state(env.clone_state())
    assert other.clone_state() == before


@pytest.mark.parametrize("seed", [True, -1, 2**64, 1.5])
def test_a_seed_that_is_none_is_refused_everywhere(seed: Any) -> None:
    with pytest.raises(ValueError, match=r"0 to 2\*\*64 - 1"):
        TempestEnv(seed=seed)
    with pytest.raises(ValueError, match=r"0 to 2\*\*64 - 1"):
        TempestEnv().reset(seed=seed)
    for given in (seed, [seed, 1]):
        with pytest.raises(ValueError, match=r"0 to 2\*\*64 - 1"):
            TempestVectorEnv(2).reset(seed=given)


def test_info_always_says_the_same_things() -> None:
    env = make(lives=2)
    _, info = env.reset(seed=2)
    assert set(info) == INFO
    assert (info["score"], info["level"], info["lives"], info["ticks"]) == (0, 1, 2, 0)
    ticks, causes, points = 0, [], 0.0
    while True:
        _, reward, terminated, truncated, info = env.step(
            {"buttons": 1, "spinner": np.zeros(1, np.float32)}
        )
        assert set(info) == INFO
        ticks += 1 + info["idle_ticks"]
        points += reward
        assert info["ticks"] == ticks
        assert type(info["score"]) is int
        if info["death_cause"]:
            causes.append(info["death_cause"])
        if terminated or truncated:
            break
        assert info["terminal_cause"] == ""
    assert len(causes) == info["deaths"] >= 2
    assert set(causes) <= set(DEATH_CAUSES)
    assert info["terminal_cause"] == causes[-1]
    assert info["lives"] == 0
    assert points == pytest.approx(info["score"] * 0.01)


def test_a_cut_game_says_so() -> None:
    env = make(max_ticks=30)
    env.reset(seed=0)
    for _ in range(30):
        _, _, terminated, truncated, info = env.step(
            {"buttons": 0, "spinner": np.zeros(1, np.float32)}
        )
    assert (terminated, truncated) == (False, True)
    assert info["terminal_cause"] == "time_limit"
    assert info["ticks"] == 30


def test_info_says_what_the_machine_got() -> None:
    env = make()
    env.reset(seed=0)
    action = {"buttons": np.int64(3), "spinner": np.array([-1], np.float32)}
    _, _, _, _, info = env.step(action)
    assert info["executed_spin"] == -31
    assert info["executed_buttons"] == 1, "a zap with nobody alive is not put in"


@pytest.mark.parametrize("delay", [1, 2, 4])
def test_input_delay_moves_the_effect_by_ticks(delay: int) -> None:
    env = TempestEnv(input_delay=delay)
    env.reset(seed=0)
    rim = []
    for step in range(8):
        spinner = np.array([0.5 if step == 0 else 0], np.float32)
        env.step({"buttons": 0, "spinner": spinner})
        rim.append(int(env.batch.ram["rim_pos"][0]))
        pending = describe(env.observe()).get("pending_1_spin", 0)
        assert (pending > 0) == (step == delay - 1)
    moved = np.flatnonzero(np.diff(rim))
    assert moved.tolist() == [delay - 1]


def test_starting_levels_come_from_the_list() -> None:
    env = make(start_level=[3, 20])
    levels = {env.reset(seed=seed)[1]["level"] for seed in range(20)}
    assert levels == {3, 20}


def test_pickling_keeps_the_game() -> None:
    env = TempestEnv(obs_type="rgb", render_mode="rgb_array")
    env.reset(seed=3)
    play(env, 20)
    env.render()
    copy = pickle.loads(pickle.dumps(env))
    assert play(copy, 30, seed=1) == play(env, 30, seed=1)
    np.testing.assert_array_equal(copy.render(), env.render())


def test_rendering_needs_no_display_and_is_not_black() -> None:
    script = (
        "import gymnasium as gym;"
        "env = gym.make('tempest_agent:Tempest-v0', render_mode='rgb_array');"
        "env.reset(seed=0);"
        "picture = env.render();"
        "print(picture.shape, picture.dtype, int(picture.max()) > 100)"
    )
    displays = ("DISPLAY", "WAYLAND_DISPLAY")
    clean = {name: value for name, value in os.environ.items() if name not in displays}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=clean)
    assert done.stdout.strip() == "(640, 480, 3) uint8 True", done.stderr


def test_a_window_without_a_display_is_refused_with_advice(monkeypatch: Any) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    with pytest.raises(RuntimeError, match="display") as error:
        make(render_mode="human")
    assert "\n" not in str(error.value)
    assert make().unwrapped.metadata["render_modes"] == ["rgb_array"]


def test_pictures_in_a_second_are_what_gymnasium_takes() -> None:
    """``gymnasium.utils.play`` refuses all but whole numbers."""
    for env in (make(), gym.make_vec("tempest_agent:Tempest-v0", num_envs=1)):
        assert type(env.metadata["render_fps"]) is int
        assert abs(env.metadata["render_fps"] - 27.34) < 0.5


def test_render_follows_the_game_and_its_size() -> None:
    env = make(render_mode="rgb_array", render_size=(120, 160))
    env.reset(seed=0)
    first = env.render()
    for _ in range(40):
        env.step({"buttons": 1, "spinner": np.array([0.3], np.float32)})
    second = env.render()
    assert np.shape(first) == np.shape(second) == (160, 120, 3)
    assert not np.array_equal(first, second)


def test_reset_options_that_do_not_exist_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown entry 'level'"):
        make().reset(options={"level": 3})
    with pytest.raises(TypeError, match="options=5"):
        make().reset(options=5)


def test_common_wrappers_work() -> None:
    env: Any = wrappers.RecordEpisodeStatistics(
        wrappers.TimeLimit(make(action_type="discrete", lives=2), 2000)
    )
    env = wrappers.NormalizeObservation(wrappers.FrameStackObservation(env, 4))
    observation, _ = env.reset(seed=0)
    assert observation.shape == (4, NUM_FEATURES)
    total = 0.0
    for _ in range(2000):
        _, reward, terminated, truncated, info = env.step(int(env.action_space.sample()))
        total += reward
        if terminated or truncated:
            break
    assert info["episode"]["r"] == pytest.approx(total)
    assert total == pytest.approx(info["score"] * 0.01)


def test_closing_twice_is_fine() -> None:
    env = make()
    env.reset(seed=0)
    env.close()
    env.close()


def test_record_video_films_an_episode(tmp_path: Path) -> None:
    env: Any = make(render_mode="rgb_array", render_size=(120, 160))
    env = wrappers.RecordVideo(env, str(tmp_path), episode_trigger=lambda _: True)
    env.reset(seed=0)
    for _ in range(6):
        env.step(env.action_space.sample())
    env.close()
    films = list(tmp_path.glob("*.mp4"))
    assert len(films) == 1
    film = cv2.VideoCapture(str(films[0]))
    assert film.get(cv2.CAP_PROP_FRAME_COUNT) >= 6
    assert (film.get(cv2.CAP_PROP_FRAME_WIDTH), film.get(cv2.CAP_PROP_FRAME_HEIGHT)) == (120, 160)

"""Options, actions and rewards: what is taken, what is refused and how it is said."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from tempest_agent.envs.api.action_spaces import (
    BoxActions,
    DiscreteActions,
    HybridActions,
    encode,
    knot_counts,
)
from tempest_agent.envs.api.options import EnvOptions
from tempest_agent.envs.api.rewards import Rewards, RewardSettings, cleared_share
from tempest_agent.envs.api.tempest_env import TempestEnv
from tempest_agent.envs.api.vector_env import TempestVectorEnv
from tempest_agent.envs.engine.hybrid_controls import spinner_counts
from tempest_agent.envs.engine.settings import GameSettings
from tempest_agent.envs.machine.memory import RAM_DTYPE
from tempest_agent.envs.mame.mame_options import MameOptions


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"start_level": 0}, "start_level=0"),
        ({"start_level": 100}, "levels 1 to 99"),
        ({"start_level": 2.5}, "start_level=2.5"),
        ({"start_level": [1, 200]}, "start_level=200"),
        ({"start_level": []}, "names no level"),
        ({"start_level": range(9, 1)}, "names no level"),
        ({"start_level": "3"}, "start_level='3'"),
        ({"lives": 1}, "lives=1"),
        ({"lives": 6}, "2, 3, 4 or 5"),
        ({"bonus_life": 15_000}, "bonus_life=15000"),
        ({"bonus_life": 80_000}, "bonus_life=80000"),
        ({"difficulty": "hrad"}, "did you mean 'hard'"),
        ({"start_bonus": "yes"}, "start_bonus='yes'"),
        ({"frame_skip": 0}, "frame_skip=0"),
        ({"frame_skip": 1.0}, "frame_skip=1.0"),
        ({"frame_skip": True}, "frame_skip=True"),
        ({"input_delay": 5}, "from 0 to 4"),
        ({"input_delay": -1}, "input_delay=-1"),
        ({"max_ticks": 0}, "max_ticks=0"),
        ({"max_steps": -5}, "max_steps=-5"),
        ({"max_ticks": 2**62}, "max_ticks="),
        ({"skip_idle": 1}, "skip_idle=1"),
        ({"obs_type": "pixels"}, "obs_type='pixels'"),
        ({"obs_type": "gray"}, "did you mean 'grayscale'"),
        ({"action_type": "continuous"}, "action_type='continuous'"),
        ({"action_type": "discrete", "spinner_knots": 16}, "spinner_knots=16"),
        ({"screen_size": 84}, "screen_size=84"),
        ({"render_size": (5, 5)}, "render_size=(5, 5)"),
        ({"render_mode": "rgb"}, "did you mean 'rgb_array'"),
        ({"seed": -1}, "seed=-1"),
        ({"seed": 1.5}, "seed=1.5"),
        ({"reward_scale": float("nan")}, "reward_scale=nan"),
        ({"reward_scale": "1"}, "reward_scale='1'"),
        ({"death_penalty": -10}, "given as a positive number"),
        ({"shaping_discount": 1.1}, "shaping_discount=1.1"),
        ({"frameskip": 4}, "did you mean 'frame_skip'"),
        ({"levels": 4}, "did you mean"),
        ({"foo": 1}, "it has obs_type, action_type"),
        ({"difficulty": 7}, "easy"),
        ({"obs_type": "zzz"}, "one of features, features_plain, ram, rgb, grayscale"),
    ],
)
def test_a_wrong_option_is_named_in_one_line(options: dict[str, Any], words: str) -> None:
    for make in (TempestEnv, TempestVectorEnv):
        with pytest.raises((ValueError, TypeError)) as error:
            make(**options)
        assert words in str(error.value)
        assert "\n" not in str(error.value)


def _bomb() -> Any:
    bomb: Any = "x"
    for _ in range(60):
        bomb = [bomb, bomb]
    return bomb


HOSTILE: tuple[Any, ...] = (
    10**20, -(10**20), 10**5000, -1, True, 1.5, float("nan"), float("inf"), "3", "x" * 10**5,
    "\x1b[31m\n", None, np.float64(2.5), np.bool_(True), np.array(5), np.array([[1, 2]]), [], {},
    [1, "a"], (10**20, 10**20), {1}, _bomb(), b"x", 1j, object(), range(10**30), [1] * 20_000,
)  # fmt: skip
OWNERS = {"env": EnvOptions, "game": GameSettings, "reward": RewardSettings, "mame": MameOptions}
NAMES = [
    (owner, field.name)
    for owner, kind in OWNERS.items()
    for field in dataclasses.fields(kind)
    if field.name not in ("game", "reward", "machine")
]


@pytest.mark.parametrize(("owner", "name"), NAMES)
def test_no_value_of_any_option_ends_in_a_fault_below(owner: str, name: str) -> None:
    refused = 0
    for value in HOSTILE:
        needed = {"rom_path": "roms", "backend": "mame"} if owner == "mame" else {}
        try:
            EnvOptions.from_keywords({**needed, name: value}).game.records()
        except ValueError as error:
            refused += 1
            words = str(error)
            assert name in words or "rom_path" in words
            assert len(words) < 500
            assert words.isprintable()
    assert refused >= len(HOSTILE) // 2


def test_no_value_of_a_seed_or_a_reset_ends_in_a_fault_below() -> None:
    single, many = TempestEnv(), TempestVectorEnv(2)
    for value in HOSTILE:
        if value is None or (isinstance(value, int) and 0 <= value < 2**64):
            continue
        for env in (single, many):
            with pytest.raises(ValueError, match="seed="):
                env.reset(seed=value)
            if not isinstance(value, dict):
                with pytest.raises(TypeError, match="a dictionary or None"):
                    env.reset(options=value)
        with pytest.raises((ValueError, TypeError), match="reset_mask"):
            many.reset(options={"reset_mask": value})
        for name in ("num_envs", "num_threads", "max_episode_steps", "autoreset_mode"):
            if name != "num_threads" or not isinstance(value, int):
                with pytest.raises(ValueError, match=name):
                    TempestVectorEnv(**{name: value})
    observation, _ = single.reset(seed=np.int64(3))  # type: ignore[arg-type]
    assert (observation == single.reset(seed=3)[0]).all()


@pytest.mark.parametrize(
    "options",
    [
        {"start_level": 99, "lives": 2, "bonus_life": "none", "difficulty": "easy"},
        {"start_level": np.int64(5), "lives": 5, "bonus_life": 0, "difficulty": "hard"},
        {"start_level": (1, 3), "bonus_life": 70_000, "max_ticks": 1, "input_delay": 4},
        {"start_level": range(1, 100), "start_bonus": True, "frame_skip": 10, "skip_idle": False},
        {"obs_type": "grayscale", "screen_size": [64, 64], "seed": 0},
    ],
)
def test_every_legal_setting_is_taken(options: dict[str, Any]) -> None:
    env = TempestEnv(**options)
    observation, _ = env.reset()
    assert env.observation_space.contains(observation)
    env.close()


def test_options_have_the_documented_defaults() -> None:
    options = EnvOptions()
    assert (options.obs_type, options.action_type) == ("features", "hybrid")
    assert (options.game.frame_skip, options.game.skip_idle, options.game.input_delay) == (
        1,
        True,
        0,
    )
    assert (options.reward.reward_scale, options.reward.death_penalty) == (0.01, 0)
    assert options.reward.shaping == 0


# -- actions --------------------------------------------------------------------------------


def test_spinner_is_in_units_of_31_counts() -> None:
    values = np.array([-1, -0.5, 0, 1 / 31, 0.49 / 31, 1, 7, -7])
    assert spinner_counts(values).tolist() == [-31, -16, 0, 1, 0, 31, 31, -31]


def test_spinner_keeps_the_sign_of_the_knob() -> None:
    """Positive counts lower the lane, as on the machine."""
    env = TempestEnv()
    env.reset(seed=0)
    before = int(env.batch.ram["rim_pos"][0])
    env.step({"buttons": 0, "spinner": np.array([0.5], np.float32)})
    assert (before - int(env.batch.ram["rim_pos"][0])) % 256 == 16


@given(st.integers(-31, 31), st.integers(0, 3))
def test_hybrid_and_box_express_every_input(spin: int, buttons: int) -> None:
    for form, name in ((HybridActions(), "hybrid"), (BoxActions(), "box")):
        action = encode(name, spin, buttons)
        assert form.space.contains(action)
        counts, pairs = form.decode(form.single(action), 1)
        assert (counts[0], pairs[0]) == (spin, buttons)


@pytest.mark.parametrize("knots", [1, 3, 17, 63])
def test_discrete_numbers_are_buttons_times_knots_plus_knot(knots: int) -> None:
    form = DiscreteActions(knots)
    numbers = np.arange(4 * knots)
    spin, buttons = form.decode(numbers, 4 * knots)
    assert form.space == spaces.Discrete(4 * knots)
    assert (buttons == numbers // knots).all()
    for pair in range(4):
        assert (spin[pair * knots : (pair + 1) * knots] == knot_counts(knots)).all()
    assert knot_counts(knots)[knots // 2] == 0
    assert len(set(knot_counts(knots).tolist())) == knots
    assert (knot_counts(knots) == -knot_counts(knots)[::-1]).all()


@pytest.mark.parametrize(
    ("action_type", "action", "words"),
    [
        ("hybrid", np.zeros(3), "takes a dict"),
        ("hybrid", {"buttons": 1}, "takes a dict"),
        ("hybrid", {"buttons": 4, "spinner": np.zeros(1)}, "from 0 to 3"),
        ("hybrid", {"buttons": 1, "spinner": np.zeros(2)}, r"shape \(2,\): of shape \(1,\) is"),
        ("hybrid", {"buttons": 1, "spinner": 0.5}, r"spinner=0.5 has .* of shape \(1,\) is needed"),
        ("hybrid", {"buttons": [1], "spinner": np.zeros(1)}, "a single number is needed"),
        ("hybrid", {"buttons": 1.5, "spinner": np.zeros(1)}, "whole numbers"),
        ("box", np.zeros(2), "shape"),
        ("box", np.array([0, 0, np.nan]), "nan"),
        ("discrete", 68, "from 0 to 67"),
        ("discrete", -1, "from 0 to 67"),
    ],
)
def test_an_action_outside_the_space_is_refused(action_type: str, action: Any, words: str) -> None:
    env = TempestEnv(action_type=action_type)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=words):
        env.step(action)


# -- rewards --------------------------------------------------------------------------------


def test_reward_is_scaled_points_less_the_penalty() -> None:
    rewards = Rewards(RewardSettings(reward_scale=0.5, death_penalty=3), 2)
    ram = np.zeros(2, RAM_DTYPE)
    total, parts = rewards.step(np.array([150, 0], np.int32), np.array([0, 1], np.int8), ram,
                         np.zeros(2, np.bool_))  # fmt: skip
    assert total.tolist() == [75, -3]
    assert parts["reward_points"].tolist() == [75, 0]
    assert parts["reward_death"].tolist() == [0, -3]
    assert parts["reward_shaping"].tolist() == [0, 0]


def test_cleared_share_falls_with_enemies_and_nymphs() -> None:
    ram = np.zeros(3, RAM_DTYPE)
    ram["queue_start_count"] = 10
    ram["queue_count"] = [10, 4, 0]
    ram["enemy_depth"][1, :2] = 0x50
    assert cleared_share(ram).tolist() == [0, pytest.approx(0.4), 1]


@pytest.mark.parametrize("vector", [False, True])
def test_discounted_shaping_of_an_episode_telescopes(vector: bool) -> None:
    """Its sum is minus the first potential: no policy can gain by it."""
    options: dict[str, Any] = {"shaping": 2.0, "shaping_discount": 0.97, "lives": 2}
    if vector:
        env: Any = TempestVectorEnv(1, autoreset_mode="SameStep", action_type="discrete", **options)
    else:
        env = TempestEnv(action_type="discrete", **options)
    env.reset(seed=3)
    first = float(cleared_share(env.batch.ram)[0])
    total, discount = 0.0, 1.0
    for _ in range(3000):
        action = 17 + 8
        _, reward, terminated, _, info = env.step(np.array([action]) if vector else action)
        total += discount * float(np.squeeze(info["reward_shaping"]))
        discount *= 0.97
        parts = ("reward_points", "reward_death", "reward_shaping")
        assert float(np.squeeze(reward)) == pytest.approx(
            sum(float(np.squeeze(info[name])) for name in parts)
        )
        if np.all(terminated):
            break
    assert np.all(terminated)
    assert total == pytest.approx(-2.0 * first)

"""The environment under Stable-Baselines3's own algorithms and checks."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.vector import SyncVectorEnv
from stable_baselines3 import DQN, PPO, SAC
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from tempest_agent.envs.api.sb3_vec_env import TempestVecEnv
from tempest_agent.envs.api.tempest_env import TempestEnv


@pytest.fixture(autouse=True)
def _one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("action_type", ["box", "discrete"])
def test_sb3_finds_nothing_to_complain_about(action_type: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(TempestEnv(action_type=action_type))


@pytest.mark.parametrize("action_type", ["box", "discrete"])
def test_equals_sb3s_own_vector_form(action_type: str) -> None:
    """The slow reference: single environments stepped one after the other by SB3."""
    options: dict[str, Any] = {
        "action_type": action_type,
        "lives": 2,
        "max_ticks": 300,
        "start_level": 17,
    }
    slow = DummyVecEnv([lambda: TempestEnv(**options)] * 3)
    fast = TempestVecEnv(3, **options)
    assert fast.observation_space == slow.observation_space
    assert fast.action_space == slow.action_space
    slow.seed(5)
    fast.seed(5)
    np.testing.assert_array_equal(slow.reset(), fast.reset())
    assert slow.reset_infos == fast.reset_infos
    slow.action_space.seed(0)
    cuts, deaths = 0, 0
    for _ in range(900):
        actions = np.array([slow.action_space.sample() for _ in range(3)])
        expected, got = slow.step(actions), fast.step(actions)
        for one, other in zip(expected[:3], got[:3], strict=True):
            np.testing.assert_array_equal(one, other)
        for one, other, done in zip(expected[3], got[3], expected[2], strict=True):
            if done:
                np.testing.assert_array_equal(
                    one.pop("terminal_observation"), other.pop("terminal_observation")
                )
                cuts += int(one["TimeLimit.truncated"])
                deaths += int(not one["TimeLimit.truncated"])
                assert other.pop("episode")["l"] > 0
            assert other == one
    assert cuts > 0
    assert deaths > 0


@pytest.mark.parametrize(
    ("algorithm", "action_type", "options"),
    [
        (PPO, "box", {"n_steps": 32, "batch_size": 64, "n_epochs": 1}),
        (PPO, "discrete", {"n_steps": 32, "batch_size": 64, "n_epochs": 1}),
        (SAC, "box", {"learning_starts": 64, "batch_size": 32, "buffer_size": 1000}),
        (DQN, "discrete", {"learning_starts": 64, "batch_size": 32, "buffer_size": 1000}),
    ],
)
def test_sb3_algorithms_train(algorithm: Any, action_type: str, options: dict[str, Any]) -> None:
    env = TempestVecEnv(4, action_type=action_type, max_ticks=40)
    model = algorithm("MlpPolicy", env, seed=0, device="cpu", **options)
    before = [parameter.clone() for parameter in model.policy.parameters()]
    model.learn(256)
    assert model.num_timesteps >= 256
    after = list(model.policy.parameters())
    assert any(not torch.equal(*pair) for pair in zip(before, after, strict=True))
    assert all(torch.isfinite(parameter).all() for parameter in after)
    assert len(model.ep_info_buffer) > 0
    action, _ = model.predict(env.reset())
    assert len(action) == 4


def test_sb3_evaluates_and_normalises() -> None:
    env = VecNormalize(TempestVecEnv(2, max_ticks=30), norm_reward=False)
    model = PPO("MlpPolicy", env, n_steps=8, batch_size=16, seed=0, device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, lengths = evaluate_policy(model, env, 4, return_episode_rewards=True)
    assert lengths == [30] * 4


def test_what_sb3_refuses_is_said_at_once() -> None:
    with pytest.raises(ValueError, match="use 'box'"):
        TempestVecEnv(2, action_type="hybrid")
    env = TempestVecEnv(2)
    with pytest.raises(NotImplementedError, match="set it on the vector environment"):
        env.set_attr("options", None)
    with pytest.raises(NotImplementedError, match="call the vector environment"):
        env.env_method("clone_state")
    with pytest.raises(RuntimeError, match="before step_async"):
        env.step_wait()


def test_images_and_pictures_of_single_games() -> None:
    env = TempestVecEnv(3, render_mode="rgb_array", render_size=(60, 80))
    env.seed(0)
    env.reset()
    assert env.env_method("ram", indices=[1])[0].tobytes() == env.env.ram()[1].tobytes()
    assert [np.asarray(picture).shape for picture in env.get_images()] == [(80, 60, 3)] * 3
    env.close()


def test_it_is_gymnasiums_vector_form_underneath() -> None:
    slow = SyncVectorEnv([lambda: TempestEnv(action_type="box")] * 2)
    fast = TempestVecEnv(2)
    fast.seed(3)
    np.testing.assert_array_equal(slow.reset(seed=3)[0], fast.reset())

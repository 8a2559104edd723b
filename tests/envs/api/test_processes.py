"""The environment in other people's machinery: pickles, worker processes, threads."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import cloudpickle
import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

ENV_ID = "tempest_agent:Tempest-v0"
STEPS = 150


def make(start_level: int = 1) -> gym.Env[Any, Any]:
    return gym.make(ENV_ID, action_type="discrete", start_level=start_level, lives=2)


def play(env: Any, seed: int) -> list[tuple[bytes, float]]:
    """Observations and rewards of a short game with actions drawn from ``seed``."""
    env.reset(seed=seed)
    rng = np.random.default_rng(seed)
    seen = []
    for _ in range(STEPS):
        observation, reward, *_ = env.step(int(rng.integers(env.action_space.n)))
        seen.append((observation.tobytes(), float(reward)))
    return seen


@pytest.mark.parametrize("module", [pickle, cloudpickle])
def test_a_copy_through_a_pickle_goes_on_as_the_original(module: Any) -> None:
    env = make().unwrapped
    play(env, 3)
    copy = module.loads(module.dumps(env))
    for action in (1, 5, 9, 2):
        ours, theirs = env.step(action), copy.step(action)
        np.testing.assert_array_equal(ours[0], theirs[0])
        assert ours[1:] == theirs[1:]


def test_a_lambda_that_makes_an_environment_travels() -> None:
    made = cloudpickle.loads(cloudpickle.dumps(lambda: make(9)))()
    assert play(made, 1) == play(make(9), 1)


def test_threads_do_not_share_anything() -> None:
    alone = [play(make(), seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda seed: play(make(), seed), range(4)))
    assert together == alone


def test_gymnasiums_worker_processes_play_the_same_games() -> None:
    sync = gym.vector.SyncVectorEnv([make, make])
    workers = gym.vector.AsyncVectorEnv([make, make])
    try:
        assert (sync.reset(seed=5)[0] == workers.reset(seed=5)[0]).all()
        sync.action_space.seed(0)
        for _ in range(40):
            actions = sync.action_space.sample()
            for ours, theirs in zip(sync.step(actions)[:4], workers.step(actions)[:4], strict=True):
                np.testing.assert_array_equal(ours, theirs)
    finally:
        workers.close()
        sync.close()


def test_sb3s_worker_processes_play_the_same_games() -> None:
    # No function of this file: the workers' processes may not find the tests' modules.
    made = partial(gym.make, ENV_ID, action_type="discrete", start_level=1, lives=2)
    here = DummyVecEnv([made, made])
    workers = SubprocVecEnv([made, made])
    try:
        here.seed(5)
        workers.seed(5)
        np.testing.assert_array_equal(here.reset(), workers.reset())
        rng = np.random.default_rng(0)
        for _ in range(40):
            actions = rng.integers(here.action_space.n, size=2)  # type: ignore[attr-defined]
            for ours, theirs in zip(here.step(actions)[:3], workers.step(actions)[:3], strict=True):
                np.testing.assert_array_equal(ours, theirs)
    finally:
        workers.close()
        here.close()

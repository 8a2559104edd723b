"""Speed of training: the default configuration, and the library on a small task."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3 import DQN

from tempest_agent.agent.dqn.hybrid_dqn import HybridDQN
from tempest_agent.bench.figures import Figure, compared, figure
from tempest_agent.config import load_config, without_auto
from tempest_agent.training.trainer import Trainer

SHORT = (
    "run.steps=60_000",
    "run.log_interval=10_000",
    "run.checkpoint_interval=1_000_000",
    "run.save_replay=false",
    "replay.capacity=60_000",
    "teacher.score=100_000",
)
WARM_UP_LINES = 2
"""Log rows that are left out, in which the replay fills and kernels compile."""

SMALL_STEPS = 2_000
SMALL_ROUNDS = 5
SMALL: dict[str, Any] = {
    "learning_rate": 1e-3,
    "buffer_size": 20_000,
    "learning_starts": 200,
    "batch_size": 32,
    "train_freq": 1,
    "gradient_steps": 1,
    "n_steps": 1,
    "policy_kwargs": {"net_arch": [64, 64]},
    "device": "cpu",
    "seed": 1,
}
"""The same for both algorithms, an update after every step."""


def measure() -> dict[str, Figure]:
    """Measure steps and learned rows per second once learning has started."""
    lines: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        Trainer(
            without_auto(load_config("default", SHORT)), Path(folder), on_metrics=lines.append
        ).run()
    steady = lines[WARM_UP_LINES:]

    def mean(name: str) -> float:
        # Rows are equally many steps apart: the harmonic mean.
        return len(steady) / sum(1.0 / line[name] for line in steady)

    return {
        "env_steps_per_second": figure(mean("env_steps_per_second"), "decisions/s"),
        "samples_per_second": figure(mean("samples_per_second"), "rows/s"),
        "updates_per_second": figure(mean("updates_per_second"), "updates/s"),
        "small_ratio_to_sb3": _beside_sb3(),
    }


class _Balance(gym.Env[NDArray[np.float32], Any]):
    """CartPole; if ``hybrid``, with a continuous part besides its two actions."""

    def __init__(self, hybrid: bool) -> None:
        self.game: Any = gym.make("CartPole-v1")
        self.observation_space = self.game.observation_space
        push, place = spaces.Discrete(2), spaces.Box(-1.0, 1.0, (1,))
        self.action_space: spaces.Space[Any] = (
            spaces.Dict({"place": place, "push": push}) if hybrid else push
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        begun: tuple[NDArray[np.float32], dict[str, Any]] = self.game.reset(seed=seed)
        return begun

    def step(self, action: Any) -> Any:
        return self.game.step(int(action["push"] if isinstance(action, dict) else action))


def _beside_sb3() -> Figure:
    """Compare CPU times with SB3's DQN on one environment and a small network, in turns."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        seconds = np.array(
            [[_cpu_time(DQN), _cpu_time(HybridDQN)] for _ in range(1 + SMALL_ROUNDS)]
        )
    finally:
        torch.set_num_threads(threads)
    theirs, ours = seconds[1:].T
    ratio = float(np.median(ours / theirs))
    unit = "CPU time to that of SB3's DQN, one environment, 2 layers of 64, batch 32"
    return compared(ratio, unit, float(np.median(theirs)))


def _cpu_time(algorithm: Any) -> float:
    hybrid = algorithm is HybridDQN
    agent = algorithm("MlpQPolicy" if hybrid else "MlpPolicy", _Balance(hybrid), **SMALL)
    began = time.process_time()
    agent.learn(SMALL_STEPS)
    return time.process_time() - began

"""A small hybrid-action environment with a known optimum, in the form of any Gymnasium project.

A state names one of three tools and a place from -2 to 3.  The right tool earns
``1 - |action - place|`` (at least 0), another nothing, and the next state is drawn at random.  An
episode is cut after ten steps, and ends earlier where the agent hits a mine: a fourth tool that is
never right.  Playing perfectly earns 10.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

TOOLS, MINE, LENGTH = 3, 3, 10


class TargetGame(gym.Env[NDArray[np.float64], Any]):
    """``form``: whether an action is a ``dict`` or a ``tuple``."""

    def __init__(self, form: str = "dict") -> None:
        self.observation_space = spaces.Box(-2.0, 3.0, (1 + TOOLS,), np.float64)
        tool, place = spaces.Discrete(TOOLS + 1), spaces.Box(-2.0, 3.0, (1,), np.float32)
        self.form = form
        self.action_space: spaces.Space[Any] = (
            spaces.Dict({"place": place, "tool": tool})
            if form == "dict"
            else spaces.Tuple((tool, place))
        )
        self.steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float64], dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        return self._draw(), {}

    def _draw(self) -> NDArray[np.float64]:
        self.state = np.zeros(1 + TOOLS)
        self.state[0] = self.np_random.uniform(-2.0, 3.0)
        self.state[1 + int(self.np_random.integers(TOOLS))] = 1.0
        return self.state.copy()

    def step(self, action: Any) -> tuple[NDArray[np.float64], float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action), action
        tool, place = (
            (action["tool"], action["place"]) if isinstance(action, dict) else tuple(action)
        )
        distance = abs(float(place[0]) - float(self.state[0]))
        right = tool != MINE and self.state[1 + int(tool)] == 1.0
        reward = max(0.0, 1.0 - distance) if right else 0.0
        self.steps += 1
        return self._draw(), reward, bool(tool == MINE), self.steps >= LENGTH, {}


def best_action(state: NDArray[np.float64]) -> dict[str, Any]:
    """What earns 1 in ``state``."""
    return {"tool": np.int64(state[1:].argmax()), "place": state[:1].astype(np.float32)}


QUICK: dict[str, Any] = {
    "learning_rate": 5e-3,
    "buffer_size": 20_000,
    "learning_starts": 160,
    "batch_size": 128,
    "gamma": 0.0,
    "n_steps": 1,
    "target_update_interval": 100,
    "exploration_fraction": 0.5,
    "policy_kwargs": {"net_arch": [64, 64], "spinner_knots": 11},
    "device": "cpu",
    "seed": 3,
    "config": {"learner": {"ema_decay": 0.98}},
}
"""Arguments with which it is learned in seconds."""

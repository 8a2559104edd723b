"""The last lines of a run's metrics, with what they are judged against."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import fmean
from typing import NamedTuple

from tempest_agent.config import Config

from .actions import BUTTON_PAIRS

DRIVERS = ("agent", "exploration", "expert")
LEAST_SHARE = 0.05
"""Drivers with a smaller share of a line's decisions have too noisy a mean reward."""
LEAST_DECISIONS = 3_000
"""Decisions of the agent before their mean reward says anything."""
LEAST_GAMES = 20
"""Teacher-free games before their mean score says anything."""
RARE = 0.01
"""Share of the decisions that go another way than the label, once the agent has learned it."""


class Facts(NamedTuple):
    """What the detectors need to know of a run besides its metrics."""

    gamma: float
    max_grad_norm: float
    target_age: float
    """Age in updates that the target network's weights have when all is well."""
    free_share: float
    label_pull: float = 0.0
    """How far the teacher's labels alone may move a value away from any return."""

    @staticmethod
    def of(config: Config) -> Facts:
        """The facts of a run with the settings ``config``."""
        learner = config.learner
        return Facts(
            learner.gamma,
            learner.max_grad_norm,
            learner.target_update_interval / learner.tau,
            config.teacher.free_share,
            label_pull(config),
        )


def label_pull(config: Config) -> float:
    """How far imitation may lift the labelled action's value, or push another's down.

    The margin loss has no gradient once the margin is kept.  The cross entropy of temperature T and
    weight w pushes an action that is D below the label with at most ``w / T * exp(-D / T)``, and
    the value loss pulls back with at most 1 in the share of the decisions that take it: with A
    actions, ``RARE / A``.  Both are equal at ``D = T * log(w * A / (T * RARE))``.
    """
    learner, labelled = config.learner, config.teacher.name != "none"
    if not (labelled or config.replay.demonstrations) or learner.imitation_weight == 0:
        return 0.0
    if learner.imitation == "margin":
        return learner.imitation_margin
    if learner.imitation != "cross_entropy":
        return 0.0
    temperature = learner.imitation_temperature
    actions = BUTTON_PAIRS * config.network.spinner_knots
    return temperature * math.log1p(learner.imitation_weight * actions / (temperature * RARE))


class Series:
    """The last lines of metrics, and the best that the run has reached so far.

    Args:
        window: lines that are kept.
        free_share: share of the games that the teacher never drives.
    """

    def __init__(self, window: int, free_share: float) -> None:
        self.window, self.free_share = window, free_share
        self.lines: list[dict[str, float]] = []
        self.best_reward = 0.0
        """Highest mean reward of a decision of any driver, over a line."""
        self.best_agent_reward = 0.0
        """Highest mean reward of the agent's decisions over a third of a window."""
        self.best_score = 0.0
        """Highest mean score of the teacher-free games."""

    @property
    def third(self) -> int:
        """Lines over which noisy figures are averaged."""
        return self.window // 3

    def add(self, line: Mapping[str, float]) -> None:
        """Take in the next line."""
        self.lines = [*self.lines, dict(line)][-self.window :]
        for driver in DRIVERS:
            reward = line.get(f"reward_{driver}", 0.0)
            if line.get(f"share_{driver}", 1.0) >= LEAST_SHARE and math.isfinite(reward):
                self.best_reward = max(self.best_reward, reward)
        recent = self.values("reward_agent")[-self.third :]
        if len(recent) == self.third and self.own_decisions(self.third) >= LEAST_DECISIONS:
            self.best_agent_reward = max(self.best_agent_reward, fmean(recent))
        if self.enough_games():
            self.best_score = max(self.best_score, line.get("teacher_free_score", 0.0))

    def enough_games(self) -> bool:
        """Whether the last line's teacher-free score rests on enough games."""
        return self.last("games", 0.0) * self.free_share >= LEAST_GAMES

    def own_decisions(self, lines: int) -> float:
        """Decisions of the agent in the last ``lines`` lines, about."""
        first = self.lines[-lines - 1]["steps"] if len(self.lines) > lines else 0.0
        return (self.last("steps", 0.0) - first) * self.last("share_agent", 1.0)

    def last(self, name: str, default: float = math.nan) -> float:
        """A figure of the last line."""
        return self.lines[-1].get(name, default) if self.lines else default

    def values(self, name: str) -> list[float]:
        """The finite values of a figure in the window, oldest first."""
        found = (line[name] for line in self.lines if name in line)
        return [value for value in found if math.isfinite(value)]

    def thirds(self, name: str) -> tuple[float, float] | None:
        """Means of a figure over the oldest and newest third; None of too few lines."""
        values = self.values(name)
        if len(values) < max(3, 2 * self.window // 3):
            return None
        third = len(values) // 3
        return fmean(values[:third]), fmean(values[-third:])

    def value_scale(self, gamma: float) -> float:
        """What the best mean reward so far is worth if it goes on for ever; 0 if unknown."""
        return self.best_reward / (1.0 - gamma)

    def state_dict(self) -> dict[str, object]:
        return {
            "lines": [dict(line) for line in self.lines],
            "best_reward": self.best_reward,
            "best_agent_reward": self.best_agent_reward,
            "best_score": self.best_score,
        }

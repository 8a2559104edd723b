"""The last lines of a run's metrics, with what they are judged against.

Rewards may be of any sign and size.  What is large is measured from the run itself: how far play
has come since its beginning, how far figures scatter, and how large rewards are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from statistics import fmean
from typing import Any, NamedTuple

from tempest_agent.agent.collect.drivers import free_games
from tempest_agent.agent.networks.value_distributions import make_distribution
from tempest_agent.config import Config
from tempest_agent.envs.machine.inputs import BUTTON_PAIRS

DRIVERS = ("agent", "exploration", "expert")
LEAST_SHARE = 0.05
"""Drivers with a smaller share of a line's decisions have too noisy a mean reward."""
LEAST_DECISIONS = 3_000
"""Decisions of the agent before their mean reward says anything."""
LEAST_GAMES = 20
"""Teacher-free games before their mean score says anything."""
RARE = 0.01
"""Share of the decisions that go another way than the label, once the agent has learned it."""
UNKNOWN = math.nan


class Facts(NamedTuple):
    """What the detectors need to know of a run besides its metrics."""

    gamma: float
    max_grad_norm: float
    target_age: float
    """Age in updates that the target network's weights have when all is well."""
    free_share: float
    """Share of the games that the teacher never drives."""
    label_pull: float = 0.0
    """How far the teacher's labels alone may move a value away from any return."""
    bin_width: float = 0.0
    """Between the middle values of a loss over bins, in units of reward; 0 of other losses."""
    updates: float = math.inf
    """That the whole run makes, about."""

    @staticmethod
    def of(config: Config, has_teacher: bool = False) -> Facts:
        """The facts of a run with the settings ``config``.

        ``has_teacher``: whether there is one, whatever ``teacher.name``.
        """
        learner, games = config.learner, config.run.num_envs
        return Facts(
            learner.gamma,
            learner.max_grad_norm,
            learner.target_update_interval / learner.tau,
            free_games(games, config.teacher.free_share) / games,
            label_pull(config, has_teacher),
            make_distribution(learner).step,
        ).for_steps(config, config.run.steps)

    def for_steps(self, config: Config, steps: int) -> Facts:
        """The same of a run that ends after ``steps`` decisions."""
        turns = max(steps - config.replay.learning_starts, 0) / config.run.num_envs
        return self._replace(
            updates=turns / config.learner.train_freq * config.learner.gradient_steps
        )


def label_pull(config: Config, has_teacher: bool = False) -> float:
    """How far imitation may lift the labelled action's value, or push another's down.

    The cross entropy of temperature T and weight w pushes an action that is D below the label with
    at most ``w / T * exp(-D / T)``, and the value loss pulls back with at most 1 in the share of
    the decisions that take it: with A actions, ``RARE / A``.  Both are equal at
    ``D = T * log(w * A / (T * RARE))``.
    """
    learner, labelled = config.learner, has_teacher or config.teacher.name != "none"
    if not (labelled or config.replay.demonstrations) or learner.imitation_weight == 0:
        return 0.0
    if learner.imitation == "none":
        return 0.0
    temperature = learner.imitation_temperature
    actions = BUTTON_PAIRS * config.network.spinner_knots
    return temperature * math.log1p(learner.imitation_weight * actions / (temperature * RARE))


class Level:
    """The first and the highest level of a figure: what a fall is to be compared with.

    All are ``UNKNOWN`` before the first.
    """

    def __init__(self) -> None:
        self.first = self.best = self.spread = UNKNOWN

    def add(self, level: float, spread: float) -> None:
        """Take note of a level, and of how far single values scatter around it."""
        if math.isnan(self.first):
            self.first = level
        if not level <= self.best:
            self.best, self.spread = level, spread

    @property
    def gained(self) -> float:
        """How far the highest level lies above the first."""
        return self.best - self.first

    @property
    def size(self) -> float:
        """What was gained, or the highest level itself if that is more.

        The latter means little, as where 0 lies is a matter of taste: it can only keep quiet.
        """
        return max(self.gained, abs(self.best))

    def fall(self, level: float, spread: float, spreads: float) -> float:
        """How far ``level`` lies below the best; 0 within so many of the larger of the spreads."""
        fall = self.best - level
        # Not max(), which depends on the order where one is unknown.
        beyond = not any(fall <= spreads * each for each in (spread, self.spread))
        return fall if fall > ROUNDING * abs(self.best) and beyond else 0.0


ROUNDING = 0.01
"""A fall of less than this share of the level itself is none, even if nothing scatters."""


def scatter(values: list[float]) -> float:
    """Standard deviation of ``values`` around their trend; ``UNKNOWN`` of fewer than two."""
    steps = [(later - earlier) ** 2 for earlier, later in pairwise(values)]
    return math.sqrt(fmean(steps) / 2.0) if steps else UNKNOWN


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
        """Largest magnitude of the mean reward of a decision of any driver, over a line."""
        self.agent_reward = Level()
        """Of the mean reward of the agent's decisions over a third of a window."""
        self.score = Level()
        """Of the mean score of the teacher-free games."""

    @property
    def third(self) -> int:
        """Lines over which noisy figures are averaged."""
        return self.window // 3

    def add(self, line: Mapping[str, float]) -> None:
        """Take in the next line."""
        self.lines = [*self.lines, dict(line)][-self.window :]
        self.best_reward = max(self.best_reward, reward_size(line))
        recent = self.values("reward_agent")
        if len(recent) >= self.third and self.own_decisions(self.third) >= LEAST_DECISIONS:
            self.agent_reward.add(fmean(recent[-self.third :]), scatter(recent))
        score = self.last("teacher_free_score")
        if self.enough_games() and math.isfinite(score):
            self.score.add(score, self.last("teacher_free_score_spread"))

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
        """What the largest mean reward so far is worth if it goes on for ever; 0 before any.

        It is at least the largest single reward, which many values are worth where rewards are
        rare.
        """
        largest = self.last("return_bound", 0.0) * (1.0 - gamma)
        return max(self.best_reward / (1.0 - gamma), largest)

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = {
            "lines": [dict(line) for line in self.lines],
            "best_reward": self.best_reward,
        }
        for name in _LEVELS:
            level = getattr(self, name)
            for of in _OF_A_LEVEL:
                value = getattr(level, of)
                # Not NaN, which no comparison of two states finds equal.
                state[f"{of}_{name}"] = None if math.isnan(value) else value
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from ``state_dict``."""
        self.lines = [dict(line) for line in state["lines"]]
        self.best_reward = float(state["best_reward"])
        for name in _LEVELS:
            # Files of earlier versions have levels that begin at 0: they are measured anew.
            if f"first_{name}" in state:
                for of in _OF_A_LEVEL:
                    value = state[f"{of}_{name}"]
                    setattr(getattr(self, name), of, UNKNOWN if value is None else float(value))


_LEVELS = ("agent_reward", "score")
_OF_A_LEVEL = ("best", "first", "spread")


def reward_size(line: Mapping[str, float]) -> float:
    """Largest magnitude of the mean rewards of drivers with decisions enough in a line."""
    rewards = (
        abs(line.get(f"reward_{driver}", 0.0))
        for driver in DRIVERS
        if line.get(f"share_{driver}", 1.0) >= LEAST_SHARE
    )
    return max((reward for reward in rewards if math.isfinite(reward)), default=0.0)

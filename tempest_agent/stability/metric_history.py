"""The last log rows of a run, and the facts and levels that they are judged against.

Rewards may have any sign and size, so the run itself defines what is large: by the progress of play
since its start, the scatter of its metrics, and the size of its rewards.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from statistics import fmean
from typing import Any, NamedTuple

from tempest_agent.agent.collect.drivers import teacher_free_games
from tempest_agent.agent.networks.value_distributions import make_distribution
from tempest_agent.agent.replay.rows import DRIVER_NAMES
from tempest_agent.config import Config
from tempest_agent.envs.machine.inputs import BUTTON_PAIRS

LEAST_SHARE = 0.05
"""Least share of a row's steps for a driver's mean reward to count."""
LEAST_DECISIONS = 3_000
"""Least steps of the agent for its mean reward to count."""
LEAST_GAMES = 20
"""Least teacher-free games for their mean score to count."""
RARE = 0.01
"""Share of the steps that deviate from the label once the agent has learned it."""
UNKNOWN = math.nan


class RunFacts(NamedTuple):
    """Facts about a run that the detectors need besides its metrics."""

    gamma: float
    max_grad_norm: float
    target_age: float
    """Normal age in updates of the target network's weights."""
    free_share: float
    """Share of the games that the teacher never drives."""
    label_pull: float = 0.0
    """How far the teacher's labels alone may move a value away from any return, in the learner's
    unit of reward."""
    bin_width: float = 0.0
    """Distance between bin centres of a loss over bins, in units of reward; 0 for other losses."""
    updates: float = math.inf
    """Approximate number in the whole run."""

    @staticmethod
    def of(config: Config, has_teacher: bool = False) -> RunFacts:
        """Return the facts of a run with the settings ``config``.

        ``has_teacher``: whether there is a teacher despite ``teacher.name=none``.
        """
        learner, games = config.learner, config.run.num_envs
        return RunFacts(
            learner.gamma,
            learner.max_grad_norm,
            learner.target_update_interval / learner.tau,
            teacher_free_games(games, config.teacher.free_share) / games,
            label_pull(config, has_teacher),
            make_distribution(learner).step,
        ).for_steps(config, config.run.steps)

    def for_steps(self, config: Config, steps: int) -> RunFacts:
        """Return the same of a run that ends after ``steps`` decisions."""
        turns = max(steps - config.replay.learning_starts, 0) / config.run.num_envs
        return self._replace(
            updates=turns / config.learner.train_freq * config.learner.gradient_steps
        )


def label_pull(config: Config, has_teacher: bool = False) -> float:
    """Return how far imitation may raise the labelled action's value, or lower another's.

    With a policy head it moves no value.

    The cross entropy of temperature T and weight w pushes an action that is D below the label with
    at most ``w / T * exp(-D / T)``, and the value loss pulls back with at most 1 in the share of
    the decisions that take it: with A actions, ``RARE / A``.  Both are equal at
    ``D = T * log(w * A / (T * RARE))``.
    """
    learner, labelled = config.learner, has_teacher or config.teacher.name != "none"
    if not (labelled or config.replay.demonstrations) or learner.imitation_weight == 0:
        return 0.0
    if learner.imitation == "none" or config.network.policy_head:
        return 0.0
    temperature = learner.imitation_temperature
    actions = BUTTON_PAIRS * config.network.spinner_knots
    return temperature * math.log1p(learner.imitation_weight * actions / (temperature * RARE))


class Level:
    """The first and the highest level of a metric, with which a fall is compared.

    All are ``UNKNOWN`` before the first level.
    """

    def __init__(self) -> None:
        self.first = self.best = self.spread = UNKNOWN

    def add(self, level: float, spread: float) -> None:
        """Record a level, and how far single values scatter around it."""
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
        """The gain, or the highest level itself if that is larger.

        The level itself means little, because the zero of scores is arbitrary; it can only raise
        the limit.
        """
        return max(self.gained, abs(self.best))

    def fall(self, level: float, spread: float, spreads: float) -> float:
        """Return how far ``level`` is below the best; 0 within ``spreads`` larger spreads."""
        fall = self.best - level
        # Not max(), which depends on the order if one is NaN.
        beyond = not any(fall <= spreads * each for each in (spread, self.spread))
        return fall if fall > ROUNDING * abs(self.best) and beyond else 0.0


ROUNDING = 0.01
"""A fall by a smaller share of the level itself does not count, even without scatter."""


def scatter(values: list[float]) -> float:
    """Return the standard deviation of ``values`` around their trend; ``UNKNOWN`` below two."""
    steps = [later - earlier for earlier, later in pairwise(values)]
    return math.sqrt(mean([step * step for step in steps]) / 2.0) if steps else UNKNOWN


def mean(values: list[float]) -> float:
    """Return the mean of ``values``, also if their sum exceeds the largest float."""
    try:
        return fmean(values)
    except OverflowError:
        return math.fsum(value / len(values) for value in values)


class MetricHistory:
    """The last log rows of a run, and the best levels that it has reached so far.

    Args:
        window: number of rows kept.
        free_share: share of the games that the teacher never drives.
    """

    def __init__(self, window: int, free_share: float) -> None:
        self.window, self.free_share = window, free_share
        self.lines: list[dict[str, float]] = []
        self.best_reward = 0.0
        """Largest magnitude of any driver's mean reward per step in a log row."""
        self.agent_reward = Level()
        """Of the agent's mean reward per step over a third of a window."""
        self.score = Level()
        """Of the mean score of the teacher-free games."""

    @property
    def unit(self) -> float:
        """The learner's unit of reward."""
        return self.last("reward_unit", 1.0)

    @property
    def third(self) -> int:
        """Log rows over which noisy metrics are averaged."""
        return self.window // 3

    def add(self, line: Mapping[str, float]) -> None:
        """Add the next log row."""
        self.lines = [*self.lines, dict(line)][-self.window :]
        self.best_reward = max(self.best_reward, reward_size(line))
        recent = self.values("reward_agent")
        if len(recent) >= self.third and self.own_decisions(self.third) >= LEAST_DECISIONS:
            self.agent_reward.add(mean(recent[-self.third :]), scatter(recent))
        score = self.last("teacher_free_score")
        if self.enough_games() and math.isfinite(score):
            self.score.add(score, self.last("teacher_free_score_spread"))

    def enough_games(self) -> bool:
        """Return whether the last row's teacher-free score rests on enough games."""
        return self.last("games", 0.0) * self.free_share >= LEAST_GAMES

    def own_decisions(self, lines: int) -> float:
        """Return the approximate number of the agent's steps in the last ``lines`` rows."""
        first = self.lines[-lines - 1]["steps"] if len(self.lines) > lines else 0.0
        return (self.last("steps", 0.0) - first) * self.last("share_agent", 1.0)

    def last(self, name: str, default: float = math.nan) -> float:
        """Return a metric of the last row."""
        return self.lines[-1].get(name, default) if self.lines else default

    def values(self, name: str) -> list[float]:
        """Return the finite values of a metric in the window, oldest first."""
        found = (line[name] for line in self.lines if name in line)
        return [value for value in found if math.isfinite(value)]

    def thirds(self, name: str) -> tuple[float, float] | None:
        """Return the means of a metric over the oldest and newest third; None for too few rows."""
        values = self.values(name)
        if len(values) < max(3, 2 * self.window // 3):
            return None
        third = len(values) // 3
        return mean(values[:third]), mean(values[-third:])

    def value_scale(self, gamma: float) -> float:
        """Return the value of receiving the largest mean reward so far for ever; 0 before any.

        It is at least the largest single reward, because with rare rewards many states are worth
        about one reward.
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
        """Continue from ``state_dict``."""
        self.lines = [dict(line) for line in state["lines"]]
        self.best_reward = float(state["best_reward"])
        for name in _LEVELS:
            for of in _OF_A_LEVEL:
                value = state[f"{of}_{name}"]
                setattr(getattr(self, name), of, UNKNOWN if value is None else float(value))


_LEVELS = ("agent_reward", "score")
_OF_A_LEVEL = ("best", "first", "spread")


def reward_size(line: Mapping[str, float]) -> float:
    """Return the largest magnitude of the mean rewards of drivers with enough steps."""
    rewards = (
        abs(line.get(f"reward_{driver}", 0.0))
        for driver in DRIVER_NAMES
        if line.get(f"share_{driver}", 1.0) >= LEAST_SHARE
    )
    return max((reward for reward in rewards if math.isfinite(reward)), default=0.0)

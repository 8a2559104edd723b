"""Settings that change during a run, as functions of the decisions played since its start.

They are data and travel in the checkpoint, so a resumed run goes on where it was, whatever length
it is resumed with.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from tempest_agent.config import Config


@dataclass(frozen=True)
class Ramp:
    """``start`` until decision ``first``, then down or up to ``end`` at decision ``last``.

    ``shape`` is the way there: ``linear``, ``cosine`` (half a wave), or ``constant`` (not at all).
    Over the first ``warm_up`` decisions the value rises from 0 in addition.
    """

    start: float
    end: float
    first: int
    last: int
    shape: str = "linear"
    warm_up: int = 0

    def __call__(self, step: int) -> float:
        value = self._ramp(step)
        return value * (step + 1) / self.warm_up if step + 1 < self.warm_up else value

    def at_share(self, share: float) -> float:
        """The value at ``share`` (0 to 1) of the way in a line, whatever the decision."""
        return self.start + (self.end - self.start) * share

    def _ramp(self, step: int) -> float:
        if step <= self.first or self.shape == "constant":
            return self.start
        if step >= self.last:
            return self.end
        if self.shape == "cosine":
            share = (step - self.first) / (self.last - self.first)
            return self.end + (self.start - self.end) * 0.5 * (1.0 + math.cos(math.pi * share))
        return self.start + (self.end - self.start) * (step - self.first) / (self.last - self.first)


@dataclass(frozen=True)
class Table:
    """Values at evenly spaced decisions from 0 to ``last``, straight lines between them."""

    values: tuple[float, ...]
    last: int

    def __call__(self, step: int) -> float:
        place = min(max(step / self.last, 0.0), 1.0) * (len(self.values) - 1)
        lower = min(int(place), len(self.values) - 2)
        left, right = self.values[lower : lower + 2]
        return left + (place - lower) * (right - left)

    @staticmethod
    def of(schedule: Callable[[float], float], last: int, count: int = 1001) -> Table:
        """``schedule``, a function of the progress remaining (1 to 0), at ``count`` places.

        As data it is in the checkpoint and needs no pickle.
        """
        return Table(tuple(float(schedule(1.0 - i / (count - 1))) for i in range(count)), last)


@dataclass(frozen=True)
class Schedules:
    """All schedules of a run."""

    learning_rate: Ramp | Table
    expert_ratio: Ramp
    epsilon: Ramp
    """Lower bound of every game's exploration rate; the ladder takes over when it has fallen."""
    importance: Ramp
    n_steps: Ramp

    @staticmethod
    def of(config: Config, rates: Table | None = None) -> Schedules:
        """The schedules that ``config`` describes; ``rates`` are step sizes in place of its own."""
        learner, teacher = config.learner, config.teacher
        exploration, replay, run = config.exploration, config.replay, config.run
        rate = learner.learning_rate
        hold = int(run.steps * learner.learning_rate_hold)
        return Schedules(
            learning_rate=replace(rates, last=run.steps)
            if rates is not None
            else Ramp(
                rate,
                rate * learner.learning_rate_floor,
                hold,
                run.steps,
                learner.learning_rate_schedule,
                learner.learning_rate_warm_up,
            ),
            expert_ratio=Ramp(
                teacher.expert_ratio_start,
                teacher.expert_ratio_floor,
                0,
                teacher.expert_ratio_steps,
            ),
            epsilon=Ramp(
                exploration.epsilon_start,
                exploration.epsilon_floor,
                0,
                exploration.epsilon_steps,
            ),
            importance=Ramp(replay.importance_start, 1.0, 0, replay.importance_steps),
            n_steps=Ramp(
                learner.n_steps, learner.n_steps_end or learner.n_steps, 0, learner.n_steps_steps
            ),
        )

    def to_dict(self) -> dict[str, dict[str, Any]]:
        return asdict(self)

    @staticmethod
    def from_dict(data: dict[str, dict[str, Any]], config: Config) -> Schedules:
        """What ``to_dict`` gave; schedules that an older file lacks are those of ``config``."""
        whole = Schedules.of(config).to_dict() | data
        rate = whole.pop("learning_rate")
        rates = (
            Table(tuple(rate["values"]), int(rate["last"])) if "values" in rate else Ramp(**rate)
        )
        ramps = {name: Ramp(**values) for name, values in whole.items()}
        return Schedules(learning_rate=rates, **ramps)

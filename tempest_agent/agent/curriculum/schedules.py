"""Settings that change during a run, as functions of the decisions played since its start.

They are data and part of the checkpoint: a resumed run keeps them, whatever its new length.
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

    ``shape`` is ``linear``, ``cosine`` (half a wave), or ``constant`` (``start`` throughout).
    Over the first ``warm_up`` decisions the value is scaled up from 0 in addition.
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
        """Return the value at ``share`` (0 to 1) of a linear ramp, whatever the decision."""
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
    """Values at evenly spaced decisions from 0 to ``last``, linearly interpolated."""

    values: tuple[float, ...]
    last: int

    def __call__(self, step: int) -> float:
        place = min(max(step / self.last, 0.0), 1.0) * (len(self.values) - 1)
        lower = min(int(place), len(self.values) - 2)
        left, right = self.values[lower : lower + 2]
        return left + (place - lower) * (right - left)

    @staticmethod
    def of(schedule: Callable[[float], float], last: int, count: int = 1001) -> Table:
        """Sample ``schedule``, a function of the progress remaining (1 to 0), at ``count`` places.

        A checkpoint can hold the table without pickle.
        """
        return Table(tuple(float(schedule(1.0 - i / (count - 1))) for i in range(count)), last)


@dataclass(frozen=True)
class Schedules:
    """All schedules of a run."""

    learning_rate: Ramp | Table
    expert_ratio: Ramp
    epsilon: Ramp
    """Lower bound of every game's exploration rate; the ladder decides below it."""
    importance: Ramp
    n_steps: Ramp

    @staticmethod
    def of(config: Config, rates: Table | None = None) -> Schedules:
        """Return the schedules of ``config``, with the learning rates ``rates`` if given."""
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
    def from_dict(data: dict[str, dict[str, Any]]) -> Schedules:
        """Return the schedules that ``to_dict`` described."""
        ramps = dict(data)
        rate = ramps.pop("learning_rate")
        rates = (
            Table(tuple(rate["values"]), int(rate["last"])) if "values" in rate else Ramp(**rate)
        )
        rest = {name: Ramp(**values) for name, values in ramps.items()}
        return Schedules(learning_rate=rates, **rest)

"""Settings that change during a run, as functions of the decisions played since its start.

They are data and travel in the checkpoint, so a resumed run goes on where it was, whatever length
it is resumed with.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from tempest_agent.config import Config


@dataclass(frozen=True)
class Linear:
    """``start`` until decision ``first``, then a straight line to ``end`` at decision ``last``."""

    start: float
    end: float
    first: int
    last: int

    def __call__(self, step: int) -> float:
        if step <= self.first:
            return self.start
        if step >= self.last:
            return self.end
        return self.start + (self.end - self.start) * (step - self.first) / (self.last - self.first)


@dataclass(frozen=True)
class Schedules:
    """All schedules of a run."""

    learning_rate: Linear
    expert_ratio: Linear
    epsilon: Linear
    """Lower bound of every game's exploration rate; the ladder takes over when it has fallen."""
    importance: Linear

    @staticmethod
    def of(config: Config) -> Schedules:
        """The schedules that ``config`` describes."""
        learner, teacher = config.learner, config.teacher
        exploration, replay, run = config.exploration, config.replay, config.run
        rate = learner.learning_rate
        hold = int(run.steps * learner.learning_rate_hold)
        return Schedules(
            learning_rate=Linear(rate, rate * learner.learning_rate_floor, hold, run.steps),
            expert_ratio=Linear(
                teacher.expert_ratio_start,
                teacher.expert_ratio_floor,
                0,
                teacher.expert_ratio_steps,
            ),
            epsilon=Linear(exploration.epsilon_start, 0.0, 0, exploration.epsilon_steps),
            importance=Linear(replay.importance_start, 1.0, 0, replay.importance_steps),
        )

    def to_dict(self) -> dict[str, dict[str, float]]:
        return asdict(self)

    @staticmethod
    def from_dict(data: dict[str, dict[str, float]]) -> Schedules:
        return Schedules(
            **{
                name: Linear(d["start"], d["end"], int(d["first"]), int(d["last"]))
                for name, d in data.items()
            }
        )

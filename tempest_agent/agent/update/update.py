"""How rows of the replay become updates: step by step, or as one recorded graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tempest_agent.agent.learner.learner import Learner
from tempest_agent.agent.learner.update_metrics import record_ages
from tempest_agent.agent.replay.buffer import ReplayBuffer

from .graph_update import WholeUpdate

Update = Callable[[int, float, float, float, int], tuple[Any, Any]]
"""One update: number of rows, exponent of the importance weights, step size, imitation gate and
factor on the number of micro-batches, to the rows drawn and their absolute errors."""


class PlainUpdate:
    """Draws rows and learns from them, one operation after the other; see ``WholeUpdate``."""

    def __init__(self, learner: Learner, replay: ReplayBuffer) -> None:
        self.learner, self.replay = learner, replay

    def __call__(
        self,
        count: int,
        importance: float,
        learning_rate: float,
        imitation: float,
        accumulation: int = 1,
    ) -> tuple[Any, Any]:
        """One optimiser step; arguments and results as in ``WholeUpdate``."""
        batch = self.replay.sample(count, importance)
        errors = self.learner.update(batch, learning_rate, imitation, accumulation)
        ages = self.replay.ages(batch.rows)
        record_ages(ages, self.learner.replicas.size, self.learner.metrics)
        return batch.rows, errors


def make_update(learner: Learner, replay: ReplayBuffer) -> Update:
    """The fastest form of an update that the learner's device and settings admit."""
    return WholeUpdate.of(learner, replay) or PlainUpdate(learner, replay)

"""What changes during a run: schedules, and the teacher's share.

With ``run.phases=steps`` each schedule has its own number of decisions.  With
``run.phases=teacher`` exploration and n-step returns follow the fall of the teacher's share, and
the step size is held until that share is at its floor.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tempest_agent.agent.collect.game_history import GameHistory
from tempest_agent.config import Config

from .expert_share import ExpertShare
from .schedules import Ramp, Schedules


class Curriculum:
    """The scheduled values at each decision of a run.

    Args:
        config: the whole configuration.
        schedules: by decisions; part of the checkpoint.

    Attributes:
        share: of the teacher.
    """

    def __init__(self, config: Config, schedules: Schedules) -> None:
        self.config, self.schedules = config, schedules
        self.share = ExpertShare(config.teacher)
        self._alone_since: int | None = None
        """Decision at which the teacher's share reached its floor."""

    @property
    def _by_teacher(self) -> bool:
        return self.config.run.phases == "teacher"

    def observe(self, step: int, history: GameHistory, teacher_score: float) -> None:
        """Update the teacher's share after a decision of every game.

        Args:
            step: decisions played so far.
            history: the games finished so far.
            teacher_score: the teacher's own mean score.
        """
        score, finished = history.teacher_free_score, history.teacher_free_finished
        self.share.observe(step, score, finished, teacher_score)
        if self._alone_since is None and self.progress(step) >= 1.0:
            self._alone_since = step

    def expert_ratio(self, step: int) -> float:
        """Return the teacher's share of new segments."""
        return self.share(self.schedules.expert_ratio(step))

    def progress(self, step: int) -> float:
        """Return how far the teacher's share has fallen to its floor, 0 to 1, apart from rises."""
        by_frames = self.schedules.expert_ratio
        way = by_frames.start - by_frames.end
        if way <= 0.0:
            return 1.0
        return (by_frames.start - self.share.without_rise(by_frames(step))) / way

    def epsilon(self, step: int) -> float:
        """Return the lower bound of every game's exploration rate."""
        ramp = self.schedules.epsilon
        return ramp.at_share(self.progress(step)) if self._by_teacher else ramp(step)

    def n_steps(self, step: int) -> int:
        """Return the length of the longest n-step return."""
        ramp = self.schedules.n_steps
        return round(ramp.at_share(self.progress(step)) if self._by_teacher else ramp(step))

    def learning_rate(self, step: int) -> float:
        """Return the learning rate."""
        ramp = self.schedules.learning_rate
        if self._by_teacher and isinstance(ramp, Ramp):
            alone = self._alone_since
            ramp = replace(ramp, shape="constant") if alone is None else replace(ramp, first=alone)
        return ramp(step)

    def figures(self, step: int) -> dict[str, float]:
        """Return the present values, for a log row."""
        by_frames = self.schedules.expert_ratio(step)
        return {
            "expert_ratio": self.expert_ratio(step),
            "expert_ratio_by_frames": by_frames,
            "expert_ratio_reason": float(self.share.reason(by_frames)),
            "learning_rate": self.learning_rate(step),
            "importance": self.schedules.importance(step),
            "n_steps": float(self.n_steps(step)),
        }

    def state_dict(self) -> dict[str, Any]:
        return {
            "share": self.share.state_dict(),
            "alone_since": self._alone_since,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.share.load_state_dict(state["share"])
        self._alone_since = state["alone_since"]

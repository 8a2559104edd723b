"""All that changes in the course of a run: schedules, the teacher's share, start levels.

Schedules go by their own numbers of decisions (``run.phases=steps``), or by the phases of the run
(``run.phases=teacher``): exploration and n-step returns move along with the fall of the teacher's
share, and the step size is held until that share is at its floor.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.agent.collect.collector import Collector
from tempest_agent.config import Config

from .expert_share import ExpertShare
from .schedules import Ramp, Schedules
from .start_levels import StartLevels


class Curriculum:
    """What holds at each decision of a run.

    Args:
        config: the whole configuration.
        free: bool ``(N,)``, the games in which the teacher never drives.

    Attributes:
        schedules: by decisions; part of the checkpoint.
        share: of the teacher.
        start_levels: of new games.
    """

    def __init__(self, config: Config, free: NDArray[np.bool_]) -> None:
        self.config = config
        self.schedules = Schedules.of(config)
        self.share = ExpertShare(config.teacher)
        self.start_levels = StartLevels(config.game, free)
        self._alone_since: int | None = None
        """Decision at which the teacher's share had fallen to its floor."""

    @property
    def _by_teacher(self) -> bool:
        return self.config.run.phases == "teacher"

    def observe(self, step: int, collector: Collector, teacher_score: float) -> None:
        """Take note of the decision of every game that ``collector`` has just played.

        Args:
            step: decisions played so far.
            collector: who has played them.
            teacher_score: the teacher's own mean score.
        """
        history = collector.history
        self.share.observe(step, history.free_score, history.free_finished, teacher_score)
        if collector.last is not None:
            if collector.last.left is not None:
                self.start_levels.forget(collector.last.left.games)
            self.start_levels.observe(collector.last.rows.driver, collector.last.step)
        if self._alone_since is None and self.progress(step) >= 1.0:
            self._alone_since = step

    def expert_ratio(self, step: int) -> float:
        """Share of new segments that the teacher gets."""
        return self.share(self.schedules.expert_ratio(step))

    def progress(self, step: int) -> float:
        """How far the teacher's share has fallen to its floor, 0 to 1; rises do not count."""
        by_frames = self.schedules.expert_ratio
        way = by_frames.start - by_frames.end
        if way <= 0.0:
            return 1.0
        return (by_frames.start - self.share.without_rise(by_frames(step))) / way

    def epsilon(self, step: int) -> float:
        """Lower bound of every game's exploration rate."""
        ramp = self.schedules.epsilon
        return ramp.at_share(self.progress(step)) if self._by_teacher else ramp(step)

    def n_steps(self, step: int) -> int:
        """Longest n-step return."""
        ramp = self.schedules.n_steps
        return round(ramp.at_share(self.progress(step)) if self._by_teacher else ramp(step))

    def learning_rate(self, step: int) -> float:
        """Step size of the optimiser."""
        ramp = self.schedules.learning_rate
        if self._by_teacher and isinstance(ramp, Ramp):
            alone = self._alone_since
            ramp = replace(ramp, shape="constant") if alone is None else replace(ramp, first=alone)
        return ramp(step)

    def figures(self, step: int) -> dict[str, float]:
        """What holds now, for a line of metrics."""
        by_frames = self.schedules.expert_ratio(step)
        return {
            "expert_ratio": self.expert_ratio(step),
            "expert_ratio_by_frames": by_frames,
            "expert_ratio_reason": float(self.share.reason(by_frames)),
            "learning_rate": self.learning_rate(step),
            "importance": self.schedules.importance(step),
            "n_steps": float(self.n_steps(step)),
        } | self.start_levels.figures()

    def state_dict(self) -> dict[str, Any]:
        return {
            "share": self.share.state_dict(),
            "start_levels": self.start_levels.state_dict(),
            "alone_since": self._alone_since,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.share.load_state_dict(state["share"])
        self.start_levels.load_state_dict(state["start_levels"])
        self._alone_since = state["alone_since"]

"""The teacher's share of the segments: by frames, and by the student's teacher-free score.

By frames the share falls linearly.  By performance that line is an upper bound: the share falls
with the score of the teacher-free games, never back, and rises by a bounded amount for a bounded
time when that score drops well below its best.  (A student that has left its teacher's states and
degrades needs more of them: Ross et al. 2011, "A reduction of imitation learning to no-regret
online learning".)
"""

from __future__ import annotations

from typing import Any

from tempest_agent.agent.learner.imitation import reached
from tempest_agent.config import TeacherConfig

FEWEST_GAMES = 20
"""Teacher-free games before their score decides anything."""

BY_FRAMES, BY_PERFORMANCE, RAISED = range(3)
"""Reasons for the present share, as numbers in the metrics."""


class ExpertShare:
    """The teacher's share of the segments.

    With s the teacher-free score, T the teacher's and g ``expert_ratio_goal``, the share by
    performance is ``start + (floor - start) * min(1, s / (g * T))``, and the lowest such value so
    far counts.  A rise of ``expert_ratio_rise`` starts when s is below
    ``best - expert_ratio_drop * |best|`` and ends when s has recovered half of that, or after
    ``expert_ratio_rise_steps`` decisions.  The next can start as many decisions after its end; s
    becomes the new best if it has not recovered.

    Args:
        teacher: the settings.
    """

    def __init__(self, teacher: TeacherConfig) -> None:
        self.teacher = teacher
        self.lowest = teacher.expert_ratio_start
        self.best: float | None = None
        self.raised = False
        self.turn = 0
        """Decision at which the rise ends, or before which none starts."""
        self.rises = 0

    def observe(self, step: int, score: float | None, games: int, teacher_score: float) -> None:
        """Update the share by the teacher-free games.

        Args:
            step: decisions played so far.
            score: mean score of the last teacher-free games; None before the first.
            games: teacher-free games finished so far.
            teacher_score: the teacher's own mean score.
        """
        teacher = self.teacher
        if teacher.expert_ratio_schedule != "performance":
            return
        if score is None or games < FEWEST_GAMES:
            return
        part = teacher.expert_ratio_goal
        goal = teacher_score * part if teacher_score >= 0.0 else teacher_score / part
        fall = teacher.expert_ratio_floor - teacher.expert_ratio_start
        share = teacher.expert_ratio_start + fall * min(1.0, max(0.0, reached(score, goal)))
        self.lowest = min(self.lowest, share)
        best = score if self.best is None else self.best
        if self.raised:
            recovered = score >= best - teacher.expert_ratio_drop / 2.0 * abs(best)
            if recovered or step >= self.turn:
                self.raised = False
                self.turn = step + teacher.expert_ratio_rise_steps
                self.best = best if recovered else score
            return
        self.best = max(best, score)
        if score < best - teacher.expert_ratio_drop * abs(best) and step >= self.turn:
            self.raised = True
            self.rises += 1
            self.turn = step + teacher.expert_ratio_rise_steps

    def without_rise(self, by_frames: float) -> float:
        """Return the share apart from rises; ``by_frames`` is its upper bound."""
        if self.teacher.expert_ratio_schedule == "performance":
            return min(by_frames, self.lowest)
        return by_frames

    def __call__(self, by_frames: float) -> float:
        """Return the present share, at most ``expert_ratio_start``."""
        share = self.without_rise(by_frames)
        if self.raised:
            share += self.teacher.expert_ratio_rise
        return min(share, self.teacher.expert_ratio_start)

    def reason(self, by_frames: float) -> int:
        """Return ``BY_FRAMES``, ``BY_PERFORMANCE`` or ``RAISED``."""
        if self.raised:
            return RAISED
        return BY_PERFORMANCE if self.without_rise(by_frames) < by_frames else BY_FRAMES

    def state_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _STORED}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name in _STORED:
            setattr(self, name, state[name])


_STORED = ("lowest", "best", "raised", "turn", "rises")

"""The guard's five remedies, each bounded and undone step by step."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tempest_agent.config import GuardConfig

TIGHTER = 0.9
"""A new clamp must be below this share of the old one."""

Restore = Callable[[], int | None]
"""Restores the last good checkpoint and returns its step; None if there is none."""


class Remedies:
    """The remedies in force.

    Args:
        guard: their bounds.
        target_clip: the clamp of the settings.
        has_teacher: whether a teacher could drive more.

    Attributes:
        learning_rate: factor on the learning rate.
        accumulation: factor on the rows (and micro-batches) of an update; the number of updates is
            divided by it.
        target_clip: magnitude to which targets are clamped; 0 is no clamp.
        expert_ratio: least share of the segments that the teacher gets.
        rollbacks: how often the run was rolled back.
        restore: restores a checkpoint; None if there are none.
    """

    def __init__(self, guard: GuardConfig, target_clip: float, has_teacher: bool) -> None:
        self.guard, self._has_teacher = guard, has_teacher
        self.learning_rate = 1.0
        self.accumulation = 1
        self.target_clip = target_clip
        self.expert_ratio = 0.0
        self.rollbacks = 0
        self.restore: Restore | None = None
        self._earned = 0
        self._before: list[tuple[str, float]] = []

    @property
    def active(self) -> list[str]:
        """Names of the remedies that can be undone, oldest first."""
        return [name for name, _ in self._before]

    def apply(self, name: str, value_scale: float) -> str | None:
        """Apply one step of a remedy.

        Args:
            name: which.
            value_scale: value of receiving the best mean reward for ever; 0 if unknown.

        Returns:
            What was done, in words; None if the remedy is at its bound.
        """
        steps: dict[str, Callable[[], str | None]] = {
            "clamp": lambda: self._clamp(value_scale),
            "learning_rate": self._lower_learning_rate,
            "accumulation": self._accumulate,
            "expert_ratio": self._raise_expert_ratio,
            "rollback": self._roll_back,
        }
        return steps[name]()

    def undo(self, name: str | None = None) -> str | None:
        """Undo the last step of remedy ``name`` (or of any); return what was done, if anything."""
        for i in reversed(range(len(self._before))):
            remedy, value = self._before[i]
            if name in (None, remedy):
                del self._before[i]
                setattr(self, _ATTRIBUTES[remedy], type(getattr(self, _ATTRIBUTES[remedy]))(value))
                return f"{remedy} back to {value:.4g}"
        return None

    def updates(self, due: int) -> int:
        """Return how many updates to make now if ``due`` were earned: larger ones are rarer."""
        self._earned += due
        made, self._earned = divmod(self._earned, self.accumulation)
        return made

    def _set(self, remedy: str, value: float) -> None:
        name = _ATTRIBUTES[remedy]
        self._before.append((remedy, float(getattr(self, name))))
        setattr(self, name, value)

    def _clamp(self, value_scale: float) -> str | None:
        limit = self.guard.clamp_factor * value_scale
        if not 0 < limit < TIGHTER * (self.target_clip or math.inf):
            return None
        self._set("clamp", limit)
        return f"targets are clamped to {limit:.4g}"

    def _lower_learning_rate(self) -> str | None:
        factor = self.learning_rate / 2
        if factor < self.guard.min_learning_rate:
            return None
        self._set("learning_rate", factor)
        return f"learning rate times {factor:.4g}"

    def _accumulate(self) -> str | None:
        factor = self.accumulation * 2
        if factor > self.guard.max_accumulation:
            return None
        self._set("accumulation", factor)
        return f"updates of {factor} times as many rows, {factor} times fewer"

    def _raise_expert_ratio(self) -> str | None:
        share = self.guard.expert_ratio
        if not self._has_teacher or self.expert_ratio >= share:
            return None
        self._set("expert_ratio", share)
        return f"the teacher drives at least {share:.0%} for a while"

    def _roll_back(self) -> str | None:
        if self.restore is None or self.rollbacks >= self.guard.max_rollbacks:
            return None
        step = self.restore()
        if step is None:
            return None
        self.rollbacks += 1
        # The same steps from the same weights would diverge again.
        slower = self._lower_learning_rate()
        return f"rolled back to the networks of step {step:,}" + (f", {slower}" if slower else "")

    def state_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _STORED} | {
            "before": [list(entry) for entry in self._before]
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name in _STORED:
            setattr(self, name, type(getattr(self, name))(state[name]))
        self._before = [(str(name), float(value)) for name, value in state["before"]]


_ATTRIBUTES = {
    "clamp": "target_clip",
    "learning_rate": "learning_rate",
    "accumulation": "accumulation",
    "expert_ratio": "expert_ratio",
}
_STORED = (*_ATTRIBUTES.values(), "rollbacks", "_earned")

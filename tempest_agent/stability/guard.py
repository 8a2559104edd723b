"""The stability guard: watches a run's metrics and answers symptoms with graded remedies.

A symptom that lasts for ``guard.patience`` log rows is answered by the next remedy of its list;
then nothing else is done for as many rows.  After ``guard.recovery`` rows without symptoms the last
step is undone, and so on; this period doubles whenever an undone remedy is needed again.  A run
without symptoms is bit for bit the same as one without a guard.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tempest_agent.config import Config

from .metric_history import MetricHistory, RunFacts
from .remedies import Remedies
from .symptoms import SYMPTOMS, Symptom, detect

SYMPTOM, OVER, REMEDY, UNDONE, EXHAUSTED = "symptom", "over", "remedy", "undone", "exhausted"
AT_ONCE = ("not_finite",)
"""Symptoms that are answered immediately."""
MAX_BACKOFF = 8
SPEED = "_per_second"


class Event(NamedTuple):
    """A symptom that the guard saw, or a remedy that it applied."""

    step: int
    kind: str
    """``symptom``, ``over``, ``remedy``, ``undone`` or ``exhausted``."""
    symptom: str
    remedy: str
    detail: str

    def __str__(self) -> str:
        words = {
            SYMPTOM: f"{self.symptom}: {self.detail}",
            OVER: f"{self.symptom} is over",
            REMEDY: f"against {self.symptom}: {self.detail}",
            UNDONE: f"no more symptoms: {self.detail}",
            EXHAUSTED: f"no remedy left against {self.symptom}: {self.detail}",
        }
        return f"guard at {self.step:,}: {words[self.kind]}"


class Guard:
    """Watches one run.

    Args:
        config: all settings of the run.
        has_teacher: whether there is a teacher that could drive more.

    Attributes:
        remedies: those in force; read by the training loop at every update.
        good_step: step of the last good checkpoint; None if there is none.
    """

    def __init__(self, config: Config, has_teacher: bool) -> None:
        self.guard = config.guard
        self.facts = RunFacts.of(config, has_teacher)
        self.history = MetricHistory(self.guard.window, self.facts.free_share)
        self.remedies = Remedies(self.guard, config.learner.target_clip, has_teacher)
        self.good_step: int | None = None
        self._present: dict[str, int] = {}
        self._position: dict[str, int] = {}
        self._wait = self._clean = self._expert_lines = 0
        self._backoff = 1
        self._undone: list[str] = []
        self._exhausted: list[str] = []

    @property
    def enabled(self) -> bool:
        """Whether it applies remedies; otherwise it only reports."""
        return self.guard.enabled

    @property
    def is_well(self) -> bool:
        """Whether there are updates and the last log row shows no symptom that has remedies."""
        learned = self.history.last("updates", 0.0) > 0
        return learned and not any(SYMPTOMS[name].remedies for name in self._present)

    def observe(self, figures: Mapping[str, float]) -> list[Event]:
        """Examine a log row, act, and return what was seen and done."""
        self.history.add({k: float(v) for k, v in figures.items() if not k.endswith(SPEED)})
        step = int(figures["steps"])
        symptoms = detect(self.history, self.facts, self.guard)
        events = self._compare(step, symptoms)
        if not self.enabled:
            return events
        self._wait = max(self._wait - 1, 0)
        events += self._end_expert_share(step)
        if self.is_well or not symptoms:
            events += self._undo_one(step)
        else:
            self._clean = 0
            events += self._treat(step, symptoms)
        return events

    def figures(self) -> dict[str, float]:
        """Return the remedies in force, for the log row; empty if the guard is off."""
        if not self.enabled:
            return {}
        remedies = self.remedies
        return {
            "guard_symptoms": float(len(self._present)),
            "guard_learning_rate": remedies.learning_rate,
            "guard_accumulation": float(remedies.accumulation),
            "guard_target_clip": remedies.target_clip,
            "guard_expert_ratio": remedies.expert_ratio,
            "guard_rollbacks": float(remedies.rollbacks),
        }

    def _compare(self, step: int, symptoms: list[Symptom]) -> list[Event]:
        """Count how many rows each symptom has lasted; return new ones and those that are over."""
        names = {symptom.name for symptom in symptoms}
        events = [
            Event(step, SYMPTOM, symptom.name, "", f"{symptom.evidence}; {symptom.spec.advice}")
            for symptom in symptoms
            if symptom.name not in self._present
        ]
        events += [Event(step, OVER, name, "", "") for name in self._present if name not in names]
        self._present = {
            symptom.name: self._present.get(symptom.name, 0) + 1 for symptom in symptoms
        }
        self._exhausted = [name for name in self._exhausted if name in names]
        return events

    def _treat(self, step: int, symptoms: list[Symptom]) -> list[Event]:
        """Apply one remedy against the most severe symptom that has lasted."""
        for symptom in symptoms:
            name = symptom.name
            lasted = self._present[name]
            waited = lasted >= self.guard.patience and self._wait == 0
            if not symptom.spec.remedies or not (waited or (name in AT_ONCE and lasted == 1)):
                continue
            done = self._next_remedy(name)
            if done is not None:
                self._wait = self.guard.patience
                return [Event(step, REMEDY, name, *done)]
            if name not in self._exhausted:
                self._exhausted.append(name)
                return [Event(step, EXHAUSTED, name, "", symptom.spec.advice)]
        return []

    def _next_remedy(self, symptom: str) -> tuple[str, str] | None:
        ladder = SYMPTOMS[symptom].remedies
        first = self._position.get(symptom, 0)
        for i in range(len(ladder)):
            place = (first + i) % len(ladder)
            detail = self.remedies.apply(ladder[place], self.history.value_scale(self.facts.gamma))
            if detail is not None:
                remedy = ladder[place]
                self._position[symptom] = place + 1
                if remedy in self._undone:
                    self._undone.remove(remedy)
                    self._backoff = min(2 * self._backoff, MAX_BACKOFF)
                if remedy == "expert_ratio":
                    self._expert_lines = self.guard.expert_lines
                return remedy, detail
        return None

    def _end_expert_share(self, step: int) -> list[Event]:
        """End the teacher's larger share after ``guard.expert_lines`` rows, symptoms or not."""
        if self._expert_lines == 0:
            return []
        self._expert_lines -= 1
        if self._expert_lines > 0:
            return []
        detail = self.remedies.undo("expert_ratio")
        return [] if detail is None else [Event(step, UNDONE, "", "expert_ratio", detail)]

    def _undo_one(self, step: int) -> list[Event]:
        self._clean += 1
        if self._clean < self.guard.recovery * self._backoff or not self.remedies.active:
            return []
        self._clean = 0
        remedy = self.remedies.active[-1]
        detail = self.remedies.undo()
        assert detail is not None
        self._undone.append(remedy)
        return [Event(step, UNDONE, "", remedy, detail)]

    def state_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _STORED} | {
            "series": self.history.state_dict(),
            "remedies": self.remedies.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name in _STORED:
            setattr(self, name, state[name])
        self.history.load_state_dict(state["series"])
        self.remedies.load_state_dict(state["remedies"])


_STORED = (
    "good_step", "_present", "_position", "_wait", "_clean", "_expert_lines", "_backoff",
    "_undone", "_exhausted",
)  # fmt: skip

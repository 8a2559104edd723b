"""The symptoms of training problems: detector, cause, advice and remedies of each.

Used by the guard during a run and by ``tempest-agent diagnose`` on any run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from tempest_agent.config import GuardConfig

from .detectors import (
    beyond_bound,
    clamped_targets,
    clipped_gradients,
    coarse_bins,
    dead_spinner,
    degrading_play,
    growing_values,
    no_gradient,
    not_finite,
    other_rewards,
    overestimation,
    stalled_target,
    swinging_gradients,
    unreached_rewards,
)
from .metric_history import MetricHistory, RunFacts

Detector = Callable[[MetricHistory, RunFacts, GuardConfig], str | None]


class SymptomSpec(NamedTuple):
    """The detector, cause, advice and remedies of a symptom."""

    detector: Detector
    cause: str
    advice: str
    remedies: tuple[str, ...]
    """What the guard does, mildest first; empty if only a person can judge."""


_VALUES = ("clamp", "learning_rate", "accumulation", "rollback")

SYMPTOMS: dict[str, SymptomSpec] = {
    "not_finite": SymptomSpec(
        not_finite,
        "an overflow: too large a step, or too little precision",
        "go back to an earlier checkpoint with a lower learner.learning_rate, or set "
        "learner.precision=float32",
        ("rollback", "learning_rate"),
    ),
    "beyond_bound": SymptomSpec(
        beyond_bound,
        "values diverge: targets bootstrap on values that were learned from them",
        "lower learner.learning_rate or learner.gamma, or a smaller learner.target_clip",
        _VALUES,
    ),
    "overestimation": SymptomSpec(
        overestimation,
        "the maximum over noisy values feeds itself, faster the closer the target follows",
        "lower learner.learning_rate, learner.tau or learner.gamma; keep learner.double_q",
        _VALUES,
    ),
    "growing_values": SymptomSpec(
        growing_values,
        "values begin to diverge",
        "lower learner.learning_rate or learner.tau, or a smaller learner.target_clip",
        _VALUES,
    ),
    "degrading_play": SymptomSpec(
        degrading_play,
        "the network fits its own targets on states that the agent no longer leaves",
        "lower learner.learning_rate, raise learner.gradient_accumulation_steps, or keep "
        "teacher.expert_ratio_floor and learner.imitation_weight up",
        ("learning_rate", "expert_ratio", "accumulation", "rollback"),
    ),
    "unreached_rewards": SymptomSpec(
        unreached_rewards,
        "the rewards are too large for the step size: each update moves a value by an amount of "
        "its own, whatever the rewards",
        "set learner.reward_unit to the size of the rewards, or to 0, which measures it",
        (),
    ),
    "swinging_gradients": SymptomSpec(
        swinging_gradients,
        "too large steps, or single rows with very large errors",
        "lower learner.learning_rate, or learner.loss=huber",
        ("learning_rate", "accumulation"),
    ),
    "clipped_gradients": SymptomSpec(
        clipped_gradients,
        "suddenly far larger errors, as from diverging values or other rewards",
        "see the other symptoms; lower learner.learning_rate, or learner.loss=huber",
        (),
    ),
    "dead_spinner": SymptomSpec(
        dead_spinner,
        "a frozen policy: its actions produce nothing new to learn from",
        "raise exploration.epsilon_max, learner.imitation_weight or learner.spinner_weight",
        ("expert_ratio",),
    ),
    "other_rewards": SymptomSpec(
        other_rewards,
        "the environment, or a wrapper around it, gives rewards on another scale than before",
        "look for what changed; values and gradients of the old scale mean nothing on the new one, "
        "so start a new run, or normalise the rewards",
        (),
    ),
    "stalled_target": SymptomSpec(
        stalled_target,
        "the target network is updated too rarely, or no updates are made",
        "lower learner.target_update_interval or raise learner.tau; see skipped_updates",
        (),
    ),
    "coarse_bins": SymptomSpec(
        coarse_bins,
        "the support of the distribution was chosen for far larger returns",
        "lower learner.target_clip to what no return exceeds, or raise learner.value_bins",
        (),
    ),
    "clamped_targets": SymptomSpec(
        clamped_targets,
        "the clamp is below the returns of the game",
        "raise learner.target_clip or lower game.reward_scale",
        (),
    ),
    "no_gradient": SymptomSpec(
        no_gradient,
        "nothing to learn from, or a dead network",
        "check learner.loss and the rewards",
        (),
    ),
}
"""All symptoms by name, most severe first."""


class Symptom(NamedTuple):
    """A symptom that the last log rows show."""

    name: str
    evidence: str

    @property
    def spec(self) -> SymptomSpec:
        """Cause and advice."""
        return SYMPTOMS[self.name]


def detect(history: MetricHistory, facts: RunFacts, guard: GuardConfig) -> list[Symptom]:
    """Return the symptoms that ``history`` shows now, most severe first."""
    found: Iterable[tuple[str, str | None]] = (
        (name, spec.detector(history, facts, guard)) for name, spec in SYMPTOMS.items()
    )
    return [Symptom(name, evidence) for name, evidence in found if evidence is not None]

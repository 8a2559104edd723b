"""Detectors of what goes wrong in training.

Each is a pure function of the last lines of metrics, of what the run is like, and of the limits in
the settings ``guard``.  It returns the evidence in figures, or None.  What the teacher's labels can
do to a value (``Facts.label_pull``) is allowed on top of every limit of values.
"""

from __future__ import annotations

import math
from statistics import median

from tempest_agent.config import GuardConfig

from .series import LEAST_DECISIONS, Facts, Series

LEAST_EXCESS = 5.0
"""The highest Q-value may grow as it likes up to this many times the value scale."""
SKIPPED_SHARE = 0.5
"""More updates left out than this are no rescaling of float16 any more."""
FEW_DECISIONS = 200
"""Decisions of the agent in a line before its habits say anything."""
SPREAD = 0.02
"""A continuous head whose turns differ less than this over the states is dead."""


def not_finite(series: Series, facts: Facts, guard: GuardConfig) -> str | None:
    """NaN or infinity among the figures, or most updates left out for want of a finite gradient."""
    bad = [name for name, value in series.lines[-1].items() if not math.isfinite(value)]
    if bad:
        return ", ".join(f"{name}={series.last(name)}" for name in bad[:4])
    if len(series.lines) < 2:
        return None
    before = series.lines[-2]
    skipped = series.last("skipped_updates", 0.0) - before.get("skipped_updates", 0.0)
    made = series.last("updates", 0.0) - before.get("updates", 0.0)
    if min(skipped, made) >= 0 and skipped > SKIPPED_SHARE * (skipped + made):
        return f"{skipped:.0f} of {skipped + made:.0f} updates had no finite gradient"
    return None


def beyond_bound(series: Series, facts: Facts, guard: GuardConfig) -> str | None:
    """Values that no return can have."""
    bound = series.last("return_bound")
    # Labels pull at values alone: a target beyond the bound is no work of theirs.
    for name, pull in (("q_max", facts.label_pull), ("q_min", facts.label_pull), ("target_max", 0)):
        value = series.last(name)
        if bound > 0 and abs(value) - pull > guard.bound_factor * bound:
            return f"{name}={value:.3g} is beyond {bound:.3g}, which no return can exceed"
    return None


def overestimation(series: Series, facts: Facts, guard: GuardConfig) -> str | None:
    """Mean values far above what the rewards are worth that anybody has had."""
    scale, mean = series.value_scale(facts.gamma), series.last("q_mean")
    if scale > 0 and abs(mean) - facts.label_pull > guard.overestimation * scale:
        return (
            f"q_mean={mean:.3g} is {abs(mean) / scale:.1f} times {scale:.3g}, what the best mean "
            "reward so far is worth for ever"
        )
    return None


def growing_values(series: Series, facts: Facts, guard: GuardConfig) -> str | None:
    """The highest value runs away from the rewards."""
    scale = series.value_scale(facts.gamma)
    values = [max(pair) for pair in _paired(series, "q_max", "q_min")]
    if len(values) < max(4, series.window // 2) or scale <= 0:
        return None
    before = median(values[: len(values) // 2])
    excess = values[-1] - facts.label_pull > LEAST_EXCESS * scale
    if excess and values[-1] > guard.growth_factor * before:
        return (
            f"the largest |Q| went from {before:.3g} to {values[-1]:.3g}, "
            f"{values[-1] / scale:.1f} times what the best mean reward is worth"
        )
    return None


def degrading_play(series: Series, facts: Facts, guard: GuardConfig) -> str | None:
    """The agent plays worse and worse; the evidence says what the loss does meanwhile."""
    loss = series.thirds("loss")
    if loss is None:
        return None
    turned = "fell" if loss[1] < loss[0] else "rose"
    while_loss = f"while the loss {turned} from {loss[0]:.3g} to {loss[1]:.3g}"
    score, best = series.thirds("teacher_free_score"), series.best_score
    if score is not None and score[1] < score[0] and series.enough_games():
        lost = 1.0 - score[1] / best if best > 0 else 0.0
        if lost > guard.score_drop:
            return f"the teacher-free score fell from {best:,.0f} to {score[1]:,.0f} {while_loss}"
    reward, best = series.thirds("reward_agent"), series.best_agent_reward
    enough = series.own_decisions(series.third) >= LEAST_DECISIONS
    if enough and reward is not None and reward[1] < (1.0 - guard.reward_drop) * best:
        return (
            f"the agent's reward per decision fell from {best:.3g} to {reward[1]:.3g} {while_loss}"
        )
    return None


def swinging_gradients(series: Series, facts: Facts, guard: GuardConfig) -> str | None:
    """Gradient norms that change by orders of magnitude."""
    mean, highest = series.last("grad_norm"), series.last("grad_norm_max")
    if mean > 0 and highest > guard.gradient_swing * mean:
        return f"grad_norm_max={highest:.3g} is {highest / mean:.0f} times the mean {mean:.3g}"
    values = [value for value in series.values("grad_norm") if value > 0]
    if values and max(values) > guard.gradient_swing * min(values):
        return f"grad_norm went between {min(values):.3g} and {max(values):.3g} in a few lines"
    return None


def clipped_gradients(series: Series, facts: Facts, guard: GuardConfig) -> str | None:
    """The clipping decides on the length of every step."""
    norm = series.last("grad_norm")
    ratio = series.last("clip_ratio", facts.max_grad_norm / norm if norm > 0 else math.nan)
    if ratio < guard.clip_ratio:
        return f"clipping leaves {ratio:.1%} of the gradient (mean norm {norm:.3g})"
    return None


def clamped_targets(series: Series, facts: Facts, guard: GuardConfig) -> str | None:
    """The clamp has become a part of the problem that is solved."""
    share = series.last("target_clip_share")
    return f"{share:.2%} of the targets were clamped" if share > guard.clip_share else None


def dead_spinner(series: Series, facts: Facts, guard: GuardConfig) -> str | None:
    """The spinner rests, or its continuous head says the same everywhere."""
    if not series.last("updates", 0.0) > 0 or series.own_decisions(1) < FEW_DECISIONS:
        return None
    moves, spread = series.last("moves"), series.last("spinner_spread")
    if moves < guard.still_share:
        return f"the agent turns the spinner in {moves:.1%} of its decisions"
    if spread < SPREAD:
        return f"the continuous head turns alike in all states (spread {spread:.2g})"
    return None


def no_gradient(series: Series, facts: Facts, guard: GuardConfig) -> str | None:
    """Nothing is learned."""
    return "the gradient is 0" if series.last("grad_norm") == 0.0 else None


def stalled_target(series: Series, facts: Facts, guard: GuardConfig) -> str | None:
    """The target network stands still, or no updates are made at all."""
    age = series.last("target_age_max", series.last("target_age"))
    if age > guard.target_age * facts.target_age:
        return f"the target network is {age:,.0f} updates old, usual are {facts.target_age:,.0f}"
    updates = series.values("updates")
    if len(updates) == series.window and updates[0] > 0 and updates[0] == updates[-1]:
        return f"no update in {series.window} lines (still {updates[-1]:,.0f})"
    return None


def _paired(series: Series, first: str, second: str) -> list[tuple[float, float]]:
    """Magnitudes of two figures where a line has both, finite."""
    pairs = (
        (abs(line[first]), abs(line[second]))
        for line in series.lines
        if first in line and second in line
    )
    return [pair for pair in pairs if all(map(math.isfinite, pair))]

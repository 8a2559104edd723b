"""Detectors of training problems.

Each is a pure function of the last log rows, the facts of the run and the limits in the settings
``guard``, and returns the evidence in words, or None.  Every limit on values is widened by what the
teacher's labels can do to them (``RunFacts.label_pull``).  No detector depends on the sign of
rewards, and none on their size alone.
"""

from __future__ import annotations

import math
from statistics import median

from tempest_agent.config import GuardConfig

from .metric_history import (
    LEAST_DECISIONS,
    UNKNOWN,
    MetricHistory,
    RunFacts,
    mean,
    reward_size,
    scatter,
)

LEAST_EXCESS = 5.0
"""The highest Q-value may grow freely up to this many times the value scale."""
SKIPPED_SHARE = 0.5
"""A larger share of skipped updates is more than the rescaling of float16 explains."""
FEW_DECISIONS = 200
"""Least steps of the agent in a log row for a judgement of its play."""
LEAST_UPDATES = 500
"""Least updates for a judgement of what the network has learned."""
SPREAD = 0.02
"""A continuous head whose turns vary less than this over the states is dead."""
RESOLUTION = 1.0
"""Values below this, in the learner's unit of reward, are sound for any rewards: AdamW's steps have
a size of their own, and initial values are not 0."""
SCORE_SPREADS, REWARD_SPREADS = 1.0, 3.0
"""Standard deviations, of single games and of single log rows, within which a fall is chance."""
OTHER_SCALE = 100.0
"""Growth of all rewards at once that play does not explain."""
UNREACHED = 0.5
"""Values that are all below this share of the best mean reward of one decision are far from it."""


def not_finite(history: MetricHistory, facts: RunFacts, guard: GuardConfig) -> str | None:
    """Detect NaN or infinity among the metrics, or mostly skipped updates (no finite gradient)."""
    bad = [name for name, value in history.lines[-1].items() if not math.isfinite(value)]
    if bad:
        return ", ".join(f"{name}={history.last(name)}" for name in bad[:4])
    if len(history.lines) < 2:
        return None
    before = history.lines[-2]
    skipped = history.last("skipped_updates", 0.0) - before.get("skipped_updates", 0.0)
    made = history.last("updates", 0.0) - before.get("updates", 0.0)
    if min(skipped, made) >= 0 and skipped > SKIPPED_SHARE * (skipped + made):
        return f"{skipped:.0f} of {skipped + made:.0f} updates had no finite gradient"
    return None


def beyond_bound(history: MetricHistory, facts: RunFacts, guard: GuardConfig) -> str | None:
    """Detect values that no return can have."""
    bound, pull = history.last("return_bound"), facts.label_pull
    limit = max(guard.bound_factor * bound, RESOLUTION * history.unit)
    # Labels move values, not targets.
    for name, units in (("q_max", pull), ("q_min", pull), ("target_max", 0)):
        value = history.last(name)
        if bound > 0 and abs(value) - units * history.unit > limit:
            return f"{name}={value:.3g} is beyond {bound:.3g}, which no return can exceed"
    return None


def overestimation(history: MetricHistory, facts: RunFacts, guard: GuardConfig) -> str | None:
    """Detect mean values far above what the largest rewards so far are worth."""
    scale, mean = history.value_scale(facts.gamma), history.last("q_mean")
    limit = max(guard.overestimation * scale, RESOLUTION * history.unit)
    if scale > 0 and abs(mean) - facts.label_pull * history.unit > limit:
        return (
            f"q_mean={mean:.3g} is {abs(mean) / scale:.1f} times {scale:.3g}, what the largest "
            "rewards so far are worth"
        )
    return None


def growing_values(history: MetricHistory, facts: RunFacts, guard: GuardConfig) -> str | None:
    """Detect values that grow away from the rewards."""
    scale = history.value_scale(facts.gamma)
    values = [max(pair) for pair in _paired(history, "q_max", "q_min")]
    if len(values) < max(4, history.window // 2) or scale <= 0:
        return None
    before = median(values[: len(values) // 2])
    limit = max(LEAST_EXCESS * scale, RESOLUTION * history.unit)
    excess = values[-1] - facts.label_pull * history.unit
    if excess > limit and values[-1] > guard.growth_factor * before:
        return (
            f"the largest |Q| went from {before:.3g} to {values[-1]:.3g}, "
            f"{values[-1] / scale:.1f} times what the largest rewards so far are worth"
        )
    return None


def degrading_play(history: MetricHistory, facts: RunFacts, guard: GuardConfig) -> str | None:
    """Detect play that gets worse; the evidence says what the loss does meanwhile."""
    return None if _far_from_rewards(history) else _fallen_play(history, guard)


def unreached_rewards(history: MetricHistory, facts: RunFacts, guard: GuardConfig) -> str | None:
    """Detect play that gets worse while all values are far smaller than a single reward."""
    far, fall = _far_from_rewards(history), _fallen_play(history, guard)
    return f"{fall}, and {far}" if far and fall else None


def _far_from_rewards(history: MetricHistory) -> str | None:
    """Return how far all values are from the best mean reward; None if they reach it."""
    pairs, reward = _paired(history, "q_max", "q_min")[-1:], history.best_reward
    if pairs and max(pairs[0]) < UNREACHED * reward:
        return f"the largest |Q| is {max(pairs[0]):.3g}, the best mean reward {reward:.3g}"
    return None


def _fallen_play(history: MetricHistory, guard: GuardConfig) -> str | None:
    loss = history.thirds("loss")
    if loss is None:
        return None
    turned = "fell" if loss[1] < loss[0] else "rose"
    while_loss = f"while the loss {turned} from {loss[0]:.3g} to {loss[1]:.3g}"
    score, level = history.thirds("teacher_free_score"), history.score
    if score is not None and score[1] < score[0] and history.enough_games():
        spread = history.last("teacher_free_score_spread")
        size = level.gained if math.isfinite(spread) else level.size
        if level.fall(score[1], spread, SCORE_SPREADS) > guard.score_drop * size:
            fell = f"from {level.best:{_digits(level.best)}} to {score[1]:{_digits(level.best)}}"
            return f"the teacher-free score fell {fell} {while_loss}"
    reward, level = history.thirds("reward_agent"), history.agent_reward
    if reward is not None and history.own_decisions(history.third) >= LEAST_DECISIONS:
        spread = scatter(history.values("reward_agent"))
        if level.fall(reward[1], spread, REWARD_SPREADS) > guard.reward_drop * level.size:
            fell = f"from {level.best:.3g} to {reward[1]:.3g}"
            return f"the agent's reward per decision fell {fell} {while_loss}"
    return None


def swinging_gradients(history: MetricHistory, facts: RunFacts, guard: GuardConfig) -> str | None:
    """Detect gradient norms that go up and down by orders of magnitude.

    Norms below the clip (rare or small rewards) are no large steps.  Norms that only rise or only
    fall belong to values that approach the returns.
    """
    floor = facts.max_grad_norm
    mean, highest = history.last("grad_norm"), history.last("grad_norm_max")
    if mean > 0 and highest > guard.gradient_swing * max(mean, floor):
        return f"grad_norm_max={highest:.3g} is {highest / mean:.0f} times the mean {mean:.3g}"
    norms = [max(value, floor) for value in history.values("grad_norm") if value > 0]
    for turn in range(1, len(norms) - 1):
        before, norm, after = norms[:turn], norms[turn], norms[turn + 1 :]
        peak = min(norm / min(before), norm / min(after))
        valley = min(max(before), max(after)) / norm
        if max(peak, valley) > guard.gradient_swing:
            return f"grad_norm went between {min(norms):.3g} and {max(norms):.3g} in a few lines"
    return None


def clipped_gradients(history: MetricHistory, facts: RunFacts, guard: GuardConfig) -> str | None:
    """Detect gradients that outgrow the clipping from one log row to the next.

    A constant clip ratio is harmless: AdamW's steps do not depend on the size of the gradient,
    which is the size of the values and so of the rewards.
    """
    *_, before, now = UNKNOWN, UNKNOWN, *history.values("clip_ratio")
    if now < guard.clip_ratio and now * guard.gradient_swing < before:
        norm = history.last("grad_norm")
        return f"clipping leaves {now:.2%} of the gradient (mean norm {norm:.3g}), not {before:.2%}"
    return None


def other_rewards(history: MetricHistory, facts: RunFacts, guard: GuardConfig) -> str | None:
    """Detect rewards, the largest as well as the mean, that are suddenly many times as large."""
    earlier = history.lines[: max(1, len(history.lines) // 3)]
    bounds = earlier[-1].get("return_bound", math.nan), history.last("return_bound")
    sizes = mean([reward_size(line) for line in earlier]), reward_size(history.lines[-1])
    if all(0 < OTHER_SCALE * before < now for before, now in (bounds, sizes)):
        return (
            f"the mean reward went from {sizes[0]:.3g} to {sizes[1]:.3g}, and the largest grew "
            f"{bounds[1] / bounds[0]:,.0f} times"
        )
    return None


def coarse_bins(history: MetricHistory, facts: RunFacts, guard: GuardConfig) -> str | None:
    """Detect bins that are wider than all returns."""
    bound = history.last("return_bound")
    if 0 < bound < facts.bin_width:
        return f"the bins are {facts.bin_width:.3g} wide, and no return exceeds {bound:.3g}"
    return None


def clamped_targets(history: MetricHistory, facts: RunFacts, guard: GuardConfig) -> str | None:
    """Detect a target clamp that clips more than a few targets."""
    share = history.last("target_clip_share")
    return f"{share:.2%} of the targets were clamped" if share > guard.clip_share else None


def dead_spinner(history: MetricHistory, facts: RunFacts, guard: GuardConfig) -> str | None:
    """Detect a spinner that rests, or a continuous head that proposes the same turn everywhere."""
    if history.last("updates", 0.0) < LEAST_UPDATES or history.own_decisions(1) < FEW_DECISIONS:
        return None
    moves, spread = history.last("moves"), history.last("spinner_spread")
    if moves < guard.still_share:
        return f"the agent turns the spinner in {moves:.1%} of its decisions"
    if math.isfinite(moves) and spread < SPREAD:
        return f"the continuous head turns alike in all states (spread {spread:.2g})"
    return None


def no_gradient(history: MetricHistory, facts: RunFacts, guard: GuardConfig) -> str | None:
    """Detect a gradient of 0."""
    return "the gradient is 0" if history.last("grad_norm") == 0.0 else None


def stalled_target(history: MetricHistory, facts: RunFacts, guard: GuardConfig) -> str | None:
    """Detect a target network that does not move, or updates that have stopped."""
    age = history.last("target_age_max", history.last("target_age"))
    if facts.target_age > max(facts.updates, age) and age >= LEAST_UPDATES:
        return (
            f"the target network is to be {facts.target_age:,.0f} updates old, and the whole run "
            f"makes about {facts.updates:,.0f}"
        )
    if age > guard.target_age * facts.target_age:
        return f"the target network is {age:,.0f} updates old, usual are {facts.target_age:,.0f}"
    updates = history.values("updates")
    if len(updates) == history.window and updates[0] > 0 and updates[0] == updates[-1]:
        return f"no update in {history.window} lines (still {updates[-1]:,.0f})"
    return None


def _digits(number: float) -> str:
    """Return the format of a score of that size."""
    return ",.0f" if abs(number) >= 100 else ".3g"


def _paired(history: MetricHistory, first: str, second: str) -> list[tuple[float, float]]:
    """Return the magnitudes of two metrics in the rows that have both, finite."""
    pairs = (
        (abs(line[first]), abs(line[second]))
        for line in history.lines
        if first in line and second in line
    )
    return [pair for pair in pairs if all(map(math.isfinite, pair))]

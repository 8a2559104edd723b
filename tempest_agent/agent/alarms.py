"""What a line of metrics says when training goes wrong while the loss looks well."""

from __future__ import annotations

from collections.abc import Mapping

CLIP_SHARE = 1e-3
"""More clamped targets than this and the clamp is part of the problem being solved."""
STILL_SHARE = 0.02
"""A player that turns in fewer decisions than this has stopped playing."""


def alarms(figures: Mapping[str, float]) -> list[str]:
    """One sentence for each symptom in ``figures`` (a line of metrics); empty if all is well."""
    found: list[str] = []
    bound = figures.get("return_bound", float("inf"))
    for name in ("q_max", "target_max"):
        value = figures.get(name)
        if value is not None and value > bound > 0:
            found.append(
                f"{name}={value:.3g} is above {bound:.3g}, which no return can exceed: values "
                "diverge; lower learner.learning_rate or learner.gamma"
            )
    share = figures.get("target_clip_share", 0.0)
    if share > CLIP_SHARE:
        found.append(
            f"{share:.2%} of the targets were clamped: raise learner.target_clip or lower "
            "game.reward_scale"
        )
    if figures.get("grad_norm") == 0.0:
        found.append("the gradient is 0: nothing is learned; check learner.loss and the rewards")
    moves = figures.get("moves")
    if moves is not None and moves < STILL_SHARE:
        found.append(
            f"the student turns the spinner in {moves:.1%} of its decisions: its policy is frozen; "
            "raise exploration.epsilon_max or learner.imitation_weight"
        )
    return found

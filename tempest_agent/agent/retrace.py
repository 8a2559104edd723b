"""Multi-step returns that other drivers' actions take part in only as far as they are likely.

Munos et al. 2016, "Safe and efficient off-policy reinforcement learning": later errors of a return
are multiplied by the trace weights ``c = lambda * min(1, pi(a|s) / mu(a|s))`` of the actions
between.  pi is a softmax of the student's values over button pairs and knots.  mu is known because
each decision's driver is: teacher and greedy student were certain of their action, a random action
had the probability that exploration draws it with.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tempest_agent.config import ExplorationConfig

from .replay import EXPLORATION


def trace_weights(chance: Tensor, driver: Tensor, random_chance: Tensor, decay: float) -> Tensor:
    """``c`` of each action, in [0, decay].

    Args:
        chance: pi of the action, any shape.
        driver: who made it (see ``replay``), same shape.
        random_chance: probability that exploration would have drawn it.
        decay: lambda.
    """
    behaviour = torch.where(driver == EXPLORATION, random_chance, 1.0)
    return decay * (chance / behaviour.clamp(min=1e-6)).clamp(max=1.0)


def policy_chance(
    values: Tensor, legal: Tensor, pair: Tensor, position: Tensor, temperature: float
) -> Tensor:
    """pi of an action ``(B,)``: its button pair and the knot nearest to its spinner position.

    Args:
        values: ``(B, 4, K)``.
        legal: bool ``(B, 4)``.
        pair: int64 ``(B,)``.
        position: ``(B,)`` in [-1, 1].
        temperature: value difference that makes an action e times less likely.
    """
    knots = values.shape[2]
    logits = (values / temperature).masked_fill(~legal.unsqueeze(2), -torch.inf).flatten(1)
    nearest = ((position + 1.0) * 0.5 * (knots - 1)).round().to(torch.int64)
    index = (pair * knots + nearest).unsqueeze(1)
    return torch.softmax(logits, dim=1).gather(1, index).squeeze(1)


def exploration_chance(
    pair: Tensor, zap_legal: Tensor, knots: int, settings: ExplorationConfig
) -> Tensor:
    """Probability that a random action is this button pair at this one of ``knots`` knots."""
    zap = settings.zap_share * zap_legal.to(torch.float32)
    fires = torch.where(pair % 2 == 1, settings.fire_share, 1.0 - settings.fire_share)
    return fires * torch.where(pair >= 2, zap, 1.0 - zap) / knots


def retrace(
    taken: Tensor,
    following: Tensor,
    rewards: Tensor,
    weights: Tensor,
    valid: Tensor,
    gamma: float,
) -> tuple[Tensor, Tensor]:
    """Targets ``(B,)`` and the effective number of decisions they rest on ``(B,)``.

    Args:
        taken: ``(B, n)`` values of the actions that were taken.
        following: ``(B, n)`` values of the student's choice in the states after them; 0 after a
            termination.
        rewards: ``(B, n)``.
        weights: ``(B, n)`` trace weights; the first column is not read.
        valid: ``(B, n)``, 1 for decisions that belong to the return, 0 behind its end.
        gamma: discount per decision.
    """
    ones = torch.ones_like(weights[:, :1])
    traces = torch.cat((ones, weights[:, 1:]), dim=1).cumprod(dim=1) * valid
    steps = torch.arange(taken.shape[1], device=taken.device, dtype=taken.dtype)
    errors = rewards + gamma * following - taken
    # torch.where, because behind the end of a return anything may stand, infinities included.
    corrections = torch.where(valid > 0, gamma**steps * traces * errors, 0.0)
    return taken[:, 0] + corrections.sum(dim=1), traces.sum(dim=1)

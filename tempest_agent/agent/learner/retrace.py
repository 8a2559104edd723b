"""Multi-step returns that other drivers' actions take part in only as far as they are likely.

Munos et al. 2016, "Safe and efficient off-policy reinforcement learning": later errors of a return
are multiplied by the trace weights ``c = lambda * min(1, pi(a|s) / mu(a|s))`` of the actions
between.  pi is a softmax of the student's values over button pairs and knots, and what follows a
decision is worth the mean over pi.  mu is known because each decision's driver is: teacher and
greedy student were certain of their action, and so is exploration of one that it goes on holding; a
new random action had the probability that it is drawn with.

What differs from the paper: its pi becomes greedy in the course of training, this one keeps its
temperature; an action between two knots counts as the nearer one; and a random action counts as
held where exploration turned the spinner as much in the decision before, which a new one rarely
does by chance (its weight is then too small, which is safe).
"""

from __future__ import annotations

import torch
from torch import Tensor

from tempest_agent.agent.networks.actions import to_unit
from tempest_agent.agent.replay.buffer import EXPLORATION
from tempest_agent.config import ExplorationConfig


def trace_weights(
    chance: Tensor, driver: Tensor, held: Tensor, random_chance: Tensor, decay: float
) -> Tensor:
    """``c`` of each action, in [0, decay].

    Args:
        chance: pi of the action, any shape.
        driver: who made it (see ``replay``), same shape.
        held: whether it is a random action that was begun before.
        random_chance: probability that exploration would have drawn it.
        decay: lambda.
    """
    behaviour = torch.where((driver == EXPLORATION) & ~held, random_chance, 1.0)
    return decay * (chance / behaviour.clamp(min=1e-6)).clamp(max=1.0)


def held_actions(driver: Tensor, spin: Tensor) -> Tensor:
    """Which decisions ``(B, n)`` of a path go on with the random action before them."""
    random = driver == EXPLORATION
    held = torch.zeros_like(random)
    held[:, 1:] = random[:, 1:] & random[:, :-1] & (spin[:, 1:] == spin[:, :-1])
    return held


def policy(values: Tensor, legal: Tensor, temperature: float) -> Tensor:
    """pi of every button pair and knot, ``(B, 4 K)``.

    Args:
        values: ``(B, 4, K)``.
        legal: bool ``(B, 4)``.
        temperature: value difference that makes an action e times less likely.
    """
    logits = (values / temperature).masked_fill(~legal.unsqueeze(2), -torch.inf).flatten(1)
    return torch.softmax(logits, dim=1)


def nearest_index(position: Tensor, knots: int) -> Tensor:
    """Number of the knot nearest to each position in [-1, 1], int64."""
    return ((position + 1.0) * 0.5 * (knots - 1)).round().to(torch.int64)


def knot_shares(counts: int, knots: int) -> Tensor:
    """Probability of each knot ``(K,)`` to be nearest to a turn drawn evenly from all counts."""
    turns = to_unit(torch.arange(-counts, counts + 1), counts)
    return torch.bincount(nearest_index(turns, knots), minlength=knots) / len(turns)


def pair_chance(pair: Tensor, zap_legal: Tensor, settings: ExplorationConfig) -> Tensor:
    """Probability that a random action of the arcade's presses this button pair."""
    zap = settings.zap_share * zap_legal.to(torch.float32)
    fires = torch.where(pair % 2 == 1, settings.fire_share, 1.0 - settings.fire_share)
    return fires * torch.where(pair >= 2, zap, 1.0 - zap)


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
        following: ``(B, n)`` mean values under pi of the states after them; 0 after a
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

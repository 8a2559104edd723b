"""Greedy actions and bootstrap targets over the same set of candidates.

The candidates are all spinner knots of the legal button pairs and the network's own proposals.  On
straight lines between knots no proposal can be worth more than the better knot beside it, so the
proposals decide only among equals (they come first); on parabolas they can be better than all
knots.  In either case a dead head costs nothing.  With one knot (``regression``) they are the only
spinner there is.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from tempest_agent.agent.networks import plain
from tempest_agent.agent.networks.actions import knots
from tempest_agent.agent.networks.interpolation import interpolate
from tempest_agent.agent.networks.q_network import Heads, QNetwork


class Choice(NamedTuple):
    """One action per row: button pair int64 ``(B,)``, spinner ``(B,)``, its value ``(B,)``."""

    pair: Tensor
    position: Tensor
    value: Tensor


def choose(network: QNetwork, heads: Heads, legal: Tensor) -> Choice:
    """The best legal candidate of each row.

    Args:
        network: whose proposals belong to ``heads``.
        heads: the network's answer, values ``(B, 4, K)``.
        legal: bool ``(B, 4)``, at least one True per row.
    """
    values = heads.values
    batch, pairs, count = values.shape
    proposals = network.proposals(heads.latent)
    if plain.applies_to(network, values):
        return Choice(*plain.best_action(heads, proposals, legal))
    if proposals is None:
        candidates = values
        positions = knots(count, values.device).expand(batch, pairs, count)
    elif count == 1:
        candidates, positions = values, proposals.unsqueeze(-1)
    else:
        proposed = network.values_at(heads, proposals)
        axis = knots(count, values.device).expand(batch, pairs, count)
        candidates = torch.cat((proposed.unsqueeze(-1), values), dim=-1)
        positions = torch.cat((proposals.unsqueeze(-1), axis), dim=-1)
    width = candidates.shape[-1]
    masked = candidates.masked_fill(~legal.unsqueeze(-1), -torch.inf).flatten(1)
    value, best = masked.max(dim=1)
    position = positions.reshape(batch, -1).gather(1, best.unsqueeze(1)).squeeze(1)
    return Choice(best // width, position, value)


def value_at(values: Tensor, pair: Tensor, position: Tensor) -> Tensor:
    """Value ``(B,)`` of a button pair int64 ``(B,)`` at a spinner position ``(B,)``."""
    rows = pair.view(-1, 1, 1).expand(-1, 1, values.shape[2])
    return interpolate(values.gather(1, rows).squeeze(1), position)


def double_q(choice: Choice, target_values: Tensor) -> Tensor:
    """What the target network thinks of the online network's choice, ``(B,)``.

    van Hasselt et al. 2016, "Deep reinforcement learning with double Q-learning".
    """
    return value_at(target_values, choice.pair, choice.position)


def n_step_target(returns: Tensor, discounts: Tensor, bootstrap: Tensor) -> Tensor:
    """``returns + discounts * bootstrap``; a discount of 0 marks a terminated row.

    ``discounts`` is gamma to the power of the row's own horizon.
    """
    return returns + torch.where(discounts > 0, discounts * bootstrap, 0.0)


def clamp_target(target: Tensor, limit: float) -> tuple[Tensor, Tensor, Tensor]:
    """Targets within ``[-limit, limit]`` (0 is no limit), and which were below and above it.

    All three are float32, like the targets.
    """
    limit = limit or math.inf
    return target.clamp(-limit, limit), (target < -limit).float(), (target > limit).float()


def return_bound(largest_reward: float, gamma: float) -> float:
    """No discounted return exceeds ``largest_reward / (1 - gamma)`` per step."""
    return abs(largest_reward) / (1.0 - gamma)

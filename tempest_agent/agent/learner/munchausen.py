"""Targets of Munchausen reinforcement learning (Vieillard et al. 2020).

The policy is a softmax of the target network's values over legal button pairs and knots; its
entropy is part of the bootstrap, and its clipped logarithm of the action that was taken part of
the reward.  The paper's targets reach over one decision.  Over n they are what its operator gives
when it is applied n times: every reward on the way has the logarithm of its own action, and every
state between has its entropy.  Like all returns of ``learner.trace=uncorrected`` they take others'
actions for the policy's own.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tempest_agent.agent.networks.q_network import Heads
from tempest_agent.agent.networks.value_distributions import Distribution
from tempest_agent.agent.networks.value_rescaling import restore
from tempest_agent.config import LearnerConfig


def log_policy(own: Tensor, values: Tensor, legal: Tensor, temperature: float) -> Tensor:
    """``temperature * log pi`` of actions worth ``own``, ``(B,)``.

    Args:
        own: ``(B,)`` values of the actions, which may lie between knots.
        values: ``(B, 4, K)`` of all knots.
        legal: bool ``(B, 4)``.
        temperature: of the softmax.
    """
    flat = values.masked_fill(~legal.unsqueeze(2), -torch.inf).flatten(1)
    return own - temperature * torch.logsumexp(flat / temperature, dim=1)


def soft_policy(values: Tensor, legal: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """The policy's chance of every pair and knot ``(B, 4 K)``, and its scaled entropy ``(B,)``."""
    flat = values.masked_fill(~legal.unsqueeze(2), -torch.inf).flatten(1)
    log_chance = torch.log_softmax(flat / temperature, dim=1)
    chance = log_chance.exp()
    entropy = -torch.where(chance > 0, chance * log_chance, 0.0).sum(dim=1)
    return chance, temperature * entropy


def soft_bootstrap(
    heads: Heads, legal: Tensor, distribution: Distribution, learner: LearnerConfig
) -> tuple[Tensor, Tensor]:
    """Mean numbers ``(B, D)`` under the softmax policy, and its scaled entropy ``(B,)``.

    Logits of bins are averaged as probabilities: the numbers are then the logits of the mixture.
    """
    values = restore(heads.values, learner.value_rescaling)
    chance, entropy = soft_policy(values, legal, learner.munchausen_temperature)
    detail = heads.values.unsqueeze(3) if heads.detail is None else heads.detail
    mixed = distribution.mix(detail.flatten(1, 2), chance)
    return mixed, entropy

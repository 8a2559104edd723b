"""Targets of Munchausen reinforcement learning (Vieillard et al. 2020).

The policy is a softmax of the target network's values over legal button pairs and knots; its
entropy is part of the bootstrap, and its clipped logarithm of the action that was taken part of
the reward.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tempest_agent.config import LearnerConfig

from .distributions import Distribution
from .networks import Heads
from .rescaling import restore


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


def soft_bootstrap(
    heads: Heads, legal: Tensor, distribution: Distribution, learner: LearnerConfig
) -> tuple[Tensor, Tensor]:
    """Mean numbers ``(B, D)`` under the softmax policy, and its scaled entropy ``(B,)``.

    Logits of bins are averaged as probabilities: the numbers are then the logits of the mixture.
    """
    temperature = learner.munchausen_temperature
    values = restore(heads.values, learner.value_rescaling)
    flat = values.masked_fill(~legal.unsqueeze(2), -torch.inf).flatten(1)
    log_chance = torch.log_softmax(flat / temperature, dim=1)
    chance = log_chance.exp()
    entropy = -torch.where(chance > 0, chance * log_chance, 0.0).sum(dim=1)
    detail = heads.values.unsqueeze(3) if heads.detail is None else heads.detail
    mixed = distribution.mix(detail.flatten(1, 2), chance)
    return mixed, temperature * entropy

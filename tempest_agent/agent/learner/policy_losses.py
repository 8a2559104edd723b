"""The losses that teach what to choose.

They act on the logits of the policy head.  Without one the values are what is chosen by, and they
are taught in its place.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from tempest_agent.agent.networks.actions import pair_mask
from tempest_agent.agent.networks.q_network import Heads, QNetwork
from tempest_agent.config import Config

from .imitation import cross_entropy, resemblance
from .metrics import Metrics


class Labels(NamedTuple):
    """The teacher's actions in B states, ``(B,)`` each; ``usable`` is 1 where there is one."""

    pair: Tensor
    position: Tensor
    usable: Tensor


class PolicyLosses:
    """The losses of what the network ``online`` (or a copy of it) chooses by."""

    def __init__(self, config: Config, online: QNetwork) -> None:
        self.learner = config.learner
        self.online = online
        self.num_pairs = online.layout.num_pairs

    def of_labels(
        self, heads: Heads, zap_legal: Tensor, labels: Labels, metrics: Metrics
    ) -> Tensor:
        """Return the cross entropies ``(B,)`` towards the teacher's actions; 0 without a label.

        Args:
            heads: the network's outputs.
            zap_legal: bool ``(B,)``.
            labels: of the same states.
            metrics: gets the loss, and with a policy head how certain and how near it is.
        """
        knots, width = self.online.num_knots, self.learner.imitation_width
        alike = resemblance(labels.pair, labels.position, knots, width, self.num_pairs)
        legal = pair_mask(zap_legal, self.num_pairs)
        usable, policy = labels.usable, heads.policy
        if policy is None:
            temperature = self.learner.imitation_temperature
            each = cross_entropy(heads.values, legal, alike, temperature)
        else:
            each = cross_entropy(policy, legal, alike, temperature=1.0)
            record_policy(policy.detach(), legal, alike, usable, metrics)
        each = torch.where(usable > 0, each, 0.0)
        metrics.mean("imitation_loss", each, usable.sum())
        return each


def record_policy(
    logits: Tensor, legal: Tensor, alike: Tensor, usable: Tensor, metrics: Metrics
) -> None:
    """Record how certain the policy is, and how near its choice is to the teacher's.

    Args:
        logits: ``(B, 4, K)``, without a gradient.
        legal: bool ``(B, 4)``.
        alike: resemblance of each action to the teacher's, ``(B, 4, K)``.
        usable: 1 where there is a label, ``(B,)``.
        metrics: gets both.
    """
    allowed = logits.masked_fill(~legal.unsqueeze(-1), -1e9).flatten(1)
    logs = torch.log_softmax(allowed, dim=1)
    metrics.mean("policy_entropy", -(logs.exp() * logs).sum(dim=1))
    chosen = alike.flatten(1).gather(1, allowed.argmax(dim=1, keepdim=True)).squeeze(1)
    metrics.mean("policy_agreement", chosen * usable, usable.sum())

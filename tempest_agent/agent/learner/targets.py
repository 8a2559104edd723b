"""Targets of a batch: n-step returns, bootstrapped on the states after them and clamped.

Values, and so targets, count in units of reward: the steps of AdamW have a size of their own, so
values of a million are not reached in any short run, and values of a millionth drown in the steps.
``learner.double_q``, ``learner.trace`` and ``learner.target_clip`` decide how; the form of a target
follows from ``learner.loss`` (see ``value_distributions``).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tempest_agent.agent.devices import Column, to_device
from tempest_agent.agent.inference.greedy import choose, features
from tempest_agent.agent.inference.inference_copy import InferenceCopy
from tempest_agent.agent.networks.actions import pair_mask
from tempest_agent.agent.networks.q_network import Heads, QNetwork
from tempest_agent.agent.replay.rows import Batch
from tempest_agent.agent.replicas import Replicas
from tempest_agent.config import Config

from .retrace import Retrace

UNUSUAL = 100.0
"""Rewards more than this many times larger or smaller than 1 are learned in a unit of their own."""


class Target(NamedTuple):
    """What B rows are to learn.

    ``points`` ``(B, P)`` lie within the clamp, their ``weights`` ``(B, P)`` add up to 1.  All
    others are ``(B,)``: ``raw`` is the mean before the clamp, ``below`` and ``above`` the share of
    the target that the clamp raised and lowered, ``effective_n`` the steps that it rests on.
    """

    points: Tensor
    weights: Tensor
    raw: Tensor
    below: Tensor
    above: Tensor
    effective_n: Tensor


def n_step_target(returns: Tensor, discounts: Tensor, bootstrap: Tensor) -> Tensor:
    """Return ``returns + discounts * bootstrap``; a discount of 0 marks a terminated row.

    ``discounts`` is gamma to the power of the row's own horizon.
    """
    # The network may say anything, infinities included, of what follows a termination.
    return returns + torch.where(discounts > 0, discounts * bootstrap, 0.0)


def clamp_target(target: Tensor, limit: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return targets within ``[-limit, limit]`` (0 is no limit), and which were below and above.

    All three are float32, like the targets.
    """
    limit = limit or math.inf
    return target.clamp(-limit, limit), (target < -limit).float(), (target > limit).float()


def measured_unit(rewards: NDArray[np.float32], replicas: Replicas) -> float:
    """Return the unit that suits ``rewards``, any shape, and those of all ``replicas``.

    It is the power of ten next to their mean size, without those of 0, or 1 where that is from
    0.01 to 100; and 0 where there are none.
    """
    sizes = np.abs(rewards[(rewards != 0) & np.isfinite(rewards)], dtype=np.float64)
    count, total = replicas.total(float(sizes.size)), replicas.total(float(sizes.sum()))
    if count == 0:
        return 0.0
    unit = 10.0 ** min(30, max(-30, round(math.log10(total / count))))
    return 1.0 if 1.0 / UNUSUAL <= unit <= UNUSUAL else unit


class TargetMaker:
    """Makes targets of the online ``network``, its fast copy and the target network's."""

    def __init__(
        self,
        network: QNetwork,
        online: InferenceCopy,
        target: InferenceCopy,
        config: Config,
        device: torch.device,
    ) -> None:
        self.network, self.online, self.target = network, online, target
        self.double_q = config.learner.double_q
        self.device = device
        self._retrace: Retrace | None = None
        if config.learner.trace == "retrace":
            self._retrace = Retrace(network, self.judge_and_chooser, config, device)

    @torch.no_grad()
    def __call__(self, batch: Batch, limit: float, unit: float = 1.0) -> Target:
        """Return the targets of ``batch`` in units of ``unit`` reward.

        ``limit``: the clamp in rewards; 0 is no limit.
        """

        def here(column: Column) -> Tensor:
            return to_device(column, self.device)

        layout = self.network.layout
        observation = features(batch.next_codes, layout, self.device)
        legal = pair_mask(here(batch.next_zap_legal), layout.num_pairs)
        if self._retrace is not None:
            value, effective_n = self._retrace(batch, observation, legal, unit)
            raw, weights = value.unsqueeze(1), torch.ones_like(value).unsqueeze(1)
        else:
            numbers = self._bootstrap(observation, legal)
            points, weights = self.network.distribution.points(numbers)
            returns, discounts = here(batch.returns) / unit, here(batch.discounts)
            raw = n_step_target(returns.unsqueeze(1), discounts.unsqueeze(1), points)
            effective_n = here(batch.horizons).float()
        clamped, below, above = clamp_target(raw, limit / unit)
        return Target(
            points=clamped,
            weights=weights,
            raw=(raw * weights).sum(dim=1),
            below=(below * weights).sum(dim=1),
            above=(above * weights).sum(dim=1),
            effective_n=effective_n,
        )

    def _bootstrap(self, observation: Tensor, legal: Tensor) -> Tensor:
        """Return the numbers ``(B, D)`` of the best action in each state.

        Double Q-learning (van Hasselt et al. 2016): the online network chooses the action, the
        target network says what it is worth.
        """
        judge, chooser = self.judge_and_chooser(observation)
        choice = choose(self.network, chooser, legal)
        return self.network.numbers_at(judge, choice.pair, choice.position)

    def judge_and_chooser(self, observation: Tensor) -> tuple[Heads, Heads]:
        """Return what judges actions in the given states, and what chooses among them."""
        judge = self.target(observation)
        return judge, self.online(observation) if self.double_q else judge

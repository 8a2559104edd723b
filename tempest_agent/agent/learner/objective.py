"""The loss of an update: values, imitation of the teacher, and the spinner head."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from tempest_agent.agent.devices import Column, to_device
from tempest_agent.agent.networks import plain_gradient
from tempest_agent.agent.networks.actions import to_unit
from tempest_agent.agent.networks.interpolation import nearest_knot
from tempest_agent.agent.networks.q_network import Heads, QNetwork
from tempest_agent.agent.replay.rows import Batch
from tempest_agent.config import Config
from tempest_agent.envs.machine.inputs import ZAP

from .metrics import Metrics
from .policy_losses import Labels, PlanLosses, PolicyLosses
from .targets import Target


class BatchRows(NamedTuple):
    """A batch, or a part of one, on the training device.

    ``target`` is the mean of the target; ``usable`` is 1 where the label can be followed.
    """

    observation: Tensor
    zap_legal: Tensor
    pair: Tensor
    position: Tensor
    target: Tensor
    points: Tensor
    point_weights: Tensor
    weight: Tensor
    driver: Tensor
    label_pair: Tensor
    label_position: Tensor
    labelled: Tensor
    usable: Tensor


class Loss(NamedTuple):
    """The loss ``()`` of a micro-batch; predictions and losses ``(B,)`` of the values."""

    loss: Tensor
    predicted: Tensor
    each: Tensor


def usable_labels(batch: Batch) -> Any:
    """Return which labels can be followed: a teacher may press a zap that would do nothing."""
    return batch.labelled & (batch.zap_legal | (batch.label_buttons < ZAP))


class Objective:
    """The loss of the network ``online`` (and of copies of it), computed on ``device``."""

    def __init__(self, config: Config, online: QNetwork, device: torch.device) -> None:
        self.learner = config.learner
        self.network = config.network
        self.layout = online.layout
        self.online = online
        self.device = device
        self.policy_losses = PolicyLosses(config, online)
        self.plan_losses: PlanLosses | None = None
        if config.teacher.labels == "plans":
            self.plan_losses = PlanLosses(config, online.layout, device)

    def imitates(self, imitation: Tensor | float) -> bool:
        """Return whether the loss has an imitation term; a tensor counts as a gate above 0."""
        is_on = isinstance(imitation, Tensor) or imitation > 0
        return is_on and self.learner.imitation != "none" and self.plan_losses is None

    def rows(self, batch: Batch, target: Target, observation: Tensor) -> BatchRows:
        """Return ``batch`` with its ``target`` and the network's input as the loss needs it."""

        def here(column: Column) -> Tensor:
            return to_device(column, self.device)

        position = to_unit(here(batch.spin), self.layout.counts)
        if self.network.spinner_head == "knots":
            position = nearest_knot(position, self.online.num_knots)
        return BatchRows(
            observation=observation,
            zap_legal=here(batch.zap_legal),
            pair=here(batch.buttons).to(torch.int64),
            position=position,
            target=(target.points * target.weights).sum(dim=1),
            points=target.points,
            point_weights=target.weights,
            weight=here(batch.weights),
            driver=here(batch.driver),
            label_pair=here(batch.label_buttons).to(torch.int64),
            label_position=to_unit(here(batch.label_spin), self.layout.counts),
            labelled=here(batch.labelled).to(torch.float32),
            usable=here(usable_labels(batch)).to(torch.float32),
        )

    def loss(
        self,
        network: QNetwork,
        rows: BatchRows,
        heads: Heads,
        fractions: Tensor | None,
        imitation: Tensor | float,
        labels: Tensor | float,
        metrics: Metrics,
    ) -> Loss:
        """Return the loss of a micro-batch.

        Args:
            network: the online network or its copy, with outputs ``heads`` for ``rows``.
            fractions: of the quantiles in ``heads`` (iqn only).
            imitation: gate of the imitation terms; a tensor counts as above 0.
            labels: usable labels of the whole update divided by the number of micro-batches, so
                that every label weighs the same.
            metrics: gets those of the imitation and of the spinner head.
        """
        distribution = self.online.distribution
        numbers = network.numbers_at(heads, rows.pair, rows.position)
        row_loss = distribution.loss(numbers, rows.points, rows.point_weights, fractions)
        loss = (row_loss * rows.weight).mean()
        predicted = distribution.mean(numbers)
        if self.imitates(imitation):
            given = Labels(rows.label_pair, rows.label_position, rows.usable)
            each = self.policy_losses.of_labels(heads, rows.zap_legal, given, metrics)
            loss = loss + self.learner.imitation_weight * imitation * (each.sum() / labels)
        elif heads.policy is not None:
            # A gradient of 0, so that its weights are stepped in every form of the update.
            loss = loss + 0.0 * heads.policy.sum()
        proposals = network.proposals(heads.latent)
        if proposals is not None:
            head = self._spinner_loss(rows, heads.detached(), proposals, imitation)
            loss = loss + self.learner.spinner_weight * head
            _record_spinner(head, proposals.detach(), metrics)
        return Loss(loss, predicted.detach(), row_loss.detach())

    def add_gradient(
        self, rows: BatchRows, share: float, metrics: Metrics
    ) -> tuple[Tensor, Tensor] | None:
        """Add the gradient of ``share`` of the loss without imitation, without autograd.

        Return predictions and losses as in ``Loss``; None if only ``loss`` can do it.
        """
        if not plain_gradient.applies_to(self.online, rows.observation):
            return None
        result = plain_gradient.add_gradient(
            self.online,
            rows.observation,
            (rows.pair, rows.position, rows.target, rows.weight),
            self.learner.loss == "squared",
            share,
            self.learner.spinner_weight,
        )
        if result.proposals is not None:
            _record_spinner(-result.climb.mean(), result.proposals, metrics)
        return result.predicted, result.each

    def _spinner_loss(
        self, rows: BatchRows, heads: Heads, proposals: Tensor, imitation: Tensor | float
    ) -> Tensor:
        """Return the loss of the continuous head: uphill on the values, and towards labels."""
        own = proposals.gather(1, rows.pair.unsqueeze(1)).squeeze(1)
        if self.network.spinner_head == "regression":
            return (own - rows.position).square().mean()
        # In units of the values' own spread, so that the weight means the same early and late.
        spread = plain_gradient.spread_of(heads.values).unsqueeze(1)
        climb = -(self.online.values_at(heads, proposals) / spread).mean()
        if not isinstance(imitation, Tensor) and imitation == 0.0:
            return climb
        label = proposals.gather(1, rows.label_pair.unsqueeze(1)).squeeze(1)
        follow = ((label - rows.label_position).square() * rows.labelled).mean()
        return climb + imitation * follow


def _record_spinner(loss: Tensor, proposals: Tensor, metrics: Metrics) -> None:
    metrics.mean("spinner_loss", loss)
    # A dead head proposes the same turn in every state.
    metrics.mean("spinner_spread", proposals.float().std(dim=0, correction=0).mean())

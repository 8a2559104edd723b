"""What the student minimises: the losses of values, of imitation and of the spinner head."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from tempest_agent.agent.devices import Column, to_device
from tempest_agent.agent.networks import plain
from tempest_agent.agent.networks.actions import ZAP_PAIRS, pair_mask, to_unit
from tempest_agent.agent.networks.interpolation import nearest_knot
from tempest_agent.agent.networks.q_network import Heads, Layout, QNetwork
from tempest_agent.agent.replay.rows import Batch
from tempest_agent.config import Config

from .imitation import cross_entropy, resemblance
from .metrics import Metrics
from .targets import Target


class BatchRows(NamedTuple):
    """A batch, or a part of one, on the training device."""

    observation: Tensor
    legal: Tensor
    pair: Tensor
    position: Tensor
    target: Tensor
    """Mean of the target."""
    points: Tensor
    point_weights: Tensor
    weight: Tensor
    driver: Tensor
    label_pair: Tensor
    label_position: Tensor
    labelled: Tensor
    usable: Tensor
    """1 where the label can be followed."""


class Loss(NamedTuple):
    """What the loss of a micro-batch is made of."""

    loss: Tensor
    """``()``, to be differentiated."""
    predicted: Tensor
    """``(B,)``."""
    each: Tensor
    """``(B,)``, loss of the values."""


def usable_labels(batch: Batch) -> Any:
    """Which labels can be followed: a teacher may press a zap that would do nothing."""
    return batch.labelled & (batch.zap_legal | (batch.label_buttons < ZAP_PAIRS[0]))


def _record_head(loss: Tensor, proposals: Tensor, metrics: Metrics) -> None:
    metrics.mean("spinner_loss", loss)
    # A dead head proposes the same turn in every state.
    metrics.mean("spinner_spread", proposals.float().std(dim=0, correction=0).mean())


class Objective:
    """The loss of a network.

    Args:
        layout: of the observation.
        config: the whole configuration.
        online: the network that learns; copies of it have its number of knots and its distribution.
        device: where losses are computed.
    """

    def __init__(
        self, layout: Layout, config: Config, online: QNetwork, device: torch.device
    ) -> None:
        self.layout = layout
        self.learner = config.learner
        self.network = config.network
        self.online = online
        self.device = device

    def imitates(self, imitation: Tensor | float) -> bool:
        """Whether the loss has an imitation term; a tensor counts as a gate above 0."""
        is_on = isinstance(imitation, Tensor) or imitation > 0
        return is_on and self.learner.imitation != "none"

    def rows(self, batch: Batch, target: Target, observation: Tensor) -> BatchRows:
        """``batch`` as the loss needs it.

        Args:
            batch: rows of the replay.
            target: of the same rows.
            observation: what the network takes, ``(B, ...)``.
        """

        def here(column: Column) -> Tensor:
            return to_device(column, self.device)

        position = to_unit(here(batch.spin), self.layout.counts)
        if self.network.spinner_head == "knots":
            position = nearest_knot(position, self.online.num_knots)
        return BatchRows(
            observation=observation,
            legal=pair_mask(here(batch.zap_legal), self.layout.num_pairs),
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
        """The loss of a micro-batch.

        Args:
            network: what answers, the online network or its copy.
            rows: what the micro-batch holds.
            heads: the answer to its observations.
            fractions: the quantiles that the answer gives (iqn only).
            imitation: gate of the imitation terms; a tensor counts as above 0.
            labels: usable labels that it would have if they lay evenly over the micro-batches; the
                sum over its own is divided by that, so that each label of the update counts the
                same.
            metrics: where the figures of the other terms go.
        """
        distribution = self.online.distribution
        numbers = network.numbers_at(heads, rows.pair, rows.position)
        row_loss = distribution.loss(numbers, rows.points, rows.point_weights, fractions)
        loss = (row_loss * rows.weight).mean()
        predicted = distribution.mean(numbers)
        if self.imitates(imitation):
            loss = loss + self.learner.imitation_weight * imitation * self._imitation(
                rows, heads, labels, metrics
            )
        proposals = network.proposals(heads.latent)
        if proposals is not None:
            head = self._spinner_loss(rows, heads.detached(), proposals, imitation)
            loss = loss + self.learner.spinner_weight * head
            _record_head(head, proposals.detach(), metrics)
        return Loss(loss, predicted.detach(), row_loss.detach())

    def add_gradient(
        self, rows: BatchRows, share: float, metrics: Metrics
    ) -> tuple[Tensor, Tensor] | None:
        """Add the gradient of ``share`` of the loss without a teacher to that of ``online``.

        Returns:
            Predictions and losses ``(B,)`` as in ``Loss``; None if it takes ``loss`` to find it.
        """
        if not plain.has_gradient(self.online, rows.observation):
            return None
        told = plain.add_gradient(
            self.online,
            rows.observation,
            (rows.pair, rows.position, rows.target, rows.weight),
            self.learner.loss == "squared",
            share,
            self.learner.spinner_weight,
        )
        if told.proposals is not None:
            _record_head(-told.climb.mean(), told.proposals, metrics)
        return told.predicted, told.each

    def _imitation(
        self, rows: BatchRows, heads: Heads, labels: Tensor | float, metrics: Metrics
    ) -> Tensor:
        learner = self.learner
        alike = resemblance(
            rows.label_pair,
            rows.label_position,
            self.online.num_knots,
            learner.imitation_width,
            self.layout.num_pairs,
        )
        usable = rows.usable
        each = cross_entropy(heads.values, rows.legal, alike, learner.imitation_temperature)
        each = torch.where(usable > 0, each, 0.0)
        metrics.mean("imitation_loss", each, usable.sum())
        return each.sum() / labels

    def _spinner_loss(
        self, rows: BatchRows, heads: Heads, proposals: Tensor, imitation: Tensor | float
    ) -> Tensor:
        own = proposals.gather(1, rows.pair.unsqueeze(1)).squeeze(1)
        if self.network.spinner_head == "regression":
            return (own - rows.position).square().mean()
        # Uphill on the value, in units of its own spread, so that the weight means the same
        # early and late.
        spread = plain.unit_of(heads.values).unsqueeze(1)
        climb = -(self.online.values_at(heads, proposals) / spread).mean()
        if not isinstance(imitation, Tensor) and imitation == 0.0:
            return climb
        label = proposals.gather(1, rows.label_pair.unsqueeze(1)).squeeze(1)
        follow = ((label - rows.label_position).square() * rows.labelled).mean()
        return climb + imitation * follow

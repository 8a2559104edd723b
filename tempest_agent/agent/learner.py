"""One update of the student from a batch of replayed decisions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tempest_agent.config import Config

from .accumulation import CLIP_EPSILON, Accumulator, micro_batches, resolve_precision
from .acting import greedy
from .actions import ZAP_PAIRS, pair_mask, to_unit
from .bootstrap import Bootstrap, Target
from .heap import keep_freed_memory
from .imitation import cross_entropy, margin, resemblance
from .inference import InferenceCopy, aligns
from .metrics import Metrics
from .networks import Heads, Layout, QNetwork
from .replay_rows import DRIVER_NAMES, Batch, Column, to_device
from .replicas import ALONE, Replicas
from .rescaling import restore
from .spinner import nearest_knot
from .target_network import Followers


class BatchRows(NamedTuple):
    """A batch, or a part of one, on the training device."""

    observation: Tensor
    legal: Tensor
    pair: Tensor
    position: Tensor
    target: Tensor
    """Mean of the target, in the units of the network."""
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
    """``(B,)``, in the units of the network."""
    each: Tensor
    """``(B,)``, loss of the values."""


def _usable_labels(batch: Batch) -> Any:
    """Which labels can be followed: a teacher may press a zap that would do nothing."""
    return batch.labelled & (batch.zap_legal | (batch.label_buttons < ZAP_PAIRS[0]))


def _spread(values: Tensor) -> Tensor:
    """Standard deviation of the values ``(B, P, K)`` of each state, ``(B,)``.

    ``Tensor.std`` takes ten times as long on a CPU.
    """
    each = values.flatten(1)
    norm: Tensor = torch.linalg.vector_norm(each - each.mean(dim=1, keepdim=True), dim=1)
    return norm / math.sqrt(each.shape[1] - 1)


class Learner:
    """The networks, their optimiser, and the update.

    Args:
        layout: of the observation.
        config: the whole configuration.
        device: where networks live and updates run.
        replicas: processes whose batches belong to the same update.
    """

    def __init__(
        self,
        layout: Layout,
        config: Config,
        device: torch.device,
        replicas: Replicas = ALONE,
    ) -> None:
        learner = config.learner
        self.replicas = replicas
        self.layout = layout
        self.config = config
        self.learner = learner
        self.network = config.network
        self.device = device
        if device.type == "cpu":
            keep_freed_memory()
        self.online = QNetwork(layout, config.network, learner).to(device)
        # What is compiled wraps the network beside it, so that saved weights keep their names.
        self._forward: Any = torch.compile(self.online) if learner.compile else self.online
        self.followers = Followers(
            self.online, learner.tau, learner.target_update_interval, learner.ema_decay
        )
        self.optimizer = torch.optim.AdamW(
            self.online.parameters(),
            lr=learner.learning_rate,
            weight_decay=learner.weight_decay,
            fused=True,
        )
        self.accumulator = Accumulator(
            self.optimizer,
            self.online.parts(),
            learner.max_grad_norm,
            resolve_precision(learner.precision, device),
            device,
            learner.max_skipped_updates,
            replicas=replicas,
        )
        self._make_copies()
        self.updates = 0
        self.target_clip = learner.target_clip
        self.metrics = Metrics()

    def _make_copies(self) -> None:
        """Copies of the networks in the arithmetic of the updates, for acting and for targets."""
        dtype, compiled = self.accumulator.dtype, self.learner.compile
        aligned = compiled and aligns(self.device)
        self.fast_online = InferenceCopy(self.online, dtype, compiled, aligned)
        self.fast_target = InferenceCopy(self.followers.target, dtype, compiled, aligned)
        self.bootstrap = Bootstrap(
            self.online, self.fast_online, self.fast_target, self.config, self.device
        )

    def act(
        self, codes: NDArray[np.int8], zap_legal: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int8], NDArray[np.uint8]]:
        """Greedy actions of the network as it is being trained."""
        return greedy(self.online, self.fast_online, codes, zap_legal, self.device)

    def update(
        self, batch: Batch, learning_rate: float, imitation: float, accumulation: int = 1
    ) -> Column:
        """One optimiser step.

        Args:
            batch: rows of the replay.
            learning_rate: step size of this update.
            imitation: gate of the imitation terms, 0 to 1.
            accumulation: factor on the number of micro-batches.

        Returns:
            Absolute errors ``(B,)`` for the priorities: an array, or a tensor on the device where
            ``batch`` is made of tensors.
        """
        self.settle()
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        errors = self.gradients(batch, imitation, accumulation)
        if self.accumulator.finish():
            self._advance()
        elif self.accumulator.fell_back:
            self._make_copies()
        if isinstance(batch.rows, Tensor):
            return errors
        host: NDArray[np.float32] = errors.cpu().numpy()
        return host

    def gradients(self, batch: Batch, imitation: float, accumulation: int = 1) -> Tensor:
        """Leave the gradient of ``batch`` in the network, without a step; absolute errors ``(B,)``.

        The first half of ``update``.
        """
        count = len(batch.rows)
        rows_of_all = count * self.replicas.size
        labels = self._labels(batch) if self._imitates(imitation) else 1.0
        number = self.learner.gradient_accumulation_steps * accumulation
        errors = torch.empty(count, device=self.device)
        self.accumulator.begin()
        for first, last in micro_batches(count, number):
            share = (last - first) / rows_of_all
            piece = batch.part(first, last)
            rows = self.rows(piece, self.metrics)
            loss, error = self._loss(rows, imitation, labels * share)
            self.accumulator.backward(loss, share)
            errors[first:last] = error
        return errors

    def _imitates(self, imitation: Tensor | float) -> bool:
        is_on = isinstance(imitation, Tensor) or imitation > 0
        return is_on and self.learner.imitation != "none"

    def _labels(self, batch: Batch) -> Tensor | float:
        """Usable labels of the whole update, at least 1."""
        usable = _usable_labels(batch)
        # Not read back from the device, which would make this wait for the update before it.
        if isinstance(usable, Tensor):
            return self.replicas.total(usable.sum()).clamp(min=1.0)
        return max(self.replicas.total(float(np.count_nonzero(usable))), 1.0)

    def settle(self) -> None:
        """Take back the last update if it turns out to have been skipped."""
        if not self.accumulator.settle():
            self.updates -= 1
            self.followers.take_back()
        if self.accumulator.fell_back:
            self._make_copies()

    def _advance(self) -> None:
        """What follows a step that was made, or may have been (``Accumulator.lagged``)."""
        accumulator = self.accumulator
        took = accumulator.took if accumulator.lagged else None
        self.fast_online.refresh()
        self.followers.move_average(self.followers.average_share(self.updates + 1), took)
        self.record_step(accumulator.grad_norm, accumulator.group_norms, took, self.metrics)
        self.advance_count(took)

    def record_step(
        self,
        norm: Tensor,
        group_norms: Mapping[str, Tensor],
        took: Tensor | None,
        metrics: Metrics,
    ) -> None:
        """Figures of a gradient; nothing counts where the step was not taken."""
        if took is not None:
            norm = torch.where(took > 0, norm, 0.0)
        metrics.mean("grad_norm", norm)
        metrics.highest("grad_norm_max", norm)
        for name, part in group_norms.items():
            metrics.mean(f"grad_norm_{name}", part if took is None else part.nan_to_num() * took)
        # What the clipping by norm has multiplied the gradient with.
        ratio = (self.learner.max_grad_norm / (norm + CLIP_EPSILON)).clamp(max=1.0)
        metrics.mean("clip_ratio", ratio)
        metrics.mean("clip_share", (ratio < 1.0).float())

    def advance_count(self, took: Tensor | None) -> None:
        """Count an update, and move the target network when it is due."""
        self.updates += 1
        if self.followers.move_target(self.updates, took):
            self.fast_target.refresh()
        age = torch.tensor(self.followers.target_age)
        self.metrics.mean("target_age", age)
        self.metrics.highest("target_age_max", age)

    def _targets(self, batch: Batch, metrics: Metrics) -> Target:
        target = self.bootstrap(batch, self.target_clip)
        count = target.raw.numel()
        metrics.mean("target_mean", target.raw.sum(), count)
        metrics.highest("target_max", target.raw.abs().max())
        below, above = target.below.sum(), target.above.sum()
        metrics.total("target_clip_hits", below + above)
        metrics.mean("target_clip_share", below + above, count)
        metrics.mean("target_clip_low_share", below, count)
        metrics.mean("target_clip_high_share", above, count)
        metrics.mean("effective_n", target.effective_n.sum(), count)
        return target

    def rows(
        self, batch: Batch, metrics: Metrics, inputs: Callable[[Tensor], Tensor] | None = None
    ) -> BatchRows:
        """``batch`` as the loss needs it, targets included, whose figures go to ``metrics``.

        ``inputs`` makes of the features what the network takes, if that is something else.
        """
        target = self._targets(batch, metrics)

        def here(column: Column) -> Tensor:
            return to_device(column, self.device)

        position = to_unit(here(batch.spin), self.layout.counts)
        if self.network.spinner_head == "knots":
            position = nearest_knot(position, self.online.num_knots)
        observation = self.bootstrap.observation(batch.codes)
        return BatchRows(
            observation=observation if inputs is None else inputs(observation),
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
            usable=here(_usable_labels(batch)).to(torch.float32),
        )

    def _loss(
        self, rows: BatchRows, imitation: float, labels: Tensor | float
    ) -> tuple[Tensor, Tensor]:
        """Mean loss and absolute errors ``(B,)`` of a micro-batch; see ``loss``."""
        fractions = self.online.distribution.draw_fractions(rows.target.shape[0], self.device)
        with self.accumulator.autocast():
            heads: Heads = self._forward(rows.observation, fractions)
        parts = self.loss(self.online, rows, heads, fractions, imitation, labels, self.metrics)
        self.record(rows, parts.predicted, parts.each, self.metrics)
        return parts.loss, (parts.predicted - rows.target).abs()

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
        if self._imitates(imitation):
            loss = loss + self.learner.imitation_weight * imitation * self._imitation(
                rows, heads, labels, metrics
            )
        proposals = network.proposals(heads.latent)
        if proposals is not None:
            head = self._spinner_loss(rows, heads.detached(), proposals, imitation)
            loss = loss + self.learner.spinner_weight * head
            metrics.mean("spinner_loss", head)
            # A dead head proposes the same turn in every state.
            spread = proposals.detach().float().std(dim=0, correction=0).mean()
            metrics.mean("spinner_spread", spread)
        return Loss(loss, predicted.detach(), row_loss.detach())

    def _imitation(
        self, rows: BatchRows, heads: Heads, labels: Tensor | float, metrics: Metrics
    ) -> Tensor:
        learner = self.learner
        alike = resemblance(
            rows.label_pair, rows.label_position, self.online.num_knots, learner.imitation_width
        )
        usable = rows.usable
        if learner.imitation == "margin":
            each = margin(heads.values, rows.legal, alike, learner.imitation_margin)
        else:
            each = cross_entropy(heads.values, rows.legal, alike, learner.imitation_temperature)
        each = torch.where(usable > 0, each, 0.0)
        metrics.mean("imitation_loss", each.sum(), usable.sum().detach())
        return each.sum() / labels

    def _spinner_loss(
        self, rows: BatchRows, heads: Heads, proposals: Tensor, imitation: Tensor | float
    ) -> Tensor:
        own = proposals.gather(1, rows.pair.unsqueeze(1)).squeeze(1)
        if self.network.spinner_head == "regression":
            return (own - rows.position).square().mean()
        # Uphill on the value, in units of its own spread, so that the weight means the same
        # early and late.
        spread = _spread(heads.values).clamp(min=1e-3).unsqueeze(1)
        climb = -(self.online.values_at(heads, proposals) / spread).mean()
        label = proposals.gather(1, rows.label_pair.unsqueeze(1)).squeeze(1)
        follow = ((label - rows.label_position).square() * rows.labelled).mean()
        return climb + imitation * follow

    @torch.no_grad()
    def record(
        self, rows: BatchRows, predicted: Tensor, row_loss: Tensor, metrics: Metrics
    ) -> None:
        """Figures of ``rows``: predictions ``(B,)`` in the network's units, losses ``(B,)``."""
        predicted = restore(predicted, self.learner.value_rescaling)
        count = predicted.numel()
        metrics.mean("loss", row_loss.sum(), count)
        metrics.mean("q_mean", predicted.sum(), count)
        metrics.highest("q_max", predicted.max())
        metrics.lowest("q_min", predicted.min())
        each = torch.arange(len(DRIVER_NAMES), device=self.device)
        mask = (rows.driver.unsqueeze(1) == each).to(row_loss.dtype)
        # Sums of losses, values and rows of every driver in one product.
        sums = torch.stack((row_loss, predicted, torch.ones_like(predicted))) @ mask
        for i, name in enumerate(DRIVER_NAMES):
            metrics.mean(f"loss_{name}", sums[0, i], sums[2, i])
            metrics.mean(f"q_{name}", sums[1, i], sums[2, i])

    def record_ages(self, ages: Column, metrics: Metrics) -> None:
        """Figures of the ages ``(B,)`` of an update's rows, in decisions of its own games."""
        of_all = torch.as_tensor(ages) * self.replicas.size
        metrics.mean("sample_age", of_all.double().mean())
        metrics.highest("sample_age_max", of_all.max())

    def state_dict(self) -> dict[str, Any]:
        self.settle()
        return {
            "online": self.online.state_dict(),
            "target": self.followers.target.state_dict(),
            "average": self.followers.average.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "accumulator": self.accumulator.state_dict(),
            "updates": self.updates,
            "target_age": self.followers.target_age,
            "metrics": self.metrics.state_dict(),
        }

    def load_networks(self, state: dict[str, Any], optimizer: bool = True) -> None:
        """Networks (and optimiser) of ``state_dict``; counters and figures stay as they are."""
        self.online.load_state_dict(state["online"])
        self.followers.target.load_state_dict(state["target"])
        self.followers.average.load_state_dict(state["average"])
        if optimizer:
            self.optimizer.load_state_dict(state["optimizer"])
        self._make_copies()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.load_networks(state)
        self.accumulator.load_state_dict(state["accumulator"])
        self.updates = int(state["updates"])
        # Files of earlier versions have no age; this one is exact if the target is copied whole.
        age = self.updates % self.learner.target_update_interval
        self.followers.target_age = float(state.get("target_age", age))
        if "metrics" in state:
            self.metrics.load_state_dict(state["metrics"], self.device)
        self._make_copies()

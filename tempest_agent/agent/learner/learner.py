"""One update of the student: draw, targets, loss, accumulate, clip, step, followers, metrics.

The targets are in ``targets``, the loss is in ``objective``, all else is here in its order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tempest_agent.agent.devices import Column, to_device
from tempest_agent.agent.inference.greedy import act, features
from tempest_agent.agent.inference.inference_copy import InferenceCopy, aligns
from tempest_agent.agent.networks.layout import Layout
from tempest_agent.agent.networks.q_network import Heads, QNetwork
from tempest_agent.agent.replay.buffer import ReplayBuffer
from tempest_agent.agent.replay.rows import Batch, PlanBatch, micro_batches
from tempest_agent.agent.replicas import ALONE, Replicas
from tempest_agent.config import Config

from .adamw import AdamW
from .metrics import Metrics
from .mixed_precision import MixedPrecision, resolve_precision
from .objective import BatchRows, Objective, usable_labels
from .target_network import Followers
from .targets import TargetMaker, measured_unit
from .update_metrics import (
    CLIP_EPSILON,
    IN_UNITS,
    record_ages,
    record_rows,
    record_step,
    record_targets,
)


class Learner:
    """The networks, their optimiser, and the update, on ``device``.

    ``replicas`` are processes whose batches belong to the same update.

    Attributes:
        target_clip: magnitude that targets are clamped to, in rewards; 0 is no clamp.
        reward_unit: of the network's values, in rewards; 0 while it is to be measured.
        updates: steps made so far.
        grad_norm: of the last gradient, before clipping.
    """

    def __init__(
        self, layout: Layout, config: Config, device: torch.device, replicas: Replicas = ALONE
    ) -> None:
        learner = config.learner
        self.replicas = replicas
        self.layout = layout
        self.config = config
        self.learner = learner
        self.device = device
        self.online = QNetwork(layout, config.network, learner).to(device)
        self.objective = Objective(config, self.online, device)
        # The compiled form wraps the network, so that saved weights keep their names.
        self._forward: Any = torch.compile(self.online) if learner.compile else self.online
        self.followers = Followers(
            self.online, learner.tau, learner.target_update_interval, learner.ema_decay
        )
        self.optimizer = AdamW(
            self.online.parameters(),
            lr=learner.learning_rate,
            weight_decay=learner.weight_decay,
            fused=True,
        )
        self.precision = MixedPrecision(
            resolve_precision(learner.precision, device), device, learner.max_skipped_updates
        )
        self._copy_networks()
        self._parts = self.online.parts()
        self.grad_norm = torch.zeros((), device=device)
        self.updates = 0
        self.target_clip = learner.target_clip
        # Bins have the width that the clamp gives them.
        self.reward_unit = 1.0 if self.online.distribution.step else learner.reward_unit
        self.metrics = Metrics()

    def _copy_networks(self) -> None:
        """Copy the networks in the arithmetic of the updates, for acting and for targets."""
        dtype, compiled = self.precision.dtype, self.learner.compile
        aligned = compiled and aligns(self.device)
        self.fast_online = InferenceCopy(self.online, dtype, compiled, aligned)
        self.fast_target = InferenceCopy(self.followers.target, dtype, compiled, aligned)
        self.targets = TargetMaker(
            self.online, self.fast_online, self.fast_target, self.config, self.device
        )

    def act(
        self, codes: NDArray[np.int8], zap_legal: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int8], NDArray[np.uint8]]:
        """Return greedy actions of the network as it is being trained."""
        return act(self.online, self.fast_online, codes, zap_legal, self.device)

    @property
    def unit(self) -> float:
        """The unit of the values, which is 1 until it is measured."""
        return self.reward_unit or 1.0

    def measure_unit(self, rewards: NDArray[np.float32]) -> None:
        """Choose the unit that suits ``rewards``, once, if the settings leave it open."""
        if not self.reward_unit:
            self.reward_unit = measured_unit(rewards, self.replicas)

    def figures(self) -> dict[str, float]:
        """Return the metrics, with values in rewards, and reset them."""
        read = self.metrics.read()
        return read | {name: self.unit * read[name] for name in IN_UNITS if name in read}

    def draw_and_update(
        self,
        replay: ReplayBuffer,
        count: int,
        importance: float,
        learning_rate: float,
        imitation: float,
        accumulation: int = 1,
    ) -> tuple[Column, Column]:
        """Draw ``count`` rows and learn from them, as ``update`` does.

        Return the rows and their absolute errors, ``(B,)`` each.  ``importance`` is the exponent of
        the importance weights.
        """
        batch = replay.sample(count, importance)
        plans = None
        if self.objective.plan_losses is not None:
            rows = self.learner.plan_batch_size * accumulation
            plans = replay.sample_plans(rows, self.learner.death_share)
        errors = self.update(batch, learning_rate, imitation, accumulation, plans)
        record_ages(replay.ages(batch.rows), self.replicas.size, self.metrics)
        return batch.rows, errors

    def update(
        self,
        batch: Batch,
        learning_rate: float,
        imitation: float,
        accumulation: int = 1,
        plans: PlanBatch | None = None,
    ) -> Column:
        """Make one optimiser step; return the absolute errors ``(B,)``, of the batch's kind.

        Args:
            batch: rows of the replay.
            learning_rate: step size of this update.
            imitation: gate of the imitation terms, 0 to 1.
            accumulation: factor on the number of micro-batches.
            plans: states that teach the policy head by the values of their plans.
        """
        self.settle()
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        errors = self._accumulate(batch, imitation, accumulation)
        if plans is not None:
            self._accumulate_plans(plans, accumulation)
        limit = self.learner.max_grad_norm
        step = clip_and_step(self.optimizer, self._parts, limit, self.precision, self.replicas)
        self.grad_norm = step.norm
        if step.made:
            self._follow(step)
        elif self.precision.fell_back:
            self._copy_networks()
        return errors if isinstance(batch.rows, Tensor) else errors.cpu().numpy()

    def _accumulate(self, batch: Batch, imitation: float, accumulation: int) -> Tensor:
        """Leave the gradient of ``batch`` in the network, with the memory of one micro-batch."""
        count = len(batch.rows)
        imitates = self.objective.imitates(imitation)
        labels = self._count(usable_labels(batch)) if imitates else 1.0
        parts = self.learner.gradient_accumulation_steps * accumulation
        errors = torch.empty(count, device=self.device)
        for parameter in self.online.parameters():
            parameter.grad = None
        for first, last in micro_batches(count, parts):
            share = (last - first) / (count * self.replicas.size)
            rows = self.rows(batch.part(first, last), self.metrics)
            predicted, each = self._add_gradient(rows, imitation, labels, share)
            record_rows(rows, predicted, each, self.metrics)
            errors[first:last] = (predicted - rows.target).abs()
        return errors

    def rows(
        self, batch: Batch, metrics: Metrics, inputs: Callable[[Tensor], Tensor] | None = None
    ) -> BatchRows:
        """Return ``batch`` with its targets, as the loss needs it.

        ``inputs`` makes the network's input of the features, if it is something else.
        """
        target = self.targets(batch, self.target_clip, self.unit)
        record_targets(target, metrics)
        observation = features(batch.codes, self.layout, self.device)
        observation = observation if inputs is None else inputs(observation)
        return self.objective.rows(batch, target, observation)

    def _accumulate_plans(self, plans: PlanBatch, accumulation: int) -> None:
        """Add the gradient of the policy head's losses in ``plans``."""
        count = len(plans.zap_legal)
        parts = min(count, self.learner.gradient_accumulation_steps * accumulation)
        for first, last in micro_batches(count, parts):
            share = (last - first) / (count * self.replicas.size)
            loss = self._plan_loss(plans.part(first, last))
            self.precision.backward(loss, share)

    def _plan_loss(self, batch: PlanBatch) -> Tensor:
        losses = self.objective.plan_losses
        assert losses is not None, "plans are drawn only where they are learned from"
        observation = features(batch.codes, self.layout, self.device)
        zap_legal = to_device(batch.zap_legal, self.device)
        wanted = losses.wanted(batch.plans, observation, zap_legal)
        with self.precision.autocast():
            logits = self.online.preferences(observation).logits
        return losses.loss(logits, wanted, zap_legal, self.metrics)

    def _add_gradient(
        self, rows: BatchRows, imitation: float, labels: Tensor | float, share: float
    ) -> tuple[Tensor, Tensor]:
        """Add the gradient of a micro-batch; return its predictions and losses, ``(B,)`` each."""
        if imitation == 0.0 and not self.learner.compile and self.precision.dtype is None:
            found = self.objective.add_gradient(rows, share, self.metrics)
            if found is not None:
                return found
        fractions = self.online.distribution.draw_fractions(rows.target.shape[0], self.device)
        with self.precision.autocast():
            heads: Heads = self._forward(rows.observation, fractions)
        result = self.objective.loss(
            self.online, rows, heads, fractions, imitation, labels * share, self.metrics
        )
        self.precision.backward(result.loss, share)
        return result.predicted, result.each

    def _count(self, usable: Column) -> Tensor | float:
        """Return the ``usable`` rows of the whole update, at least 1."""
        # Not read back from the device, which would make this wait for the update before it.
        if isinstance(usable, Tensor):
            return self.replicas.total(usable.sum()).clamp(min=1.0)
        return max(self.replicas.total(float(np.count_nonzero(usable))), 1.0)

    def _follow(self, step: Step) -> None:
        """Post-step work: refresh the copy, move the followers, record metrics."""
        took = self.precision.took if self.precision.lagged else None
        self.fast_online.refresh()
        self.followers.move_average(self.followers.average_share(self.updates + 1), took)
        record_step(step.norm, step.group_norms, took, self.learner.max_grad_norm, self.metrics)
        self.advance_count(took)

    def advance_count(self, took: Tensor | None) -> None:
        """Count an update, and move the target network when scheduled."""
        self.updates += 1
        if self.followers.move_target(self.updates, took):
            self.fast_target.refresh()
        age = torch.tensor(self.followers.target_age)
        self.metrics.mean("target_age", age)
        self.metrics.highest("target_age_max", age)

    def settle(self) -> None:
        """Roll back the bookkeeping of the last update if its step was skipped."""
        if not self.precision.settle():
            self.updates -= 1
            self.followers.take_back()
        if self.precision.fell_back:
            self._copy_networks()

    def state_dict(self) -> dict[str, Any]:
        self.settle()
        return {
            "online": self.online.state_dict(),
            "target": self.followers.target.state_dict(),
            "average": self.followers.average.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "accumulator": self.precision.state_dict(),
            "updates": self.updates,
            "target_age": self.followers.target_age,
            "reward_unit": self.reward_unit,
            "metrics": self.metrics.state_dict(),
        }

    def load_networks(self, state: dict[str, Any], optimizer: bool = True) -> None:
        """Load networks (and optimiser) of ``state_dict``; counters and metrics stay."""
        self.online.load_state_dict(state["online"])
        self.followers.target.load_state_dict(state["target"])
        self.followers.average.load_state_dict(state["average"])
        if optimizer:
            self.optimizer.load_state_dict(state["optimizer"])
        self._copy_networks()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.load_networks(state)
        self.precision.load_state_dict(state["accumulator"])
        self.updates = int(state["updates"])
        self.followers.target_age = float(state["target_age"])
        self.reward_unit = float(state.get("reward_unit", 1.0))
        self.metrics.load_state_dict(state["metrics"], self.device)
        self._copy_networks()


class Step(NamedTuple):
    """Whether a step was made, or may have been (``lagged``), and the norms before clipping."""

    made: bool
    norm: Tensor
    group_norms: dict[str, Tensor]


def clip_and_step(
    optimizer: AdamW,
    groups: Mapping[str, list[nn.Parameter]],
    max_norm: float,
    precision: MixedPrecision,
    replicas: Replicas = ALONE,
) -> Step:
    """Add up the gradients of all processes, unscale, clip by their norm, and step.

    A step whose gradient is not finite is skipped and counted, in all processes alike.

    ``groups`` are all parameters by the part of the network they belong to: clipped together,
    measured apart.
    """
    parameters = [p for group in groups.values() for p in group]
    if all(p.grad is None for p in parameters):
        # No backward pass: a scaler would raise, and there is nothing to step.
        return Step(False, torch.zeros(()), {})
    # First of all, so that all processes see the same gradient and skip the same steps.
    replicas.sum_gradients(parameters)
    precision.scaler.unscale_(optimizer)
    gradients = [p.grad for p in parameters if p.grad is not None]
    norms = dict(zip(map(id, gradients), torch._foreach_norm(gradients), strict=True))
    group_norms = {
        name: _total_norm([norms[id(p.grad)] for p in group if p.grad is not None])
        for name, group in groups.items()
    }
    norm = _total_norm(list(norms.values()))
    # As ``nn.utils.clip_grad_norm_``; where the norm can be read without waiting for the device,
    # most gradients turn out to need no pass over them.
    if precision.lagged or not float(norm) < 0.999 * max_norm - CLIP_EPSILON:
        torch._foreach_mul_(gradients, (max_norm / (norm + CLIP_EPSILON)).clamp(max=1.0))
    return Step(precision.step(optimizer, norm), norm, group_norms)


def _total_norm(norms: list[Tensor]) -> Tensor:
    """Return the norm of a gradient whose parts have these ``norms``."""
    total: Tensor = torch.linalg.vector_norm(torch.stack(norms)) if norms else torch.zeros(())
    return total

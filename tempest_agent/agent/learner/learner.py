"""One update of the student from a batch of replayed decisions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tempest_agent.agent.devices import Column
from tempest_agent.agent.inference.acting import greedy
from tempest_agent.agent.inference.inference_copy import InferenceCopy, aligns
from tempest_agent.agent.networks.q_network import Heads, Layout, QNetwork
from tempest_agent.agent.replay.rows import Batch
from tempest_agent.agent.replicas import ALONE, Replicas
from tempest_agent.config import Config

from .gradient_accumulation import Accumulator, micro_batches, resolve_precision
from .malloc import keep_freed_memory
from .metrics import Metrics
from .objective import BatchRows, Objective, usable_labels
from .target_network import Followers
from .targets import Bootstrap
from .update_metrics import record_rows, record_step, record_targets


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
        self.objective = Objective(layout, config, self.online, device)
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
        labels = self._labels(batch) if self.objective.imitates(imitation) else 1.0
        number = self.learner.gradient_accumulation_steps * accumulation
        errors = torch.empty(count, device=self.device)
        self.accumulator.begin()
        for first, last in micro_batches(count, number):
            share = (last - first) / rows_of_all
            piece = batch.part(first, last)
            rows = self.rows(piece, self.metrics)
            found = self._without_graph(rows, imitation, share)
            predicted, each = found or self._with_graph(rows, imitation, labels, share)
            record_rows(rows, predicted, each, self.metrics)
            errors[first:last] = (predicted - rows.target).abs()
        return errors

    def _labels(self, batch: Batch) -> Tensor | float:
        """Usable labels of the whole update, at least 1."""
        usable = usable_labels(batch)
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
        norm, max_norm = accumulator.grad_norm, self.learner.max_grad_norm
        record_step(norm, accumulator.group_norms, took, max_norm, self.metrics)
        self.advance_count(took)

    def advance_count(self, took: Tensor | None) -> None:
        """Count an update, and move the target network when it is due."""
        self.updates += 1
        if self.followers.move_target(self.updates, took):
            self.fast_target.refresh()
        age = torch.tensor(self.followers.target_age)
        self.metrics.mean("target_age", age)
        self.metrics.highest("target_age_max", age)

    def rows(
        self, batch: Batch, metrics: Metrics, inputs: Callable[[Tensor], Tensor] | None = None
    ) -> BatchRows:
        """``batch`` as the loss needs it, targets included, whose figures go to ``metrics``.

        ``inputs`` makes of the features what the network takes, if that is something else.
        """
        target = self.bootstrap(batch, self.target_clip)
        record_targets(target, metrics)
        observation = self.bootstrap.observation(batch.codes)
        return self.objective.rows(
            batch, target, observation if inputs is None else inputs(observation)
        )

    def _without_graph(
        self, rows: BatchRows, imitation: float, share: float
    ) -> tuple[Tensor, Tensor] | None:
        """Predictions and losses ``(B,)`` of a micro-batch, its gradient added; None if unknown."""
        if imitation > 0.0 or self.learner.compile or self.accumulator.dtype is not None:
            return None
        return self.objective.add_gradient(rows, share, self.metrics)

    def _with_graph(
        self, rows: BatchRows, imitation: float, labels: Tensor | float, share: float
    ) -> tuple[Tensor, Tensor]:
        """The same for everything that can be learned."""
        fractions = self.online.distribution.draw_fractions(rows.target.shape[0], self.device)
        with self.accumulator.autocast():
            heads: Heads = self._forward(rows.observation, fractions)
        parts = self.objective.loss(
            self.online, rows, heads, fractions, imitation, labels * share, self.metrics
        )
        self.accumulator.backward(parts.loss, share)
        return parts.predicted, parts.each

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

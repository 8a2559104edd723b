"""One update of the student from a batch of replayed decisions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tempest_agent.config import Config

from .accumulation import Accumulator, resolve_precision
from .actions import pair_mask, to_counts, to_unit
from .imitation import cross_entropy, margin, resemblance
from .inference import InferenceCopy
from .losses import VALUE_LOSSES
from .metrics import Metrics
from .networks import Heads, Layout, QNetwork
from .replay import DRIVER_NAMES, Batch
from .spinner import interpolate, nearest_knot
from .target_network import Followers
from .targets import choose, clamp_target, double_q, n_step_target, value_at


class _Rows(NamedTuple):
    """A batch, or a part of one, on the training device."""

    observation: Tensor
    legal: Tensor
    pair: Tensor
    position: Tensor
    target: Tensor
    weight: Tensor
    driver: Tensor
    label_pair: Tensor
    label_position: Tensor
    labelled: Tensor


class Learner:
    """The networks, their optimiser, and the update.

    Args:
        layout: of the observation.
        config: the whole configuration.
        device: where networks live and updates run.
    """

    def __init__(self, layout: Layout, config: Config, device: torch.device) -> None:
        learner = config.learner
        self.learner = learner
        self.network = config.network
        self.device = device
        self.online = QNetwork(layout, config.network).to(device)
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
            {
                "encoder": self.online.encoder.parameters(),
                "value": self.online.value_head.parameters(),
                "spinner": self.online.spinner_head.parameters(),
            },
            learner.max_grad_norm,
            resolve_precision(learner.precision, device),
            device,
        )
        self._fast_online = InferenceCopy(self.online, self.accumulator.dtype)
        self._fast_target = InferenceCopy(self.followers.target, self.accumulator.dtype)
        self.row_loss = VALUE_LOSSES[learner.loss]
        self.updates = 0
        self.metrics = Metrics()

    @torch.no_grad()
    def act(
        self, codes: NDArray[np.int8], zap_legal: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int8], NDArray[np.uint8]]:
        """Greedy actions of the network as it is being trained."""
        heads = self._fast_online(self._observation(codes))
        legal = pair_mask(torch.from_numpy(zap_legal).to(self.device))
        choice = choose(self.online, heads, legal)
        spin: NDArray[np.int8] = to_counts(choice.position).cpu().numpy()
        buttons: NDArray[np.uint8] = choice.pair.to(torch.uint8).cpu().numpy()
        return spin, buttons

    def update(self, batch: Batch, learning_rate: float, imitation: float) -> NDArray[np.float32]:
        """One optimiser step.

        Args:
            batch: rows of the replay.
            learning_rate: step size of this update.
            imitation: gate of the imitation terms, 0 to 1.

        Returns:
            Absolute errors ``(B,)`` for the priorities.
        """
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        target = self._targets(batch)
        rows = self._rows(batch, target)
        count = target.shape[0]
        # array_split semantics: the first parts are one row longer when it does not divide.
        parts = torch.tensor_split(torch.arange(count), self.learner.gradient_accumulation_steps)
        errors = torch.empty(count, device=self.device)
        self.accumulator.begin()
        for part in parts:
            first, last = int(part[0]), int(part[-1]) + 1
            piece = _Rows(*(column[first:last] for column in rows))
            loss, error = self._loss(piece, imitation)
            self.accumulator.backward(loss, (last - first) / count)
            errors[first:last] = error
        if self.accumulator.finish():
            self.updates += 1
            self._fast_online.refresh()
            if self.followers.update(self.updates):
                self._fast_target.refresh()
            self.metrics.mean("grad_norm", self.accumulator.grad_norm)
            self.metrics.highest("grad_norm_max", self.accumulator.grad_norm)
            for name, norm in self.accumulator.group_norms.items():
                self.metrics.mean(f"grad_norm_{name}", norm)
        host: NDArray[np.float32] = errors.cpu().numpy()
        return host

    @torch.no_grad()
    def _targets(self, batch: Batch) -> Tensor:
        following = self._observation(batch.next_codes)
        online = self._fast_online(following)
        target_values = self._fast_target(following).values
        legal = pair_mask(torch.from_numpy(batch.next_zap_legal).to(self.device))
        choice = choose(self.online, online, legal)
        raw = n_step_target(
            torch.from_numpy(batch.returns).to(self.device),
            torch.from_numpy(batch.discounts).to(self.device),
            double_q(choice, target_values),
        )
        target, hits = clamp_target(raw, self.learner.target_clip)
        self.metrics.mean("target_mean", raw.sum(), raw.numel())
        self.metrics.highest("target_max", raw.abs().max())
        self.metrics.mean("target_clip_share", hits, raw.numel())
        self.metrics.mean("effective_n", torch.tensor(float(batch.horizons.mean())))
        return target

    def _rows(self, batch: Batch, target: Tensor) -> _Rows:
        def here(array: NDArray[Any]) -> Tensor:
            return torch.from_numpy(array).to(self.device)

        position = to_unit(here(batch.spin))
        if self.network.spinner_head == "knots":
            position = nearest_knot(position, self.online.num_knots)
        return _Rows(
            observation=self._observation(batch.codes),
            legal=pair_mask(here(batch.zap_legal)),
            pair=here(batch.buttons).to(torch.int64),
            position=position,
            target=target,
            weight=here(batch.weights),
            driver=here(batch.driver),
            label_pair=here(batch.label_buttons).to(torch.int64),
            label_position=to_unit(here(batch.label_spin)),
            labelled=here(batch.labelled).to(torch.float32),
        )

    def _loss(self, rows: _Rows, imitation: float) -> tuple[Tensor, Tensor]:
        with self.accumulator.autocast():
            heads: Heads = self.online(rows.observation)
        predicted = value_at(heads.values, rows.pair, rows.position)
        row_loss = self.row_loss(predicted, rows.target)
        loss = (row_loss * rows.weight).mean()
        self._record(rows, predicted, row_loss)
        if imitation > 0 and self.learner.imitation != "none":
            loss = loss + self.learner.imitation_weight * imitation * self._imitation(rows, heads)
        proposals = self.online.proposals(heads.latent)
        if proposals is not None:
            head = self._spinner_loss(rows, heads.values.detach(), proposals, imitation)
            loss = loss + self.learner.spinner_weight * head
            self.metrics.mean("spinner_loss", head)
        return loss, (predicted.detach() - rows.target).abs()

    def _imitation(self, rows: _Rows, heads: Heads) -> Tensor:
        learner = self.learner
        alike = resemblance(
            rows.label_pair, rows.label_position, self.online.num_knots, learner.imitation_width
        )
        # A teacher may press a zap that would do nothing; such a label cannot be followed.
        usable = rows.labelled * rows.legal.gather(1, rows.label_pair.unsqueeze(1)).squeeze(1)
        if learner.imitation == "margin":
            each = margin(heads.values, rows.legal, alike, learner.imitation_margin)
        else:
            each = cross_entropy(heads.values, rows.legal, alike, learner.imitation_temperature)
        each = torch.where(usable > 0, each, 0.0)
        self.metrics.mean("imitation_loss", each.sum(), usable.sum().detach())
        return each.sum() / usable.sum().clamp(min=1.0)

    def _spinner_loss(
        self, rows: _Rows, values: Tensor, proposals: Tensor, imitation: float
    ) -> Tensor:
        own = proposals.gather(1, rows.pair.unsqueeze(1)).squeeze(1)
        if self.network.spinner_head == "regression":
            return (own - rows.position).square().mean()
        # Uphill on the value, in units of its own spread, so that the weight means the same
        # early and late.
        spread = values.std(dim=(1, 2)).clamp(min=1e-3).unsqueeze(1)
        climb = -(interpolate(values, proposals) / spread).mean()
        label = proposals.gather(1, rows.label_pair.unsqueeze(1)).squeeze(1)
        follow = ((label - rows.label_position).square() * rows.labelled).mean()
        return climb + imitation * follow

    @torch.no_grad()
    def _record(self, rows: _Rows, predicted: Tensor, row_loss: Tensor) -> None:
        metrics, count = self.metrics, predicted.numel()
        metrics.mean("loss", row_loss.sum(), count)
        metrics.mean("q_mean", predicted.sum(), count)
        metrics.highest("q_max", predicted.max())
        metrics.lowest("q_min", predicted.min())
        for i, name in enumerate(DRIVER_NAMES):
            mask = (rows.driver == i).to(row_loss.dtype)
            metrics.mean(f"loss_{name}", (row_loss * mask).sum(), mask.sum())
            metrics.mean(f"q_{name}", (predicted * mask).sum(), mask.sum())

    def _observation(self, codes: NDArray[np.int8]) -> Tensor:
        return torch.from_numpy(codes).to(self.device).to(torch.float32).mul_(1.0 / 127.0)

    def state_dict(self) -> dict[str, Any]:
        return {
            "online": self.online.state_dict(),
            "target": self.followers.target.state_dict(),
            "average": self.followers.average.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "accumulator": self.accumulator.state_dict(),
            "updates": self.updates,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.online.load_state_dict(state["online"])
        self.followers.target.load_state_dict(state["target"])
        self.followers.average.load_state_dict(state["average"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.accumulator.load_state_dict(state["accumulator"])
        self.updates = int(state["updates"])
        self._fast_online.refresh()
        self._fast_target.refresh()

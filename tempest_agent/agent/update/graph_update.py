"""An update on a GPU as one CUDA graph: from row numbers to new weights without the host.

``Learner.update`` launches some two thousand kernels, and at a batch of a few thousand rows
launching them takes longer than running them.  Here ``torch.compile`` makes few kernels of the
arithmetic, which are recorded once as a CUDA graph and then launched at once.  The arithmetic is
that of ``Learner.update`` with three differences: targets of all micro-batches are made together
(without gradients they need little memory), the gradients of the micro-batches are added up at the
end, and they are taken with respect to the network's copy in the arithmetic of the updates instead
of casting each weight again for every micro-batch, so in 16 bits LayerNorm's scales are rounded.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tempest_agent.agent.inference.inference_copy import InferenceCopy
from tempest_agent.agent.learner.learner import Learner
from tempest_agent.agent.learner.objective import BatchRows
from tempest_agent.agent.learner.update_metrics import record_ages, record_rows, record_step
from tempest_agent.agent.replay.device_buffer import DeviceReplay
from tempest_agent.agent.replay.rows import micro_batches

from .flat_weights import FlatWeights
from .graph_metrics import GraphMetrics, GraphMetricSums

WARM_UP = 3
"""Updates before the recording: kernels compile, and libraries allocate their memory."""

BRANCHES = 4
"""Micro-batches that run in parallel: one alone does not fill a large GPU."""


class _Form(NamedTuple):
    """What a recording depends on; any other form needs a new one."""

    rows: int
    micro_batches: int
    imitates: bool
    n_steps: int
    target_clip: float
    unit: float
    final_room: int
    copies: tuple[InferenceCopy, InferenceCopy]
    """Of the online and the target network, by identity."""


class GraphUpdate:
    """Draws rows and learns from them, as one CUDA graph.

    Args:
        learner: not in float16.
        replay: on the learner's device.
        branches: micro-batches that run in parallel.
        compiler: makes kernels of a function.
    """

    def __init__(
        self,
        learner: Learner,
        replay: DeviceReplay,
        branches: int = BRANCHES,
        compiler: Callable[..., Any] = torch.compile,
    ) -> None:
        self.learner, self.replay = learner, replay
        self.device = learner.device
        self.branches = branches
        self._prepare = compiler(self._prepared, dynamic=False)
        self._lose = compiler(self._loss, dynamic=False)
        self._finish = compiler(self._finished, dynamic=False)
        self._form: _Form | None = None
        self._graph: Any = None
        self._played = 0
        self._sums: GraphMetricSums | None = None
        self._settings = torch.zeros(3, device=self.device)
        """Step size, imitation gate, share of the average."""
        learner.metrics.before_reading = self.give_metrics

    @classmethod
    def of(cls, learner: Learner, replay: Any) -> GraphUpdate | None:
        """Return the update of ``learner`` if device and settings allow it, else None."""
        allowed = (
            isinstance(replay, DeviceReplay)
            and learner.device.type == "cuda"
            and learner.learner.compile
            and learner.replicas.size == 1
            and learner.precision.precision != "float16"
        )
        return cls(learner, replay) if allowed else None

    def __call__(
        self,
        count: int,
        importance: float,
        learning_rate: float,
        imitation: float,
        accumulation: int = 1,
    ) -> tuple[Tensor, Tensor]:
        """Make one optimiser step; arguments and results as in ``Learner.draw_and_update``."""
        learner = self.learner
        rows, weights = self.replay.draw(count, importance)
        share = learner.followers.average_share(learner.updates + 1)
        settings = torch.tensor([learning_rate, imitation, share])
        if self.device.type == "cuda":
            settings = settings.pin_memory()
        self._take(self._form_of(count, imitation, accumulation))
        self._rows.copy_(rows)
        self._weights.copy_(weights)
        self._settings.copy_(settings, non_blocking=True)
        self._play()
        for group in learner.optimizer.param_groups:
            group["lr"] = learning_rate
        # Wait for the update before only now, while this one runs.
        learner.settle()
        learner.precision.took = self._took
        learner.precision.fetch()
        learner.advance_count(self._took)
        return self._rows, self._errors

    def _form_of(self, count: int, imitation: float, accumulation: int) -> _Form:
        learner = self.learner
        return _Form(
            rows=count,
            micro_batches=learner.learner.gradient_accumulation_steps * accumulation,
            imitates=imitation > 0,
            n_steps=self.replay.n_steps,
            target_clip=learner.target_clip,
            unit=learner.unit,
            final_room=self.replay.final_room,
            copies=(learner.fast_online, learner.fast_target),
        )

    def _take(self, form: _Form) -> None:
        """Prepare updates of another form."""
        before = self._form
        if form == before:
            return
        self.give_metrics()
        learner, device = self.learner, self.device
        self._form, self._graph, self._played, self._sums = form, None, 0, None
        self._rows = torch.zeros(form.rows, dtype=torch.int64, device=device)
        self._weights = torch.ones(form.rows, device=device)
        if before is None or form.copies != before.copies:
            self._flat = FlatWeights(learner)
            self._rest = [
                torch.zeros(slot - p.numel(), device=device, dtype=p.dtype)
                for slot, p in zip(self._flat.slots, self._flat.copied, strict=True)
            ]
        self._gradients = torch.zeros(
            form.micro_batches, self._flat.size, device=device, dtype=self._flat.copy.dtype
        )

    def _play(self) -> None:
        if self._graph is not None:
            self._graph.replay()
        elif self.device.type != "cuda":
            self._body()
        elif self._played < WARM_UP:
            side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                self._body()
            torch.cuda.current_stream().wait_stream(side)
            self._played += 1
        else:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                self._body()
            graph.replay()
            self._graph = graph

    def _body(self) -> None:
        form = self._form
        if form is None:
            raise RuntimeError("no form yet")
        rate, imitation, share = self._settings
        rows, labels, prepared = self._prepare(self._rows, self._weights)
        tables, losses = [prepared], []
        streams = self._fork()
        for i, (first, last) in enumerate(micro_batches(form.rows, form.micro_batches)):
            piece = tuple(column[first:last] for column in rows)
            weight = (last - first) / form.rows
            with torch.cuda.stream(streams[i % len(streams)]):
                loss, predicted, each, table = self._lose(piece, imitation, labels, weight)
                with warnings.catch_warnings():
                    # The weights were seen on another stream before; nothing is added to theirs.
                    warnings.filterwarnings("ignore", "The AccumulateGrad node's stream")
                    gradients = torch.autograd.grad(loss, self._flat.copied)
                pieces = zip(gradients, self._rest, strict=True)
                flat = [part for g, rest in pieces for part in (g.reshape(-1), rest)]
                torch.cat([part for part in flat if part.numel()], out=self._gradients[i])
            losses.append((predicted, each))
            if table is not None:
                tables.append(table)
        self._join(streams)
        if self._sums is None:
            self._sums = GraphMetricSums(self._names(rows, losses, labels), self.device)
        self._errors, self._took = self._finish(rows, losses, tables, self._gradients, rate, share)

    def _fork(self) -> list[Any]:
        """Return one stream per branch, the current one among them."""
        if self.device.type != "cuda":
            return [None]
        here = torch.cuda.current_stream()
        streams: list[Any] = [here]
        for _ in range(self.branches - 1):
            stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            stream.wait_stream(here)
            streams.append(stream)
        return streams

    def _join(self, streams: list[Any]) -> None:
        for stream in streams[1:]:
            torch.cuda.current_stream().wait_stream(stream)

    # Between the compiled functions rows are plain tuples: not every version of the compiler can
    # return a named one.

    def _prepared(self, rows: Tensor, weights: Tensor) -> tuple[tuple[Tensor, ...], Tensor, Tensor]:
        metrics = GraphMetrics()
        ready, labels = self._read(rows, weights, metrics)
        return tuple(ready), labels, metrics.table()

    @torch.no_grad()
    def _read(
        self, rows: Tensor, weights: Tensor, metrics: GraphMetrics
    ) -> tuple[BatchRows, Tensor]:
        learner = self.learner
        batch = self.replay.assembled(rows, weights)
        ready = learner.rows(batch, metrics, learner.fast_online.inputs)
        record_ages(self.replay.ages(rows), learner.replicas.size, metrics)
        return ready, ready.usable.sum().clamp(min=1.0)

    def _loss(
        self, rows: tuple[Tensor, ...], imitation: Tensor, labels: Tensor, weight: float
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        metrics = GraphMetrics()
        loss, predicted, each = self._losses(BatchRows(*rows), imitation, labels * weight, metrics)
        return loss * weight, predicted, each, metrics.table() if metrics.names else None

    def _losses(
        self, rows: BatchRows, imitation: Tensor, labels: Tensor, metrics: GraphMetrics
    ) -> tuple[Tensor, Tensor, Tensor]:
        learner, form = self.learner, self._form
        network = learner.fast_online.network
        fractions = network.distribution.draw_fractions(len(rows.target), self.device)
        heads = network(rows.observation, fractions)
        gate = imitation if form is not None and form.imitates else 0.0
        return learner.objective.loss(network, rows, heads, fractions, gate, labels, metrics)

    @torch.no_grad()
    def _finished(
        self,
        rows: tuple[Tensor, ...],
        losses: list[tuple[Tensor, Tensor]],
        tables: list[Tensor],
        gradients: Tensor,
        rate: Tensor,
        share: Tensor,
    ) -> tuple[Tensor, Tensor]:
        learner, metrics, whole = self.learner, GraphMetrics(), BatchRows(*rows)
        predicted = torch.cat([predicted for predicted, _ in losses])
        each = torch.cat([each for _, each in losses])
        record_rows(whole, predicted, each, metrics)
        taken = self._flat.step(gradients, rate, share)
        record_step(
            taken.norm, taken.group_norms, taken.took, learner.learner.max_grad_norm, metrics
        )
        if self._sums is not None:
            self._sums.add(torch.cat([*tables, metrics.table()], dim=1))
        return (predicted - whole.target).abs(), taken.took

    @torch.no_grad()
    def _names(
        self, rows: tuple[Tensor, ...], losses: list[tuple[Tensor, Tensor]], labels: Tensor
    ) -> list[tuple[str, str]]:
        """Return the metrics in the order of ``_body``, found by passes that are not compiled."""
        first, each, last = GraphMetrics(), GraphMetrics(), GraphMetrics()
        self._read(self._rows, self._weights, first)
        piece = BatchRows(*(column[: len(losses[0][0])] for column in rows))
        self._losses(piece, self._settings[1], labels, each)
        predicted, loss = losses[0]
        record_rows(piece, predicted, loss, last)
        one = torch.ones((), device=self.device)
        groups = dict.fromkeys(self._flat.groups, one)
        record_step(one, groups, one, self.learner.learner.max_grad_norm, last)
        return [*first.names, *each.names * len(losses), *last.names]

    def give_metrics(self) -> None:
        """Add the metrics since the last call to the learner's."""
        if self._sums is not None:
            self._sums.give(self.learner.metrics)

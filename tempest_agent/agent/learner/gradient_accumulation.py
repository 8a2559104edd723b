"""The one place where an update begins and ends.

The order matters and is: clear gradients; for every micro-batch a forward pass under autocast and
a backward pass of its loss weighted by its share of the rows; add up over the processes that learn
together, if there are several; unscale once; clip; step; adapt the scale.  A step with a gradient
that is not finite is skipped and counted, and the caller then advances neither target nor averages
nor schedules.  When step after step is skipped in reduced precision, float32 takes over for the
rest of the run, and one message says so.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from tempest_agent.agent.replicas import ALONE, Replicas

CLIP_EPSILON = 1e-6
"""What ``torch.nn.utils.clip_grad_norm_`` adds to the norm."""

log = logging.getLogger("tempest_agent")


def resolve_precision(precision: str, device: torch.device) -> str:
    """``auto`` as the fastest safe arithmetic of ``device``: bfloat16 or float32."""
    if precision != "auto":
        return precision
    if device.type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float16"
    return "bfloat16" if _has_fast_bfloat16() else "float32"


def _has_fast_bfloat16() -> bool:
    # Without matrix tiles a CPU converts back and forth and is slower than in float32.
    probe = getattr(torch.cpu, "_is_amx_tile_supported", None)
    return bool(probe()) if probe is not None else False


def micro_batches(rows: int, count: int) -> list[tuple[int, int]]:
    """First row and end of each of ``count`` micro-batches of ``rows`` rows.

    Those that come first are one row longer where it does not divide.
    """
    least, more = divmod(rows, count)
    return list(pairwise(least * i + min(i, more) for i in range(count + 1)))


class Accumulator:
    """Gradients of one optimiser over one or more micro-batches.

    Args:
        optimizer: steps when an update ends.
        groups: all parameters of the optimiser by the part of the network they belong to;
            clipped together, measured apart.
        max_grad_norm: norm above which the gradient is scaled down.
        precision: ``float32``, ``bfloat16`` or ``float16``.
        device: where the parameters are.
        max_skipped: skipped steps in a row after which float32 takes over.

        lagged: whether to learn only at the next update that a step was skipped, so that nothing
            waits for the device; it skips the step by itself.  Left out, so on a GPU.
        replicas: processes whose micro-batches belong to the same update.

    Attributes:
        took: 1.0 where the last step was made and 0.0 where not, on the device (if ``lagged``).
        skipped: steps skipped so far because of a gradient that is not finite.
        fell_back: whether the last ``finish`` gave up the reduced precision.
        is_float32_instead: whether it was given up at any time, a resumed run's past included.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        groups: Mapping[str, Iterable[nn.Parameter]],
        max_grad_norm: float,
        precision: str,
        device: torch.device,
        max_skipped: int = 20,
        lagged: bool | None = None,
        replicas: Replicas = ALONE,
    ) -> None:
        self.optimizer = optimizer
        self.groups = {name: list(group) for name, group in groups.items()}
        self.parameters = [p for group in self.groups.values() for p in group]
        self.max_grad_norm = max_grad_norm
        self.device = device
        self.max_skipped = max_skipped
        self.replicas = replicas
        self.lagged = device.type == "cuda" if lagged is None else lagged
        self.took: Tensor = torch.ones((), device=device)
        self._pending: Tensor | None = None
        self._use(precision)
        self.skipped = 0
        self.skipped_in_a_row = 0
        self.fell_back = self.is_float32_instead = False
        self.grad_norm: Tensor = torch.zeros((), device=device)
        self.group_norms: dict[str, Tensor] = {}

    def _use(self, precision: str) -> None:
        self.precision = precision
        self.dtype = {"bfloat16": torch.bfloat16, "float16": torch.float16}.get(precision)
        # Only float16 underflows; the scaler is a no-op otherwise.
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=precision == "float16")

    def autocast(self) -> AbstractContextManager[Any]:
        """The context in which networks run; losses belong outside, in float32."""
        if self.dtype is None:
            return nullcontext()
        return torch.autocast(self.device.type, dtype=self.dtype)

    def begin(self) -> None:
        """Forget the gradients of the last update."""
        for parameter in self.parameters:
            parameter.grad = None

    def backward(self, loss: Tensor, share: float) -> None:
        """Add the gradient of a micro-batch whose mean loss is ``loss``.

        ``share`` is its number of rows divided by the rows of the whole update (of all processes),
        so that a small last micro-batch counts as little as it should.
        """
        scaled: Tensor = self.scaler.scale(loss if share == 1.0 else loss * share)
        scaled.backward()  # type: ignore[no-untyped-call]

    def finish(self) -> bool:
        """Clip and step; False if nothing was stepped, for want of a gradient that is finite.

        ``grad_norm`` and ``group_norms`` then hold the norms before clipping.  If ``lagged`` it
        is always True; ``settle`` tells later.
        """
        self.fell_back = False
        if all(p.grad is None for p in self.parameters):
            # No backward pass: a scaler would raise, and there is nothing to step.
            return False
        # Before all else, so that everybody sees the same gradient and skips the same steps.
        self.replicas.sum_gradients(self.parameters)
        self.scaler.unscale_(self.optimizer)
        self._measure()
        self._clip()
        if self.lagged:
            self._step_unseen()
            self.fetch()
            return True
        finite = math.isfinite(self.grad_norm)
        if self.scaler.is_enabled():
            self.scaler.step(self.optimizer)
            self.scaler.update()
        elif finite:
            _step(self.optimizer)
        self._count(finite)
        return finite

    def _measure(self) -> None:
        """The norm of the gradient, and those of its groups."""
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        norms = iter(torch._foreach_norm(gradients))
        by_group = {
            name: [next(norms) for p in group if p.grad is not None]
            for name, group in self.groups.items()
        }
        self.group_norms = {name: _joined(group) for name, group in by_group.items()}
        self.grad_norm = _joined([norm for group in by_group.values() for norm in group])

    def _clip(self) -> None:
        """Scale the gradient down to ``max_grad_norm``, as ``nn.utils.clip_grad_norm_`` does."""
        # Where it can be asked without waiting, most gradients turn out to need no pass over them.
        if not self.lagged and float(self.grad_norm) < 0.999 * self.max_grad_norm - CLIP_EPSILON:
            return
        factor = (self.max_grad_norm / (self.grad_norm + CLIP_EPSILON)).clamp(max=1.0)
        torch._foreach_mul_([p.grad for p in self.parameters if p.grad is not None], factor)

    def _step_unseen(self) -> None:
        """Let the device decide whether to step."""
        self.took = torch.isfinite(self.grad_norm).float()
        if self.scaler.is_enabled():
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            # Fused optimisers leave everything as it is where this is 1, as under a scaler.
            self.optimizer.found_inf = 1.0 - self.took  # type: ignore[attr-defined]
            self.optimizer.step()

    def fetch(self) -> None:
        """Fetch what the device decides, without waiting for it; ``settle`` reads it."""
        self._pending = torch.empty((), pin_memory=self.device.type == "cuda")
        self._pending.copy_(self.took, non_blocking=True)
        if self.device.type == "cuda":
            self._arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._arrived.record()

    def settle(self) -> bool:
        """Account for the last step, if that is still open; False if it was skipped."""
        self.fell_back = False
        if self._pending is None:
            return True
        if self.device.type == "cuda":
            self._arrived.synchronize()
        finite = bool(self._pending)
        self._pending = None
        self._count(finite)
        return finite

    def _count(self, finite: bool) -> None:
        if finite:
            self.skipped_in_a_row = 0
            return
        self.skipped += 1
        self.skipped_in_a_row += 1
        if self.skipped_in_a_row != self.max_skipped:
            return
        if self.dtype is None:
            log.warning(
                "the gradient was not finite in %d updates in a row: nothing is learned; go on "
                "from an earlier checkpoint with a lower learner.learning_rate",
                self.max_skipped,
            )
            return
        log.warning(
            "the gradient was not finite in %d updates in a row in %s: going on in float32; set "
            "learner.precision=float32 to begin with it",
            self.max_skipped,
            self.precision,
        )
        self._use("float32")
        self.skipped_in_a_row = 0
        self.fell_back = self.is_float32_instead = True

    def state_dict(self) -> dict[str, Any]:
        return {
            "scaler": self.scaler.state_dict(),
            "skipped": self.skipped,
            "skipped_in_a_row": self.skipped_in_a_row,
            "float32_instead": self.is_float32_instead,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        # Files of earlier versions have neither this nor the number of skips in a row.
        self.is_float32_instead = bool(state.get("float32_instead", False))
        if self.is_float32_instead:
            self._use("float32")
        # A scaler's state moves only between runs of the same precision; float32 has none.
        if self.scaler.is_enabled() and state["scaler"]:
            self.scaler.load_state_dict(state["scaler"])
        self.skipped = int(state["skipped"])
        self.skipped_in_a_row = int(state.get("skipped_in_a_row", 0))


def _step(optimizer: torch.optim.Optimizer) -> None:
    """``optimizer.step()``, of a fused AdamW without what torch does around its kernel.

    For a small network that takes several times as long as the kernel.
    """
    states = optimizer.state
    for group in optimizer.param_groups:
        members = [p for p in group["params"] if p.grad is not None]
        if not group.get("fused") or not all(p in states for p in members):
            optimizer.step()
            return
        steps, first, second = (
            [states[p][name] for p in members] for name in ("step", "exp_avg", "exp_avg_sq")
        )
        beta1, beta2 = group["betas"]
        torch._foreach_add_(steps, 1)
        torch._fused_adamw_(
            members, [p.grad for p in members], first, second, [], steps, lr=group["lr"],
            beta1=beta1, beta2=beta2, weight_decay=group["weight_decay"], eps=group["eps"],
            amsgrad=False, maximize=False,
        )  # fmt: skip


def _joined(norms: list[Tensor]) -> Tensor:
    """The norm of what has these ``norms`` in its parts."""
    if not norms:
        return torch.zeros(())
    total: Tensor = torch.linalg.vector_norm(torch.stack(norms))
    return total

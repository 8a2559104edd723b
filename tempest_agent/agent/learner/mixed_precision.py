"""Reduced precision: autocast, loss scaling, and steps skipped for a gradient that is not finite.

When step after step is skipped in reduced precision, float32 takes over for the rest of the run,
and one message says so.
"""

from __future__ import annotations

import logging
import math
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from .adamw import AdamW

log = logging.getLogger("tempest_agent")


def resolve_precision(precision: str, device: torch.device) -> str:
    """Return the fastest safe arithmetic of ``device`` for ``auto``: bfloat16 or float32."""
    if precision != "auto":
        return precision
    if device.type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float16"
    return "bfloat16" if _has_fast_bfloat16() else "float32"


def _has_fast_bfloat16() -> bool:
    # Without matrix tiles a CPU converts back and forth and is slower than in float32.
    probe = getattr(torch.cpu, "_is_amx_tile_supported", None)
    return bool(probe()) if probe is not None else False


class MixedPrecision:
    """The arithmetic of updates, and what became of their steps.

    Args:
        precision: ``float32``, ``bfloat16`` or ``float16``.
        device: where the parameters are.
        max_skipped: skipped steps in a row after which float32 takes over.

    Attributes:
        lagged: whether a skipped step is only noticed at the next update, so that nothing waits
            for the device, which skips the step by itself.  True on a GPU.
        took: 1.0 if the last step was made, else 0.0, on the device (only if ``lagged``).
        skipped: steps skipped so far because of a gradient that is not finite.
        fell_back: whether the last ``step`` or ``settle`` gave up the reduced precision.
        is_float32_instead: whether it was ever given up, before a resume included.
    """

    def __init__(self, precision: str, device: torch.device, max_skipped: int = 20) -> None:
        self.device = device
        self.max_skipped = max_skipped
        self.lagged = device.type == "cuda"
        self.took: Tensor = torch.ones((), device=device)
        self._pending: Tensor | None = None
        self._use(precision)
        self.skipped = 0
        self.skipped_in_a_row = 0
        self.fell_back = self.is_float32_instead = False

    def _use(self, precision: str) -> None:
        self.precision = precision
        self.dtype = {"bfloat16": torch.bfloat16, "float16": torch.float16}.get(precision)
        # Only float16 underflows; the scaler is a no-op otherwise.
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=precision == "float16")

    def autocast(self) -> AbstractContextManager[Any]:
        """Return the context in which networks run; losses belong outside, in float32."""
        if self.dtype is None:
            return nullcontext()
        return torch.autocast(self.device.type, dtype=self.dtype)

    def backward(self, loss: Tensor, share: float) -> None:
        """Add the gradient of ``share`` of the mean loss of a micro-batch."""
        scaled: Tensor = self.scaler.scale(loss if share == 1.0 else loss * share)
        scaled.backward()  # type: ignore[no-untyped-call]

    def step(self, optimizer: AdamW, norm: Tensor) -> bool:
        """Step if the gradient's ``norm`` is finite; return whether a step was made.

        If ``lagged`` the answer is always True, and ``settle`` corrects it.
        """
        self.fell_back = False
        if self.lagged:
            self.took = torch.isfinite(norm).float()
        finite = self.lagged or math.isfinite(norm)
        if self.scaler.is_enabled():
            self.scaler.step(optimizer)
            self.scaler.update()
        elif self.lagged:
            # Fused optimisers change nothing where this is 1, as under a scaler.
            optimizer.found_inf = 1.0 - self.took  # type: ignore[attr-defined]
            optimizer.step()
        elif finite:
            optimizer.step_directly()
        if self.lagged:
            self.fetch()
        else:
            self._count(finite)
        return finite

    def fetch(self) -> None:
        """Start copying ``took`` to the host; ``settle`` reads it."""
        self._pending = torch.empty((), pin_memory=self.device.type == "cuda")
        self._pending.copy_(self.took, non_blocking=True)
        if self.device.type == "cuda":
            self._arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._arrived.record()

    def settle(self) -> bool:
        """Account for the last step if it is still pending; return False if it was skipped."""
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
                "the gradient was not finite in %d updates in a row: nothing is learned; resume "
                "from an earlier checkpoint with a lower learner.learning_rate",
                self.max_skipped,
            )
            return
        log.warning(
            "the gradient was not finite in %d updates in a row in %s: continuing in float32; set "
            "learner.precision=float32 to start with it",
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
        self.is_float32_instead = bool(state["float32_instead"])
        if self.is_float32_instead:
            self._use("float32")
        # A scaler's state moves only between runs of the same precision; float32 has none.
        if self.scaler.is_enabled() and state["scaler"]:
            self.scaler.load_state_dict(state["scaler"])
        self.skipped = int(state["skipped"])
        self.skipped_in_a_row = int(state["skipped_in_a_row"])

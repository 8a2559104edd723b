"""Figures of an update: what is put into the metrics of its targets, rows, gradient and ages."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from .accumulation import CLIP_EPSILON
from .bootstrap import Target
from .metrics import Metrics
from .objective import BatchRows
from .replay_rows import DRIVER_NAMES, Column
from .rescaling import restore


def record_targets(target: Target, metrics: Metrics) -> None:
    """Figures of the targets of a micro-batch."""
    count = target.raw.numel()
    metrics.mean("target_mean", target.raw.sum(), count)
    metrics.highest("target_max", target.raw.abs().max())
    below, above = target.below.sum(), target.above.sum()
    metrics.total("target_clip_hits", below + above)
    metrics.mean("target_clip_share", below + above, count)
    metrics.mean("target_clip_low_share", below, count)
    metrics.mean("target_clip_high_share", above, count)
    metrics.mean("effective_n", target.effective_n.sum(), count)


@torch.no_grad()
def record_rows(
    rows: BatchRows, predicted: Tensor, row_loss: Tensor, rescaling: str, metrics: Metrics
) -> None:
    """Figures of ``rows``: predictions ``(B,)`` in units ``rescaling``, losses ``(B,)``."""
    predicted = restore(predicted, rescaling)
    count = predicted.numel()
    metrics.mean("loss", row_loss.sum(), count)
    metrics.mean("q_mean", predicted.sum(), count)
    metrics.highest("q_max", predicted.max())
    metrics.lowest("q_min", predicted.min())
    each = torch.arange(len(DRIVER_NAMES), device=row_loss.device)
    mask = (rows.driver.unsqueeze(1) == each).to(row_loss.dtype)
    # Sums of losses, values and rows of every driver in one product.
    sums = torch.stack((row_loss, predicted, torch.ones_like(predicted))) @ mask
    for i, name in enumerate(DRIVER_NAMES):
        metrics.mean(f"loss_{name}", sums[0, i], sums[2, i])
        metrics.mean(f"q_{name}", sums[1, i], sums[2, i])


def record_step(
    norm: Tensor,
    group_norms: Mapping[str, Tensor],
    took: Tensor | None,
    max_norm: float,
    metrics: Metrics,
) -> None:
    """Figures of a gradient, cut at ``max_norm``; nothing counts where the step was not taken."""
    if took is not None:
        norm = torch.where(took > 0, norm, 0.0)
    metrics.mean("grad_norm", norm)
    metrics.highest("grad_norm_max", norm)
    for name, part in group_norms.items():
        metrics.mean(f"grad_norm_{name}", part if took is None else part.nan_to_num() * took)
    # What the clipping by norm has multiplied the gradient with.
    ratio = (max_norm / (norm + CLIP_EPSILON)).clamp(max=1.0)
    metrics.mean("clip_ratio", ratio)
    metrics.mean("clip_share", (ratio < 1.0).float())


def record_ages(ages: Column, ranks: int, metrics: Metrics) -> None:
    """Figures of the ages ``(B,)`` of an update's rows, in decisions of one of ``ranks``."""
    of_all = torch.as_tensor(ages) * ranks
    metrics.mean("sample_age", of_all.double().mean())
    metrics.highest("sample_age_max", of_all.max())

"""The metrics of an update: of its targets, rows, gradient and ages."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from tempest_agent.agent.devices import Column
from tempest_agent.agent.replay.rows import DRIVER_NAMES

from .metrics import Metrics
from .objective import BatchRows
from .targets import Target

CLIP_EPSILON = 1e-6
"""What ``torch.nn.utils.clip_grad_norm_`` adds to the norm."""

LOSSES = tuple(f"loss_{name}" for name in DRIVER_NAMES)
VALUES = tuple(f"q_{name}" for name in DRIVER_NAMES)
IN_UNITS = (*VALUES, "q_mean", "q_max", "q_min", "target_mean", "target_max")
"""Metrics that count in the learner's unit of reward, as the network's values do."""


def record_targets(target: Target, metrics: Metrics) -> None:
    """Record the targets of a micro-batch."""
    metrics.mean("target_mean", target.raw)
    metrics.highest("target_max", target.raw.abs())
    hits = target.below.sum() + target.above.sum()
    metrics.total("target_clip_hits", hits)
    metrics.mean("target_clip_share", hits, target.raw.numel())
    metrics.mean("target_clip_low_share", target.below)
    metrics.mean("target_clip_high_share", target.above)
    metrics.mean("effective_n", target.effective_n)


@torch.no_grad()
def record_rows(rows: BatchRows, predicted: Tensor, row_loss: Tensor, metrics: Metrics) -> None:
    """Record the predictions ``(B,)`` and losses ``(B,)`` of ``rows``."""
    metrics.mean("loss", row_loss)
    metrics.mean("q_mean", predicted)
    metrics.highest("q_max", predicted)
    metrics.lowest("q_min", predicted)
    each = torch.arange(len(DRIVER_NAMES), device=row_loss.device)
    mask = (rows.driver.unsqueeze(1) == each).to(row_loss.dtype)
    # Sums of losses, values and rows of every driver in one product.
    losses, values, rows_of = torch.stack((row_loss, predicted, torch.ones_like(predicted))) @ mask
    metrics.means(LOSSES, losses, rows_of)
    metrics.means(VALUES, values, rows_of)


def record_step(
    norm: Tensor,
    group_norms: Mapping[str, Tensor],
    took: Tensor | None,
    max_norm: float,
    metrics: Metrics,
) -> None:
    """Record a gradient clipped at ``max_norm``; all zeros where the step was skipped."""
    if took is not None:
        norm = torch.where(took > 0, norm, 0.0)
    metrics.mean("grad_norm", norm)
    metrics.highest("grad_norm_max", norm)
    for name, part in group_norms.items():
        metrics.mean(f"grad_norm_{name}", part if took is None else part.nan_to_num() * took)
    # The factor that clipping multiplied the gradient with.
    ratio = (max_norm / (norm + CLIP_EPSILON)).clamp(max=1.0)
    metrics.mean("clip_ratio", ratio)
    metrics.mean("clip_share", (ratio < 1.0).float())


def record_ages(ages: Column, ranks: int, metrics: Metrics) -> None:
    """Record the ages ``(B,)`` of an update's rows, in steps of one of ``ranks``."""
    of_all = torch.as_tensor(ages) * ranks
    metrics.mean("sample_age", of_all.double().mean())
    metrics.highest("sample_age_max", of_all)


def return_bound(largest_reward: float, gamma: float) -> float:
    """Return the limit of all discounted returns, ``largest_reward / (1 - gamma)``."""
    return abs(largest_reward) / (1.0 - gamma)

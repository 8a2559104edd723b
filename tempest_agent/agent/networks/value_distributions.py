"""What the value head learns: the value itself, or a distribution whose mean is the value.

``huber`` and ``squared`` learn the value.  ``c51`` (Bellemare et al. 2017, "A distributional
perspective on reinforcement learning") learns the probabilities of evenly spaced values whose ends
*are* the target clamp.  ``iqn`` (Dabney et al. 2018, "Implicit quantile networks") learns
quantiles.

A target is given as points ``(B, P)`` with weights ``(B, P)`` that add up to 1; a single point is a
plain target.  All numbers are float32.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from tempest_agent.config import LearnerConfig

COSINES = 64
"""Waves that a quantile's fraction is described with."""


def huber_loss(predicted: Tensor, target: Tensor) -> Tensor:
    """Return the loss that is quadratic up to an error of 1, then linear (Huber 1964)."""
    return functional.smooth_l1_loss(predicted, target, reduction="none")


def squared_loss(predicted: Tensor, target: Tensor) -> Tensor:
    """Return half the squared error."""
    return 0.5 * (predicted - target).square()


def quantile_huber_loss(
    quantiles: Tensor, fractions: Tensor, points: Tensor, weights: Tensor
) -> Tensor:
    """Return the loss ``(B,)`` of quantiles ``(B, D)`` at ``fractions`` ``(B, D)`` (IQN).

    The mean over the learned quantiles, where the paper has the sum: the same minimum, but
    gradients that do not grow with their number, so that clipping and imitation weigh as much as
    with the other losses.
    """
    error = points.unsqueeze(1) - quantiles.unsqueeze(2)
    size = huber_loss(error, torch.zeros_like(error))
    lean = (fractions.unsqueeze(2) - (error.detach() < 0).to(error.dtype)).abs()
    return (lean * size * weights.unsqueeze(1)).sum(dim=2).mean(dim=1)


def project(points: Tensor, weights: Tensor, limit: float, bins: int) -> Tensor:
    """Return probabilities ``(B, bins)`` of values from ``-limit`` to ``limit`` (C51).

    The weight of each point ``(B, P)`` is shared between the two values beside it.
    """
    place = (points.clamp(-limit, limit) + limit) / (2.0 * limit / (bins - 1))
    lower = place.floor().clamp(max=bins - 2)
    upper_part = place - lower
    index = lower.to(torch.int64)
    wanted = torch.zeros(points.shape[0], bins, device=points.device)
    wanted.scatter_add_(1, index, weights * (1.0 - upper_part))
    return wanted.scatter_add_(1, index + 1, weights * upper_part)


class Distribution:
    """The plain value; the base of the others.

    Attributes:
        numbers: numbers of one value, D.
        head_numbers: how many of them the value head gives at once.
        is_plain: whether the number is the value.
        step: difference between two values that have a probability; 0 if all values have one.
    """

    numbers = 1
    head_numbers = 1
    is_plain = True
    step = 0.0

    def __init__(self, learner: LearnerConfig) -> None:
        self.learner = learner

    def fraction_layer(self, width: int) -> FractionLayer | None:
        """Return the layer that adds a quantile's fraction to an encoding, None without one."""
        return None

    def mean(self, detail: Tensor) -> Tensor:
        """Return the value ``(...)`` of numbers ``(..., D)``."""
        return detail.squeeze(-1)

    def points(self, detail: Tensor) -> tuple[Tensor, Tensor]:
        """Return numbers ``(B, D)`` as a target's points and weights, ``(B, P)`` each."""
        return detail, torch.ones_like(detail)

    def loss(
        self, detail: Tensor, points: Tensor, weights: Tensor, fractions: Tensor | None
    ) -> Tensor:
        """Return the loss ``(B,)`` of numbers ``(B, D)`` against a target."""
        loss = squared_loss if self.learner.loss == "squared" else huber_loss
        return loss(detail.squeeze(1), (points * weights).sum(dim=1))

    def draw_fractions(self, rows: int, device: torch.device) -> Tensor | None:
        """Return random fractions ``(rows, D)`` for a training pass; None without any."""
        return None


class Categorical(Distribution):
    """``c51``: logits over evenly spaced values."""

    is_plain = False

    def __init__(self, learner: LearnerConfig) -> None:
        super().__init__(learner)
        self.numbers = self.head_numbers = learner.value_bins
        self.limit = learner.target_clip
        self.step = 2.0 * self.limit / (self.numbers - 1)

    def centres(self, device: torch.device) -> Tensor:
        """Return the values that have a probability, ``(D,)``."""
        return torch.linspace(-self.limit, self.limit, self.numbers, device=device)

    def mean(self, detail: Tensor) -> Tensor:
        return torch.softmax(detail, dim=-1) @ self.centres(detail.device)

    def points(self, detail: Tensor) -> tuple[Tensor, Tensor]:
        chances = torch.softmax(detail, dim=1)
        return self.centres(detail.device).expand_as(chances), chances

    def loss(
        self, detail: Tensor, points: Tensor, weights: Tensor, fractions: Tensor | None
    ) -> Tensor:
        wanted = project(points, weights, self.limit, self.numbers)
        return -(wanted * torch.log_softmax(detail, dim=1)).sum(dim=1)


class Quantiles(Distribution):
    """``iqn``: the value's quantiles at any fractions.

    Quantiles that play or make targets lie at even fractions, the paper's at random ones.
    """

    is_plain = False

    def __init__(self, learner: LearnerConfig) -> None:
        super().__init__(learner)
        self.numbers = learner.quantile_samples

    def fraction_layer(self, width: int) -> FractionLayer:
        return FractionLayer(width, self.numbers)

    def mean(self, detail: Tensor) -> Tensor:
        return detail.mean(dim=-1)

    def points(self, detail: Tensor) -> tuple[Tensor, Tensor]:
        return detail, torch.full_like(detail, 1.0 / detail.shape[1])

    def draw_fractions(self, rows: int, device: torch.device) -> Tensor:
        return torch.rand(rows, self.numbers, device=device)

    def loss(
        self, detail: Tensor, points: Tensor, weights: Tensor, fractions: Tensor | None
    ) -> Tensor:
        if fractions is None:
            raise ValueError("the quantile loss needs the fractions of its predictions")
        return quantile_huber_loss(detail, fractions, points, weights)


class FractionLayer(nn.Module):
    """Combines an encoding ``(B, H)`` with fractions ``(B, T)``: ``(B, T, H)``."""

    def __init__(self, width: int, count: int) -> None:
        super().__init__()
        self.linear = nn.Linear(COSINES, width)
        self.count = count

    def forward(self, latent: Tensor, fractions: Tensor | None = None) -> Tensor:
        if fractions is None:
            middles = torch.arange(self.count, device=latent.device, dtype=torch.float32) + 0.5
            fractions = (middles / self.count).unsqueeze(0)
        waves = torch.arange(1, COSINES + 1, device=latent.device, dtype=torch.float32)
        described = torch.cos(math.pi * waves * fractions.unsqueeze(2))
        return latent.unsqueeze(1) * torch.relu(
            self.linear(described.to(self.linear.weight.dtype))
        ).to(latent.dtype)


_KINDS: dict[str, type[Distribution]] = {
    "huber": Distribution,
    "squared": Distribution,
    "c51": Categorical,
    "iqn": Quantiles,
}


def make_distribution(learner: LearnerConfig) -> Distribution:
    """Return what ``learner.loss`` learns."""
    return _KINDS[learner.loss](learner)

"""What the value head learns: the value itself, or a distribution whose mean is the value.

``huber`` and ``squared`` learn the value.  ``c51`` (Bellemare et al. 2017, "A distributional
perspective on reinforcement learning") learns the probabilities of evenly spaced values whose ends
*are* the target clamp.
``iqn`` (Dabney et al. 2018, "Implicit quantile networks") learns quantiles.  Its loss is the mean
over the quantiles that are learned, where the paper adds them up: the same minimum, but gradients
that do not grow with their number, so that clipping and imitation weigh as much as with the other
losses.  Quantiles that play or make targets lie at even fractions, the paper's at random ones.

A target is given as points ``(B, P)`` with weights ``(B, P)`` that add up to 1; a single point is a
plain target.  Everything here is float32.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from tempest_agent.config import LearnerConfig

from .losses import VALUE_LOSSES

COSINES = 64
"""Waves that a quantile's fraction is described with."""


class Distribution:
    """The plain value; the base of the others.

    Attributes:
        numbers: numbers of one value, D.
        head_numbers: how many of them the value head gives at once.
        is_plain: whether the number is the value.
        step: difference between two values that have a probability; 0 where all values can be said.
    """

    numbers = 1
    head_numbers = 1
    is_plain = True
    step = 0.0

    def __init__(self, learner: LearnerConfig) -> None:
        self.learner = learner

    def fraction_layer(self, width: int) -> FractionLayer | None:
        """What brings a quantile's fraction into an encoding of ``width``, where it has one."""
        return None

    def mean(self, detail: Tensor) -> Tensor:
        """The value ``(...)`` of numbers ``(..., D)``."""
        return detail.squeeze(-1)

    def points(self, detail: Tensor) -> tuple[Tensor, Tensor]:
        """Numbers ``(B, D)`` as a target's points and weights, ``(B, P)`` each."""
        return detail, torch.ones_like(detail)

    def loss(
        self, detail: Tensor, points: Tensor, weights: Tensor, fractions: Tensor | None
    ) -> Tensor:
        """Loss per row ``(B,)`` of numbers ``(B, D)`` against a target."""
        target = (points * weights).sum(dim=1)
        return VALUE_LOSSES[self.learner.loss](detail.squeeze(1), target)

    def draw_fractions(self, rows: int, device: torch.device) -> Tensor | None:
        """Random fractions ``(rows, D)`` for a training pass; None where there are none."""
        return None


class Categorical(Distribution):
    """``c51``: logits over evenly spaced values; a target's points are shared among them."""

    is_plain = False

    def __init__(self, learner: LearnerConfig) -> None:
        super().__init__(learner)
        self.numbers = self.head_numbers = learner.value_bins
        self.limit = learner.target_clip
        self.step = 2.0 * self.limit / (self.numbers - 1)

    def centres(self, device: torch.device) -> Tensor:
        """The values that have a probability, ``(D,)``."""
        return torch.linspace(-self.limit, self.limit, self.numbers, device=device)

    def mean(self, detail: Tensor) -> Tensor:
        return torch.softmax(detail, dim=-1) @ self.centres(detail.device)

    def loss(
        self, detail: Tensor, points: Tensor, weights: Tensor, fractions: Tensor | None
    ) -> Tensor:
        wanted = self.spread(points, weights)
        return -(wanted * torch.log_softmax(detail, dim=1)).sum(dim=1)

    def points(self, detail: Tensor) -> tuple[Tensor, Tensor]:
        chances = torch.softmax(detail, dim=1)
        return self.centres(detail.device).expand_as(chances), chances

    def spread(self, points: Tensor, weights: Tensor) -> Tensor:
        """Share each point of a target between the two bins beside it: probabilities ``(B, D)``."""
        place = (points.clamp(-self.limit, self.limit) + self.limit) / self.step
        lower = place.floor().clamp(max=self.numbers - 2)
        upper_part = place - lower
        index = lower.to(torch.int64)
        wanted = torch.zeros(points.shape[0], self.numbers, device=points.device)
        wanted.scatter_add_(1, index, weights * (1.0 - upper_part))
        return wanted.scatter_add_(1, index + 1, weights * upper_part)


class Quantiles(Distribution):
    """``iqn``: the value's quantiles at any fractions."""

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
        error = points.unsqueeze(1) - detail.unsqueeze(2)
        size = functional.smooth_l1_loss(error, torch.zeros_like(error), reduction="none")
        lean = (fractions.unsqueeze(2) - (error.detach() < 0).to(error.dtype)).abs()
        return (lean * size * weights.unsqueeze(1)).sum(dim=2).mean(dim=1)


class FractionLayer(nn.Module):
    """An encoding ``(B, H)`` seen at fractions ``(B, T)``: ``(B, T, H)``."""

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
    """What ``learner.loss`` learns."""
    return _KINDS[learner.loss](learner)

"""An update of any layer by ``clip_and_step``, from losses that a test makes itself."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tempest_agent.agent.learner.adamw import AdamW
from tempest_agent.agent.learner.learner import clip_and_step
from tempest_agent.agent.learner.mixed_precision import MixedPrecision


class SGD(torch.optim.SGD):
    """Steps along the gradient, which shows what was clipped."""

    def step_directly(self) -> None:
        self.step()


class Stepping:
    """Steps of ``layer`` by ``optimizer``."""

    def __init__(
        self,
        layer: nn.Module,
        optimizer: AdamW | SGD,
        max_norm: float,
        precision: str,
        max_skipped: int = 20,
    ) -> None:
        self.optimizer, self.max_norm = optimizer, max_norm
        self.parameters = list(layer.parameters())
        self.precision = MixedPrecision(precision, torch.device("cpu"), max_skipped)
        self.norm = torch.zeros(())

    def update(self, *losses: tuple[Tensor, float]) -> bool:
        """Make a step from losses with their shares; return whether one was made."""
        for parameter in self.parameters:
            parameter.grad = None
        for loss, share in losses:
            self.precision.backward(loss, share)
        groups = {"all": self.parameters}
        step = clip_and_step(self.optimizer, groups, self.max_norm, self.precision)
        self.norm = step.norm
        return step.made

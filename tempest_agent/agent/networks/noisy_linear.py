"""A linear layer whose weights carry noise of learned strength.

Fortunato et al. 2018, "Noisy networks for exploration": factorised Gaussian noise, drawn anew for
every pass in training mode, the same for all rows of the pass; in evaluation mode the weights are
their means.  What differs from the paper: only the value head is noisy, not the layers before it;
the target network judges with its means instead of a noise of its own; and random actions go on
beside the noise, unless the rates of ``exploration`` are set to 0.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

START = 0.5
"""First strength of the noise, before division by the root of the number of inputs: half of what
the first weights are drawn within."""


class NoisyLinear(nn.Linear):
    """``nn.Linear`` with noise on weights and biases."""

    def __init__(self, num_inputs: int, num_outputs: int) -> None:
        super().__init__(num_inputs, num_outputs)
        strength = START / math.sqrt(num_inputs)
        self.weight_noise = nn.Parameter(torch.full((num_outputs, num_inputs), strength))
        self.bias_noise = nn.Parameter(torch.full((num_outputs,), strength))

    def forward(self, inputs: Tensor) -> Tensor:
        if not self.training:
            return super().forward(inputs)
        before = _draw(self.in_features, self.weight)
        after = _draw(self.out_features, self.weight)
        weight = self.weight + self.weight_noise * after.unsqueeze(1) * before
        return functional.linear(inputs, weight, self.bias + self.bias_noise * after)


def _draw(count: int, like: Tensor) -> Tensor:
    noise = torch.randn(count, device=like.device, dtype=like.dtype)
    return noise.sign() * noise.abs().sqrt()

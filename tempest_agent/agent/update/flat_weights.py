"""All weights of a network in one row of memory, so that an optimiser step is one pass over it.

A fused optimiser gives each block of a GPU a long piece of one tensor, which leaves most of a large
GPU idle if the network is small.  Here the weights, both moments, the average and the copy in the
arithmetic of the updates lie side by side, in the same order, and the networks' and the optimiser's
own tensors are views of them.  The step is AdamW's (Loshchilov & Hutter 2019,
"Decoupled weight decay regularization").
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from tempest_agent.agent.learner.learner import Learner

SLOT = 64
"""Weights start at multiples of this, which suits every access."""


class FlatStep(NamedTuple):
    """Result of a step."""

    took: Tensor
    """1.0, or 0.0 if the step was skipped because a gradient is not finite."""
    norm: Tensor
    """Norm of the gradient before clipping."""
    group_norms: dict[str, Tensor]


class FlatWeights:
    """The weights, moments and average of ``learner``, moved into rows.

    Its fast copy must not be the network itself.
    """

    def __init__(self, learner: Learner) -> None:
        self.max_norm = learner.learner.max_grad_norm
        self._settings = learner.optimizer.param_groups[0]
        groups = {name: list(part) for name, part in learner.online.parts().items()}
        if not learner.online.proposes:
            # It has no gradient and is not stepped.
            groups["spinner"] = []
        owners = [p for group in groups.values() for p in group]
        place = {id(p): i for i, p in enumerate(learner.online.parameters())}
        order = [place[id(p)] for p in owners]
        whole = list(learner.fast_online.network.parameters())
        self.copied = [whole[i] for i in order]
        """The copy's weights in the order of the row, to be differentiated."""
        self.slots = [-(-p.numel() // SLOT) * SLOT for p in self.copied]
        self.groups: dict[str, tuple[int, int]] = {}
        begin = 0
        for name, group in groups.items():
            members = {id(p) for p in group}
            length = sum(s for s, p in zip(self.slots, owners, strict=True) if id(p) in members)
            self.groups[name] = (begin, begin + length)
            begin += length
        device = learner.device
        self.online, self.average, self.first, self.second = torch.zeros(4, begin, device=device)
        self.copy = torch.zeros(begin, device=device, dtype=self.copied[0].dtype)
        followers = list(learner.followers.average.parameters())
        states = learner.optimizer.state
        self.steps = torch.zeros((), device=device)
        at = 0
        for own, i, copied, slot in zip(owners, order, self.copied, self.slots, strict=True):
            state = states[own]
            self.steps = torch.as_tensor(state.get("step", self.steps), device=device)
            window = _Window(at, copied.shape, own.shape)
            own.data = window.move(self.online, own.data)
            followers[i].data = window.move(self.average, followers[i].data)
            copied.data = window.whole(self.copy)
            for row, name in ((self.first, "exp_avg"), (self.second, "exp_avg_sq")):
                state[name] = window.move(row, state.get(name))
            at += slot
        self.steps = self.steps.clone().float()
        for own in owners:
            states[own]["step"] = self.steps
        self.copy.copy_(self.online)
        for copied in self.copied:
            copied.requires_grad_(True)

    @property
    def size(self) -> int:
        """Return the length of a row."""
        return len(self.online)

    def step(self, gradients: Tensor, rate: Tensor, average_share: Tensor) -> FlatStep:
        """Clip and step, move the average, and refresh the copy.

        Args:
            gradients: of the micro-batches, ``(k, size)``, to be added up.
            rate: step size, ``()``.
            average_share: share of the new weights in the average, ``()``.
        """
        settings = self._settings
        (beta1, beta2), eps = settings["betas"], settings["eps"]
        gradient = gradients.float().sum(dim=0)
        squares = gradient.square()
        sums = {name: squares[first:last].sum() for name, (first, last) in self.groups.items()}
        norm = torch.stack(list(sums.values())).sum().sqrt()
        finite = torch.isfinite(norm)
        took = finite.float()
        gradient = gradient * (self.max_norm / (norm + 1e-6)).clamp(max=1.0)
        steps = self.steps + took
        first = torch.lerp(self.first, gradient, 1.0 - beta1)
        second = self.second * beta2 + gradient.square() * (1.0 - beta2)
        correction = (1.0 - beta2**steps).sqrt()
        ways = first / (second.sqrt() / correction + eps)
        decayed = self.online * (1.0 - rate * settings["weight_decay"])
        online = torch.where(finite, decayed - rate / (1.0 - beta1**steps) * ways, self.online)
        self.first.copy_(torch.where(finite, first, self.first))
        self.second.copy_(torch.where(finite, second, self.second))
        self.average.add_((online - self.average) * (took * average_share))
        self.online.copy_(online)
        self.copy.copy_(online)
        self.steps.copy_(steps)
        return FlatStep(took, norm, {name: total.sqrt() for name, total in sums.items()})


class _Window(NamedTuple):
    """A weight's place in a row, and its shape there and in its network."""

    begin: int
    full: torch.Size
    own: torch.Size

    def whole(self, row: Tensor) -> Tensor:
        return row[self.begin : self.begin + self.full.numel()].view(self.full)

    def move(self, row: Tensor, value: Tensor | None) -> Tensor:
        """Write ``value`` into the window, if given; return the network's part of it."""
        part = self.whole(row)[tuple(map(slice, self.own))]
        if value is not None:
            part.copy_(value)
        return part

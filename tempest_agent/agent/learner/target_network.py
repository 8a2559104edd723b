"""The followers of the online network: the target network and the average of its weights.

The target network moves by a share ``tau`` towards the online weights every ``interval`` updates
(``tau=1`` is the periodic copy of Mnih et al. 2015, a small ``tau`` with interval 1 the soft update
of Lillicrap et al. 2016).  The average (EMA) moves at every update and plays in evaluation: single
snapshots of one run differ by a factor of up to 3.
"""

from __future__ import annotations

import copy
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

Network = TypeVar("Network", bound=nn.Module)


class Followers(Generic[Network]):
    """Target and averaged copies of ``online``.

    Args:
        online: the network that is trained.
        tau: share of the online weights in a move.
        interval: updates between two moves of the target.
        ema_decay: decay of the average per update.

    Attributes:
        target_age: mean age of the target's weights in updates: each move keeps the share
            ``1 - tau`` of it.
    """

    def __init__(self, online: Network, tau: float, interval: int, ema_decay: float) -> None:
        self.online = online
        self.tau = tau
        self.interval = interval
        self.ema_decay = ema_decay
        self.target = copy.deepcopy(online).requires_grad_(False)
        self.target_age = self._age_before = 0.0
        self.average = copy.deepcopy(online).requires_grad_(False)
        # Looked up once: walking through the layers takes longer than moving small ones.
        self._online, self._target, self._average = (
            weight_tensors(network) for network in (online, self.target, self.average)
        )

    def average_share(self, updates: int) -> float:
        """Return the share of the online weights in the average's move after update ``updates``."""
        # Early on the average of few updates is a plain mean, not the initial weights.
        return 1.0 - min(self.ema_decay, (1.0 + updates) / (10.0 + updates))

    @torch.no_grad()
    def move_average(self, share: float | Tensor, took: Tensor | None = None) -> None:
        """Move the average by ``share`` towards the online weights.

        ``took``: 1.0, or 0.0 if the update was skipped and nothing is to move, as a tensor on the
        device (which nobody has to wait for).
        """
        _approach(self._average, self._online, share, took)

    @torch.no_grad()
    def move_target(self, updates: int, took: Tensor | None = None) -> bool:
        """Move the target if scheduled after ``updates`` (from 1); return whether it moved."""
        moves = updates % self.interval == 0
        self._age_before = self.target_age
        self.target_age += 1.0
        if moves:
            self.target_age *= 1.0 - self.tau
            _approach(self._target, self._online, self.tau, took)
        return moves

    def take_back(self) -> None:
        """Roll back the age: the last update turned out to have been skipped."""
        self.target_age = self._age_before


def _approach(
    followers: list[Tensor],
    online: list[Tensor],
    share: float | Tensor,
    took: Tensor | None,
) -> None:
    if took is None:
        torch._foreach_lerp_(followers, online, float(share))
        return
    # There is no lerp with one weight on the device for all of a list.
    ways = torch._foreach_sub(online, followers)
    torch._foreach_mul_(ways, took * share)
    torch._foreach_add_(followers, ways)


def weight_tensors(network: nn.Module) -> list[Tensor]:
    """Return the floating point parameters and buffers of ``network``, in a fixed order."""
    # Tables of whole numbers are constants, not weights.
    both = (*network.parameters(), *network.buffers())
    return [tensor for tensor in both if tensor.is_floating_point()]

"""From a learner's networks to a snapshot, and from a snapshot to an actor's network."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from tempest_agent.agent.learner.target_network import weight_tensors

from .snapshot import Snapshot

if TYPE_CHECKING:
    from tempest_agent.agent.learner.learner import Learner


def arithmetic(snapshot: Snapshot) -> torch.dtype | None:
    """What the learner acted in: the ``dtype`` of an ``InferenceCopy``."""
    if snapshot.dtype is None:
        return None
    dtype: torch.dtype = getattr(torch, snapshot.dtype)
    return dtype


@torch.no_grad()
def pack(networks: Iterable[nn.Module]) -> NDArray[np.float32]:
    """The values of all ``networks`` one after the other, float32 ``(P,)``, a copy."""
    flat = [each.reshape(-1).float() for network in networks for each in weight_tensors(network)]
    # One tensor on the device first: one transfer, and nothing can move between its parts.
    values: NDArray[np.float32] = torch.cat(flat).cpu().numpy()
    return values


@torch.no_grad()
def unpack(values: NDArray[np.float32], network: nn.Module) -> None:
    """Fill ``network`` with the ``values`` ``(P,)`` that ``pack`` took from one of its form.

    Raises:
        ValueError: the values are those of a network of another form.
    """
    own = weight_tensors(network)
    size = sum(each.numel() for each in own)
    if values.size != size:
        raise ValueError(f"the network has {size} values, the snapshot {values.size}")
    start = 0
    for each in own:
        part = values[start : start + each.numel()]
        # Written through numpy, which can read an array that is read-only without a warning.
        if each.device.type == "cpu" and each.dtype is torch.float32:
            np.copyto(each.detach().numpy(), part.reshape(each.shape))
        else:
            each.copy_(torch.from_numpy(part.copy()).reshape(each.shape))
        start += each.numel()


class WeightsPublisher:
    """Makes the snapshots of one learner and hands them on.

    Args:
        learner: whose weights.
        publish: takes a snapshot to where the actors find it, such as ``ActorPool.publish``.
        interval: updates from one version to the next in ``publish_if_due``.
    """

    def __init__(
        self, learner: Learner, publish: Callable[[Snapshot], None], interval: int = 1
    ) -> None:
        self._learner, self._publish, self._interval = learner, publish, interval
        self.version = 0
        """The newest; 0 before the first."""
        self._updates = 0

    def publish(self) -> None:
        """Publish the weights as they are now."""
        learner = self._learner
        self.version += 1
        self._updates = learner.updates
        dtype = learner.precision.dtype
        values = pack((learner.online, learner.followers.target, learner.followers.average))
        name = None if dtype is None else str(dtype).removeprefix("torch.")
        self._publish(Snapshot.of(self.version, learner.updates, name, values))

    def publish_if_due(self) -> bool:
        """Publish if nothing has been yet, or ``interval`` updates after the last; True if so.

        A learner that went back to older weights has other ones too, however few its updates.
        """
        since = self._learner.updates - self._updates
        due = self.version == 0 or since >= self._interval or since < 0
        if due:
            self.publish()
        return due

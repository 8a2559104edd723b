"""Pack a learner's networks into snapshots, and unpack them into an actor's network."""

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
    """Return the learner's arithmetic, as the ``dtype`` of an ``InferenceCopy``."""
    if snapshot.dtype is None:
        return None
    dtype: torch.dtype = getattr(torch, snapshot.dtype)
    return dtype


@torch.no_grad()
def pack(networks: Iterable[nn.Module]) -> NDArray[np.float32]:
    """Return a copy of the values of all ``networks``, concatenated, float32 ``(P,)``."""
    flat = [each.reshape(-1).float() for network in networks for each in weight_tensors(network)]
    # Concatenated on the device: one transfer, and all parts of the same moment.
    values: NDArray[np.float32] = torch.cat(flat).cpu().numpy()
    return values


@torch.no_grad()
def unpack(values: NDArray[np.float32], network: nn.Module) -> None:
    """Fill ``network`` with ``values`` ``(P,)`` that ``pack`` took from one of the same shape.

    Raises:
        ValueError: the number of values differs.
    """
    own = weight_tensors(network)
    size = sum(each.numel() for each in own)
    if values.size != size:
        raise ValueError(f"the network has {size} values, the snapshot {values.size}")
    start = 0
    for each in own:
        part = values[start : start + each.numel()]
        # NumPy reads a read-only array without a warning.
        if each.device.type == "cpu" and each.dtype is torch.float32:
            np.copyto(each.detach().numpy(), part.reshape(each.shape))
        else:
            each.copy_(torch.from_numpy(part.copy()).reshape(each.shape))
        start += each.numel()


class WeightsPublisher:
    """Makes snapshots of one learner and publishes them.

    Args:
        learner: whose weights.
        publish: makes a snapshot available to the actors, such as ``ActorPool.publish``.
        interval: updates between two versions in ``publish_if_due``.
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
        """Publish the first version, or one ``interval`` updates after the last; return whether.

        A learner that was rolled back has other weights too, and fewer updates than before.
        """
        since = self._learner.updates - self._updates
        due = self.version == 0 or since >= self._interval or since < 0
        if due:
            self.publish()
        return due

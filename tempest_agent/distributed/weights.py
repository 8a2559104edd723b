"""The learner's weights as actors get them: one immutable, numbered snapshot, never a mixture.

Online, target and averaged network travel together in one array with a checksum over everything,
so that a reader can prove that what it sees was written by one ``WeightsPublisher.publish``.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from tempest_agent.agent.target_network import weight_tensors

if TYPE_CHECKING:
    from tempest_agent.agent.learner import Learner

NETWORKS = ("online", "target", "average")
"""The networks of a snapshot, in the order of its values."""


class MixedWeightsError(Exception):
    """A snapshot is not the one that was published."""


@dataclass(frozen=True)
class Snapshot:
    """One version of the learner's weights.

    Its array is read-only; processes of one machine share it.

    Attributes:
        version: 1 for the first, one more for every later one.
        updates: updates that the learner had made.
        dtype: arithmetic that the learner acts in, ``"bfloat16"`` or ``"float16"``; None is
            float32.
        values: float32 ``(3 P,)``: the P floating point parameters and buffers of each of
            ``NETWORKS``.
        crc: CRC-32 of all of the above.
    """

    version: int
    updates: int
    dtype: str | None
    values: NDArray[np.float32]
    crc: int

    @classmethod
    def of(
        cls, version: int, updates: int, dtype: str | None, values: NDArray[np.float32]
    ) -> Snapshot:
        """A snapshot with the checksum that belongs to it; ``values`` becomes read-only."""
        values.flags.writeable = False
        return cls(version, updates, dtype, values, _crc(version, updates, dtype, values))

    def check(self) -> None:
        """Nothing if this is what was published.

        Raises:
            MixedWeightsError: it is not: parts of two versions, or memory that was overwritten.
        """
        found = _crc(self.version, self.updates, self.dtype, self.values)
        if found != self.crc:
            raise MixedWeightsError(
                f"weights of version {self.version} have the checksum {found:08x}, not "
                f"{self.crc:08x} as published"
            )

    def network(self, name: str) -> NDArray[np.float32]:
        """The values ``(P,)`` of one of ``NETWORKS``, without copying."""
        size = self.values.size // len(NETWORKS)
        place = NETWORKS.index(name)
        return self.values[place * size : (place + 1) * size]

    @property
    def torch_dtype(self) -> torch.dtype | None:
        """``dtype`` as torch has it."""
        if self.dtype is None:
            return None
        dtype: torch.dtype = getattr(torch, self.dtype)
        return dtype


def _crc(version: int, updates: int, dtype: str | None, values: NDArray[np.float32]) -> int:
    head = f"{version} {updates} {dtype}".encode()
    return zlib.crc32(values.view(np.uint8).data, zlib.crc32(head))


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
        dtype = learner.accumulator.dtype
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

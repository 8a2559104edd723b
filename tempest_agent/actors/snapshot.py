"""The learner's weights as actors get them: immutable numbered snapshots.

Online, target and averaged network are sent in one array with a checksum over everything, so that a
reader can verify that all parts were published together.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NETWORKS = ("online", "target", "average")
"""The networks of a snapshot, in the order of its values."""


class MixedWeightsError(Exception):
    """A snapshot is not what was published."""


@dataclass(frozen=True)
class Snapshot:
    """One version of the learner's weights.

    Its array is read-only and shared by the processes of one machine.

    Attributes:
        version: from 1, increasing.
        updates: updates that the learner had made.
        dtype: the learner's arithmetic when it acts, ``"bfloat16"`` or ``"float16"``; None is
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
        """Return a snapshot with its checksum; ``values`` becomes read-only."""
        values.flags.writeable = False
        return cls(version, updates, dtype, values, _crc(version, updates, dtype, values))

    def check(self) -> None:
        """Check that this is what was published.

        Raises:
            MixedWeightsError: parts of two versions, or overwritten memory.
        """
        found = _crc(self.version, self.updates, self.dtype, self.values)
        if found != self.crc:
            raise MixedWeightsError(
                f"weights of version {self.version} have the checksum {found:08x}, not "
                f"{self.crc:08x} as published"
            )

    def network(self, name: str) -> NDArray[np.float32]:
        """Return the values ``(P,)`` of one of ``NETWORKS``, without copying."""
        size = self.values.size // len(NETWORKS)
        place = NETWORKS.index(name)
        return self.values[place * size : (place + 1) * size]


def _crc(version: int, updates: int, dtype: str | None, values: NDArray[np.float32]) -> int:
    head = f"{version} {updates} {dtype}".encode()
    return zlib.crc32(values.view(np.uint8).data, zlib.crc32(head))

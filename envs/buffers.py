"""``BufferPool``: large arrays that are used again once nobody holds them.

A new array of some megabytes costs more than filling it, because the operating system hands its
memory out page by page.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

_KEPT = 3
# Buffers kept for later: a loop holds the observation before and after a step, and one more.


class BufferPool:
    """Arrays of one shape.

    ``take()`` gives an array as ``np.empty`` does: nobody else ever writes into it.  Its memory
    comes back when the array, its views and whatever else shares its memory are all gone.
    """

    def __init__(self, shape: tuple[int, ...], dtype: DTypeLike) -> None:
        self._shape = shape
        self._dtype = np.dtype(dtype)
        self._free: deque[NDArray[Any]] = deque(maxlen=_KEPT)

    def take(self) -> NDArray[Any]:
        """An array with arbitrary contents."""
        try:
            buffer = self._free.pop()
        except IndexError:
            buffer = np.empty(self._shape, self._dtype)
        return np.asarray(_Lease(buffer, self._free))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_free": deque(maxlen=_KEPT)}


class _Lease:
    """Owner, for NumPy, of the memory of an array that was given out: it lives as long."""

    __slots__ = ("_buffer", "_free")

    def __init__(self, buffer: NDArray[Any], free: deque[NDArray[Any]]) -> None:
        self._buffer = buffer
        self._free = free

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._buffer.__array_interface__

    def __del__(self) -> None:
        self._free.append(self._buffer)

"""``BufferPool``: large arrays that are used again once nobody holds them.

A new array of some megabytes costs more than filling it, because the operating system hands its
memory out page by page.
"""

from __future__ import annotations

from collections import deque
from sys import getrefcount
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

_KEPT = 3
# Buffers kept for later: a loop holds the observation before and after a step, and one more.

_WATCHED = 64
# Buffers in use whose return is awaited: as many steps back a loop may hold observations.


class BufferPool:
    """Arrays of one shape.

    ``take()`` gives an array as ``np.empty`` does: nobody else ever writes into it.  Its memory is
    used again when the array, its views and whatever else shares its memory are all gone.
    """

    def __init__(self, shape: tuple[int, ...], dtype: DTypeLike) -> None:
        self._shape = shape
        self._dtype = np.dtype(dtype)
        self._buffers: deque[NDArray[Any]] = deque([np.empty(0)], maxlen=_WATCHED)
        # Whatever shares a buffer's memory refers to the buffer, for NumPy lets a view of a view
        # refer to the memory's owner.
        self._alone = getrefcount(self._buffers[0])
        self._buffers.clear()

    def take(self) -> NDArray[Any]:
        """Return an array with arbitrary contents."""
        buffers = self._buffers
        # In the order in which they were given out: the oldest one comes back first.
        if not buffers or getrefcount(buffers[0]) != self._alone:
            self._bring_one_forward()
        elif len(buffers) > _KEPT:
            self._give_back()
        array = buffers[0].view()
        buffers.rotate(-1)
        return array

    def _bring_one_forward(self) -> None:
        buffers = self._buffers
        for at in range(1, len(buffers)):
            if getrefcount(buffers[at]) == self._alone:
                buffer = buffers[at]
                del buffers[at]
                break
        else:
            buffer = np.empty(self._shape, self._dtype)
            if len(buffers) == _WATCHED:
                buffers.popleft()
        buffers.appendleft(buffer)

    def _give_back(self) -> None:
        """Part with free buffers where more than a few are kept; the first is free."""
        buffers = self._buffers
        while len(buffers) > _KEPT and getrefcount(buffers[1]) == self._alone:
            del buffers[1]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_buffers": deque(maxlen=_WATCHED)}

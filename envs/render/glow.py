"""The halo of a vector tube, and the grey picture for observations."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

_GREY = np.array((0.38, 0.34, 0.28), np.float32)


class Glow:
    """Adds a soft halo to pictures of one size, in place.

    The halo is a blur of the picture at a quarter of its size: a wide blur at full size would
    cost ten times as much and look the same.  The buffers are kept, because the page faults of
    fresh ones cost more than the arithmetic.
    """

    def __init__(self, width: int, height: int, gain: float = 1.7) -> None:
        self._gain = gain
        shrunk = (max(height // 4, 1), max(width // 4, 1), 3)
        self._small = np.empty(shrunk, np.uint8)
        self._soft = np.empty(shrunk, np.uint8)
        self._halo = np.empty((height, width, 3), np.uint8)

    def apply(self, image: NDArray[np.uint8]) -> None:
        """Brighten ``image`` (height, width, 3) by its halo."""
        small, soft, halo = self._small, self._soft, self._halo
        cv2.resize(image, small.shape[1::-1], dst=small, interpolation=cv2.INTER_AREA)
        cv2.GaussianBlur(small, (5, 5), 0, dst=soft)
        cv2.convertScaleAbs(soft, dst=small, alpha=self._gain)
        cv2.resize(small, halo.shape[1::-1], dst=halo, interpolation=cv2.INTER_LINEAR)
        cv2.add(image, halo, dst=image)


def grayscale(rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Grey picture (height, width) of an RGB picture (height, width, 3).

    The three colours count almost alike.  With the usual luma weights the blue well of the
    first sixteen levels would have a tenth of full brightness and be lost to an observer.
    """
    return np.asarray(cv2.transform(rgb, _GREY[None, :]), np.uint8)

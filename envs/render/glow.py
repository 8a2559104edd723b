"""The halo of a vector tube, and the grey picture for observations."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

_GREY = np.array((0.38, 0.34, 0.28), np.float32)


def add_glow(image: NDArray[np.uint8], gain: float = 2.2) -> NDArray[np.uint8]:
    """``image`` with a soft halo around every line, a new array of the same shape.

    The halo is a blur of the picture at a quarter of its size: a wide blur at full size would
    cost ten times as much and look the same.
    """
    height, width = image.shape[:2]
    small = cv2.resize(
        image, (max(width // 4, 1), max(height // 4, 1)), interpolation=cv2.INTER_AREA
    )
    small = cv2.GaussianBlur(small, (5, 5), 0)
    small = cv2.convertScaleAbs(small, alpha=gain)
    halo = cv2.resize(small, (width, height), interpolation=cv2.INTER_LINEAR)
    return np.asarray(cv2.add(image, halo), np.uint8)


def grayscale(rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Grey picture (height, width) of an RGB picture (height, width, 3).

    The three colours count almost alike.  With the usual luma weights the blue well of the
    first sixteen levels would have a tenth of full brightness and be lost to an observer.
    """
    return np.asarray(cv2.transform(rgb, _GREY[None, :]), np.uint8)

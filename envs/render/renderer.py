"""The picture of a RAM image, as the colour vector monitor of the machine shows it."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.checks import check_side
from tempest_agent.envs.display.display_list import DisplayList
from tempest_agent.envs.machine.memory import RAM_DTYPE, RAM_SIZE

from .rasteriser import Rasteriser

FRAMES_PER_SECOND = 1_512_000 / 6_144 / 9
"""Game ticks, and so pictures, in a second: 27.34."""

_LEGIBLE_HEIGHT = 200
_GREY = np.array((0.38, 0.34, 0.28), np.float32)


def image_cells(ram: Any) -> NDArray[np.uint8]:
    """Return the 2,048 bytes of an image given as a record, a 0-d array of one, or bytes.

    Raises:
        ValueError: ``ram`` is not one image.
    """
    array = np.asarray(ram)
    if array.dtype == RAM_DTYPE and array.size == 1:
        return np.frombuffer(array.tobytes(), np.uint8)
    if array.dtype == np.uint8 and array.shape == (RAM_SIZE,):
        return array
    raise ValueError(
        f"cannot draw an array of shape {array.shape} and type {array.dtype.name}: "
        f"give one RAM image, a RAM_DTYPE record or {RAM_SIZE} uint8 cells "
        "(of a batch, pass batch[i])"
    )


class Renderer:
    """Draws RAM images in software; needs no display.

    Args:
        width: width of the picture in pixels.
        height: height of the picture in pixels.  The monitor stands upright, 3:4; other shapes
            stretch it.  Below 200 pixels the texts are left out: they would be specks.
        glow: add the halo of the tube.  Costs about half of the time of a frame.

    A picture depends on the image alone, so images of the simulator, of an emulator and of a
    recording are drawn alike.  Buffers are kept between calls, so threads need a renderer each.
    """

    def __init__(self, width: int = 480, height: int = 640, glow: bool = True) -> None:
        check_side("width", width)
        check_side("height", height)
        self.width = width
        self.height = height
        self._glow = Glow(width, height) if glow else None
        self._display_list = DisplayList()
        self._rasteriser = Rasteriser(width, height)
        self._texts = height >= _LEGIBLE_HEIGHT

    def draw(self, ram: Any, score: int | None = None) -> NDArray[np.uint8]:
        """Return the picture of one image, a new uint8 array of shape (height, width, 3), RGB.

        Args:
            ram: one ``RAM_DTYPE`` record or its 2,048 bytes.
            score: score to show; None shows the image's own six digits, which wrap at a million.

        Raises:
            ValueError: ``ram`` is not one image.
        """
        segments = self._display_list.write(image_cells(ram), score, self._texts)
        image = np.zeros((self.height, self.width, 3), np.uint8)
        self._rasteriser.draw(segments, self._display_list.colours, image)
        if self._glow is not None:
            self._glow.apply(image)
        return image


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
    """Return the grey picture (height, width) of an RGB picture (height, width, 3).

    The three colours count almost alike.  With the usual luma weights the blue well of the
    first sixteen levels would have a tenth of full brightness and be lost to an observer.
    """
    return np.asarray(cv2.transform(rgb, _GREY[None, :]), np.uint8)

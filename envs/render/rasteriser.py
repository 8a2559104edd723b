"""Display lists drawn into pictures with OpenCV."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.display.beam import (
    FULL_HEIGHT,
    FULL_WIDTH,
    NORMAL,
    ORIGIN_X,
    ORIGIN_Z,
    PIXELS_PER_X,
    PIXELS_PER_Z,
    SUBUNITS,
)

_SHIFT = 4
_ONE_PIXEL = 1 << _SHIFT
_LEVELS = 16
# The phosphor's light grows faster than the current of the beam; NORMAL shows the full colour.
_LIGHT = np.minimum((np.arange(_LEVELS) / NORMAL) ** 2, 1.0)


class Rasteriser:
    """Draws display lists into pictures of one size."""

    def __init__(self, width: int, height: int) -> None:
        across, down = width / FULL_WIDTH, height / FULL_HEIGHT
        self.width, self.height = width, height
        # A pixel's middle is at +0.5, but OpenCV counts from it: keep the middle in place.
        scale = np.array((PIXELS_PER_X * across, -PIXELS_PER_Z * down), np.float64)
        origin = np.array(((ORIGIN_X + 0.5) * across - 0.5, (ORIGIN_Z + 0.5) * down - 0.5))
        self._scale = np.tile(scale * (_ONE_PIXEL / SUBUNITS), 2)
        self._origin = np.tile(origin * _ONE_PIXEL, 2)
        # The beam's dots stand upright, twice as high as wide.
        self._dot_width, self._dot_height = max(1, height // 640), max(1, height // 320)
        self._thickness = max(1, round(height / 640))

    def pixels(self, ends: NDArray[np.int16]) -> NDArray[np.int32]:
        """Return both ends of lines, x and z in 1/16 units ``(n, 4)``, in 1/16 of a pixel."""
        return np.rint(ends * self._scale + self._origin).astype(np.int32)

    def draw(
        self, segments: NDArray[np.int16], colours: NDArray[np.uint8], image: NDArray[np.uint8]
    ) -> None:
        """Draw the rows of a display list into ``image`` (height, width, 3), in place.

        Args:
            segments: rows of the list, shape (n, 6).
            colours: its palette, shape (16, 3).
            image: RGB picture.
        """
        if len(segments) == 0:
            return
        ends = self.pixels(segments[:, :4])
        inks = segments[:, 4].astype(np.intp) * _LEVELS + segments[:, 5]
        rgb = np.rint(colours[:, None, :] * _LIGHT[None, :, None]).astype(np.uint8).reshape(-1, 3)
        is_dot = (segments[:, 0] == segments[:, 2]) & (segments[:, 1] == segments[:, 3])
        lines = np.flatnonzero(~is_dot)
        self._draw_lines(image, ends[lines], inks[lines], rgb)
        self._draw_dots(image, ends[is_dot, :2] >> _SHIFT, rgb[inks[is_dot]])

    def _draw_lines(
        self,
        image: NDArray[np.uint8],
        ends: NDArray[np.int32],
        inks: NDArray[np.intp],
        rgb: NDArray[np.uint8],
    ) -> None:
        """Draw all lines of one ink at once, the ink that comes first in the list first."""
        found, first = np.unique(inks, return_index=True)
        for ink in found[np.argsort(first)].tolist():
            red, green, blue = rgb[ink].tolist()
            if red or green or blue:
                strokes = ends[inks == ink].reshape(-1, 2, 2)
                cv2.polylines(
                    image,
                    list(strokes),
                    False,
                    (red, green, blue),
                    self._thickness,
                    cv2.LINE_AA,
                    _SHIFT,
                )

    def _draw_dots(
        self, image: NDArray[np.uint8], pixels: NDArray[np.int32], rgb: NDArray[np.uint8]
    ) -> None:
        """Draw dots of ``pixels`` (n, 2), each in its colour (n, 3)."""
        inside = np.flatnonzero(
            (pixels >= 0).all(axis=1)
            & (pixels[:, 0] <= self.width - self._dot_width)
            & (pixels[:, 1] <= self.height - self._dot_height)
        )
        x, y = pixels[inside, 0], pixels[inside, 1]
        for down in range(self._dot_height):
            for right in range(self._dot_width):
                image[y + down, x + right] = rgb[inside]

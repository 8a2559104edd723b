"""Strokes and dots of one frame, collected in screen units and painted in one pass."""

from __future__ import annotations

from collections.abc import Iterable

import cv2
import numpy as np
from numpy.typing import NDArray

from .projection import Floats, Viewport


class Canvas:
    """Collects what the beam draws.  Colours are palette indices; points are screen units."""

    def __init__(
        self, viewport: Viewport, dot: tuple[int, int] = (1, 1), thickness: int = 1
    ) -> None:
        """Set the width and height of a ``dot`` and the ``thickness`` of a line, in pixels."""
        self._viewport = viewport
        self._dot_width, self._dot_height = dot
        self._thickness = thickness
        self._strokes: list[Floats] = []
        self._stroke_colours: list[int] = []
        self._dots: list[Floats] = []
        self._dot_colours: list[NDArray[np.intp]] = []

    def stroke(self, points: Floats, colour: int) -> None:
        """Add an open line through ``points``, shape (n, 2)."""
        self._strokes.append(points)
        self._stroke_colours.append(colour)

    def loop(self, points: Floats, colour: int) -> None:
        """Add a closed line through ``points``, shape (n, 2)."""
        self.stroke(np.concatenate((points, points[:1])), colour)

    def strokes(self, lines: Iterable[Floats], colour: int) -> None:
        """Add several open lines of one colour."""
        for line in lines:
            self.stroke(line, colour)

    def dots(self, points: Floats, colour: int | NDArray[np.intp]) -> None:
        """Add dots at ``points``, shape (n, 2), in one colour or one for each."""
        flat = points.reshape(-1, 2)
        self._dots.append(flat)
        self._dot_colours.append(np.broadcast_to(np.asarray(colour, np.intp), len(flat)))

    def paint(self, image: NDArray[np.uint8], palette: NDArray[np.uint8]) -> None:
        """Draw everything collected into ``image`` (height, width, 3), in place."""
        self._paint_strokes(image, palette)
        self._paint_dots(image, palette)

    def _paint_strokes(self, image: NDArray[np.uint8], palette: NDArray[np.uint8]) -> None:
        if not self._strokes:
            return
        fixed = self._viewport.to_fixed(np.concatenate(self._strokes))
        by_colour: dict[int, list[NDArray[np.int32]]] = {}
        first = 0
        for line, colour in zip(self._strokes, self._stroke_colours, strict=True):
            by_colour.setdefault(colour, []).append(fixed[first : first + len(line)])
            first += len(line)
        for colour, lines in by_colour.items():
            red, green, blue = palette[colour].tolist()
            if red or green or blue:
                cv2.polylines(
                    image,
                    lines,
                    False,
                    (red, green, blue),
                    self._thickness,
                    cv2.LINE_AA,
                    Viewport.SHIFT,
                )

    def _paint_dots(self, image: NDArray[np.uint8], palette: NDArray[np.uint8]) -> None:
        if not self._dots:
            return
        height, width = image.shape[:2]
        pixels = self._viewport.to_pixels(np.concatenate(self._dots))
        colours = palette[np.concatenate(self._dot_colours)]
        inside = np.flatnonzero(
            (pixels[:, 0] >= 0)
            & (pixels[:, 0] <= width - self._dot_width)
            & (pixels[:, 1] >= 0)
            & (pixels[:, 1] <= height - self._dot_height)
        )
        x, y = pixels[inside, 0], pixels[inside, 1]
        for down in range(self._dot_height):
            for right in range(self._dot_width):
                image[y + down, x + right] = colours[inside]

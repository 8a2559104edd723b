"""Perspective of the vector monitor, and the way from its units to pixels.

World: x to the right and z up, bytes around 0x80; y is the depth, 0x10 at the rim and 0xF0 at
the bottom.  Screen units are those of the vector generator: 0 in the middle, about 570 to each
edge, with x and z of different size on a 3:4 picture.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.machine.memory import Ram

Floats = NDArray[np.float64]

FOCAL = 128.0
CENTRE_X = 128.0
FULL_WIDTH, FULL_HEIGHT = 480.0, 640.0
# Measured on the 480 x 640 picture of the machine: pixels per screen unit, and the origin.
PIXELS_PER_X, PIXELS_PER_Z = 0.4176, 0.5490
ORIGIN_X, ORIGIN_Z = 239.5, 320.6


class Camera(NamedTuple):
    """Where the eye is: signed depth, height, the vanishing point's height on the screen, and
    the distance at which pictures have their full size (that of the rim at rest)."""

    depth: float
    z: float
    screen_z: float
    unit_distance: float

    def distance(self, depth: Floats | float) -> Floats:
        """Return the depth ahead of the eye, at least 1 (also for what the eye has passed)."""
        return np.maximum(np.asarray(depth, np.float64) - self.depth, 1.0)

    def project(self, x: Floats, z: Floats, depth: Floats | float) -> Floats:
        """Return world points to screen units, shape (..., 2)."""
        factor = FOCAL / self.distance(depth)
        return np.stack(((x - CENTRE_X) * factor, (z - self.z) * factor + self.screen_z), axis=-1)

    def size(self, depth: Floats | float) -> Floats:
        """Return the size of a picture at ``depth`` as a share of its full size, at most 1."""
        return np.minimum(self.unit_distance / self.distance(depth), 1.0)


def signed16(value: int) -> int:
    return value - 0x10000 if value >= 0x8000 else value


def camera_of(ram: Ram, eye_z: float) -> Camera:
    """Return the camera of an image; ``eye_z`` belongs to the well's shape."""
    depth = signed16(int(ram["eye_depth_hi"]) << 8 | int(ram["eye_depth_lo"]))
    low, high = (int(cell) for cell in ram["screen_z"])
    unit = (0x10 - int(ram["eye_depth_home"])) & 0xFF
    return Camera(float(depth), eye_z, float(signed16(high << 8 | low)), float(max(unit, 1)))


def along_lane(start: Floats, end: Floats, picture: Floats) -> Floats:
    """Lay a lane picture between two screen points.

    ``picture`` has shape (points, 2): the first coordinate runs from ``start`` (0) to ``end``
    (1), the second stands square on it, positive to the right (outward on a closed well).
    """
    step = end - start
    side = np.array((step[1], -step[0]))
    points: Floats = start + picture[:, :1] * step + picture[:, 1:] * side
    return points


class Viewport:
    """Screen units to pixels of a picture of ``width`` x ``height``, in 1/16 of a pixel."""

    SHIFT = 4

    def __init__(self, width: int, height: int) -> None:
        across, down = width / FULL_WIDTH, height / FULL_HEIGHT
        one = float(1 << self.SHIFT)
        # A pixel's middle is at +0.5, but OpenCV counts from it: keep the middle in place.
        self._scale = np.array((PIXELS_PER_X * across, -PIXELS_PER_Z * down)) * one
        self._origin = (
            np.array(((ORIGIN_X + 0.5) * across - 0.5, (ORIGIN_Z + 0.5) * down - 0.5)) * one
        )

    def to_fixed(self, points: Floats) -> NDArray[np.int32]:
        """Return the fixed-point pixel coordinates, shape of ``points``."""
        return np.rint(points * self._scale + self._origin).astype(np.int32)

    def to_pixels(self, points: Floats) -> NDArray[np.int32]:
        """Return the whole pixel coordinates, shape of ``points``."""
        return self.to_fixed(points) >> self.SHIFT

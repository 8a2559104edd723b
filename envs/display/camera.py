"""Perspective of the vector monitor: world points to screen units.

World: x to the right and z up, bytes around 0x80; the depth is 0x10 at the rim and 0xF0 at the
bottom.  The machine cuts fractions off; here they are kept, for smooth motion in large pictures.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import LANES, Ram
from tempest_agent.envs.machine.tables import WELL_EYE_Z

FOCAL = 128.0
CENTRE_X = 128.0
_EYE_Z = WELL_EYE_Z.astype(np.float64)


class Camera(NamedTuple):
    """Where the eye is: signed depth, height, the vanishing point's height on the screen, and
    the distance at which pictures have their full size (that of the rim at rest)."""

    depth: float
    z: float
    screen_z: float
    unit_distance: float


@rule
def _signed16(high: int, low: int) -> int:
    value = (int64(high) << 8) | int64(low)
    return value - 0x10000 if value >= 0x8000 else value


@rule
def camera_of(ram: Ram) -> Camera:
    """Return the camera of an image."""
    unit = (0x10 - int64(ram.eye_depth_home)) & 0xFF
    return Camera(
        float(_signed16(ram.eye_depth_hi, ram.eye_depth_lo)),
        _EYE_Z[ram.well_shape & 0x0F],
        float(_signed16(ram.screen_z[1], ram.screen_z[0])),
        float(max(unit, 1)),
    )


@rule
def distance(camera: Camera, depth: float) -> float:
    """Return the depth ahead of the eye, at least 1 (also for what the eye has passed)."""
    return max(depth - camera.depth, 1.0)


@rule
def picture_size(camera: Camera, depth: float) -> float:
    """Return the size of a picture at ``depth`` as a share of its full size, at most 1."""
    return min(camera.unit_distance / distance(camera, depth), 1.0)


@rule
def project(camera: Camera, x: float, z: float, depth: float) -> tuple[float, float]:
    """Return the screen point of a world point."""
    factor = FOCAL / distance(camera, depth)
    return (x - CENTRE_X) * factor, (z - camera.z) * factor + camera.screen_z


@rule
def spoke_point(camera: Camera, ram: Ram, spoke: int, depth: float) -> tuple[float, float]:
    """Return the screen point of a spoke at ``depth``."""
    at = int64(spoke) % LANES
    return project(camera, float(ram.lane_x[at]), float(ram.lane_z[at]), depth)


@rule
def lane_middle(camera: Camera, ram: Ram, lane: int, depth: float) -> tuple[float, float]:
    """Return the screen point in the middle of a lane at ``depth``."""
    one = int64(lane) % LANES
    other = (one + 1) % LANES
    x = (float(ram.lane_x[one]) + float(ram.lane_x[other])) / 2.0
    z = (float(ram.lane_z[one]) + float(ram.lane_z[other])) / 2.0
    return project(camera, x, z, depth)

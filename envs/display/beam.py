"""The display list itself: lines and dots in screen units, clipped and counted.

A display list is an int16 array of shape ``(CAPACITY, COLUMNS)``, one line a row:

| column | meaning |
|---|---|
| 0, 1 | x and z of one end, in 1/16 of a screen unit: x to the right, z up, 0 in the middle |
| 2, 3 | x and z of the other end; equal to the first ones: a dot |
| 4 | colour, an index 0-15 of the palette (see ``palette``) |
| 5 | brightness, the vector generator's 0-15: ``NORMAL`` for almost everything |

Screen units are those of the machine's vector generator; on its upright 3:4 monitor one is
``PIXELS_PER_X`` wide and ``PIXELS_PER_Z`` high in a picture of 480 x 640, and (0, 0) stands at
(``ORIGIN_X``, ``ORIGIN_Z``), so about 570 reach each edge.  No coordinate lies beyond ``EDGE``.
All lines have one width.  Rows come in drawing order.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.machine.compiled import int64, rule

Floats = NDArray[np.float64]

CAPACITY = 4096
"""Rows of a display list: above what any 2,048 bytes can ask for."""
COLUMNS = 6
SUBUNITS = 16
"""Steps of a coordinate in one screen unit."""
EDGE = 1023.0
"""Lines end here, in screen units from the middle: well outside of the picture."""

NORMAL = 12
FAINT = 10
BRIGHT = 14

FULL_WIDTH, FULL_HEIGHT = 480, 640
# Measured on the 480 x 640 picture of the machine.
PIXELS_PER_X, PIXELS_PER_Z = 0.4176, 0.5490
ORIGIN_X, ORIGIN_Z = 239.5, 320.6


class Beam(NamedTuple):
    """Where lines go: the display list, and the number of its rows in use, shape (1,)."""

    segments: NDArray[np.int16]
    used: NDArray[np.int64]


@rule
def _subunits(value: float) -> int:
    return int64(math.floor(value * SUBUNITS + 0.5))


@rule
def _narrowed(start: float, step: float, first: float, last: float) -> tuple[float, float]:
    """Return the part of ``first`` to ``last`` in which ``start + part * step`` is inside."""
    if step == 0.0:
        return (first, last) if abs(start) <= EDGE else (1.0, 0.0)
    one = (-EDGE - start) / step
    other = (EDGE - start) / step
    return max(first, min(one, other)), min(last, max(one, other))


@rule
def line(
    beam: Beam, x0: float, z0: float, x1: float, z1: float, colour: int, brightness: int
) -> None:
    """Add a line, or what of it lies inside ``EDGE``; a full list stays as it is."""
    at = beam.used[0]
    if at >= len(beam.segments):
        return
    if max(abs(x0), abs(z0), abs(x1), abs(z1)) > EDGE:
        across, up = x1 - x0, z1 - z0
        first, last = _narrowed(x0, across, 0.0, 1.0)
        first, last = _narrowed(z0, up, first, last)
        if first > last:
            return
        # Rounding may lead a hair beyond the edge.
        x1 = min(max(x0 + last * across, -EDGE), EDGE)
        z1 = min(max(z0 + last * up, -EDGE), EDGE)
        x0 = min(max(x0 + first * across, -EDGE), EDGE)
        z0 = min(max(z0 + first * up, -EDGE), EDGE)
    row = beam.segments[at]
    row[0] = _subunits(x0)
    row[1] = _subunits(z0)
    row[2] = _subunits(x1)
    row[3] = _subunits(z1)
    row[4] = colour
    row[5] = brightness
    beam.used[0] = at + 1


@rule
def dot(beam: Beam, x: float, z: float, colour: int, brightness: int) -> None:
    """Add a dot, if it lies inside ``EDGE``."""
    line(beam, x, z, x, z, colour, brightness)


@rule
def draw_picture(beam: Beam, picture: Floats, x: float, z: float, size: float) -> None:
    """Draw a picture of ``shapes`` around (x, z): rows of x, z and the colour of the line there.

    A colour below 0 moves the beam without light.
    """
    last_x = last_z = 0.0
    for row in range(len(picture)):
        next_x = x + size * picture[row, 0]
        next_z = z + size * picture[row, 1]
        if picture[row, 2] >= 0:
            line(beam, last_x, last_z, next_x, next_z, int64(picture[row, 2]), NORMAL)
        last_x, last_z = next_x, next_z


@rule
def draw_along(
    beam: Beam,
    picture: Floats,
    x0: float,
    z0: float,
    x1: float,
    z1: float,
    height: float,
    colour: int,
) -> None:
    """Lay a lane picture, one open line of shape (points, 2), between two screen points.

    Its first coordinate runs from (x0, z0) at 0 to (x1, z1) at 1; the second, times ``height``,
    stands square on it, positive to the right (outward on a closed well).
    """
    across, up = x1 - x0, z1 - z0
    last_x = last_z = 0.0
    for row in range(len(picture)):
        along, outward = picture[row, 0], picture[row, 1] * height
        next_x = x0 + along * across + outward * up
        next_z = z0 + along * up - outward * across
        if row > 0:
            line(beam, last_x, last_z, next_x, next_z, colour, NORMAL)
        last_x, last_z = next_x, next_z


@rule
def draw_dots(
    beam: Beam, points: Floats, x: float, z: float, size: float, colour: int, brightness: int
) -> None:
    """Draw dots, shape (n, 2), around (x, z)."""
    for row in range(len(points)):
        dot(beam, x + size * points[row, 0], z + size * points[row, 1], colour, brightness)

"""The pictures that the beam draws: claw, enemies, shots, explosions.

Lane pictures (claw, flipper, pulsar) are points of one line in lane coordinates: (0, 0) is the
lower spoke's point, (1, 0) the next one's, the second coordinate is positive outward.  All other
pictures are in screen units at full size, x to the right and z up, around the object's place:
rows of x, z and the colour of the line that ends there (see ``beam.draw_picture``).
"""

from __future__ import annotations

import random
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from . import palette
from .beam import Floats

_MOVE = -1


def _eighths(*points: tuple[float, float]) -> Floats:
    return np.array(points, np.float64) / 8.0


def _picture(*strokes: tuple[ArrayLike, int]) -> Floats:
    """Return open lines, each with its colour, as rows of a picture, shape (n, 3)."""
    rows: list[tuple[float, ...]] = []
    for points, colour in strokes:
        first, *rest = np.asarray(points, np.float64).tolist()
        rows += [(*first, _MOVE), *((*point, colour) for point in rest)]
    return np.array(rows)


def _closed(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    listed = list(points)
    return [*listed, listed[0]]


def _rounded(points: Floats) -> Floats:
    """Return points that do not depend on the last bits of a library's sine."""
    return np.round(points, 4)


def _ring(count: int, radius: float, turn: float = 0.0) -> Floats:
    angles = np.arange(count) * (2.0 * np.pi / count) + turn
    return _rounded(radius * np.stack((np.cos(angles), np.sin(angles)), axis=-1))


def _scatter(count: int) -> Floats:
    """Return ``count`` points spread evenly over the unit disc, in golden-angle order."""
    k = np.arange(count) + 0.5
    angles = k * np.pi * (3.0 - 5.0**0.5)
    radii = np.sqrt(k / count)
    return _rounded(np.stack((radii * np.cos(angles), radii * np.sin(angles)), axis=-1))


# ------------------------------------------------------------------------------- claw


def _claw(bend: int) -> Floats:
    """Return a claw whose elbow stands ``bend`` eighths along the lane, as a closed line."""
    return _eighths(
        (0, 0), (bend, 2), (8, 0), (5, -1), (7, 0), (bend, 1), (1, 0), (3, -1), (0, 0)
    )  # fmt: skip


_CLAW_EDGE = _eighths(
    (0, 0), (0, 2), (2, 3), (5, -1), (2, 2), (1, 2), (1, 0), (3, -1), (0, 0)
)  # fmt: skip
_CLAW_OTHER_EDGE = _CLAW_EDGE[::-1] * (-1, 1) + (1, 0)
CLAWS: Floats = np.stack(
    (_CLAW_EDGE, *(_claw(bend) for bend in (1, 2, 3, 5, 6, 7)), _CLAW_OTHER_EDGE)
)
"""Eight postures: the claw leans over as it walks from one spoke to the next."""

LIFE_ICON: Floats = _picture(
    (
        ((-25, 0), (0, 12), (25, 0), (7, -9), (19, 0), (0, 5), (-19, 0), (-7, -9), (-25, 0)),
        palette.CLAW,
    )
)

# Where the torn claw's pieces fly, in units at full size, and their outlines.
_PIECES = (
    ((-14, 312), ((0, 6), (-114, -27), (-61, -59), (-68, -42), (-38, -41), (-74, -35))),
    ((115, 193), ((5, 5), (111, -29), (70, -29))),
    ((209, -94), ((8, -2), (72, 21), (63, 30), (112, 27), (27, -23), (27, -2))),
    ((-267, 24), ((0, 1), (24, 1), (55, -4), (64, -32), (30, -36), (5, -16))),
    (
        (-90, -190),
        ((-29, -20), (6, -17), (1, -4), (25, -16), (56, -4), (77, -7), (72, -24), (25, -48)),
    ),
    ((38, 92), ((-11, 0), (0, 8), (9, -2), (-2, -9))),
)
PIECE_FLIGHT: Floats = np.array([flight for flight, _ in _PIECES], np.float64)
"""Where each piece of the torn claw is at full spread, shape (6, 2)."""
PIECES: Floats = np.concatenate([_picture((_closed(o), palette.CLAW)) for _, o in _PIECES])
"""The outlines of the pieces, one after the other."""
PIECE_STARTS = np.cumsum([0, *(len(outline) + 1 for _, outline in _PIECES)])
SPARKS: Floats = 330.0 * _scatter(5)
"""Dots that fly between the pieces, at full spread."""

# ------------------------------------------------------------------------------- enemies

FLIPPER: Floats = _eighths((0, 0), (7, -2), (6, -1), (8, 0), (1, -2), (2, -1), (0, 0))
"""A bow tie that hangs on both spokes, its body inside the well."""

PULSAR: Floats = np.array(
    (
        (0.0, 0.0), (0.125, 1.0), (0.3125, -1.0), (0.5, 1.0),
        (0.6875, -1.0), (0.875, 1.0), (1.0, 0.0),
    )
)  # fmt: skip
"""A zigzag one lane width high; the amplitude is that of the pulse."""


def _tanker() -> Floats:
    outer = 64.0 * np.array(((0, 1), (1, 0), (0, -1), (-1, 0)), np.float64)
    inner = outer * 0.3
    # A pinwheel: each tip is tied to its own inner corner and to the one before it.
    webs = [np.stack((inner[k], outer[k], inner[k - 1])) for k in range(4)]
    lines = (np.concatenate((outer, outer[:1])), np.concatenate((inner, inner[:1])), *webs)
    return _picture(*((line, palette.TANKER) for line in lines))


TANKER: Floats = _tanker()
PULSAR_CARGO: Floats = _picture(
    (((-16, -4), (-10, 10), (-4, -10), (2, 10), (8, -10), (14, 6)), palette.PULSAR_OFF)
)
FUSEBALL_CARGO: Floats = _picture(
    (((0, 0), (6, 6), (2, 10), (10, 16)), 6),
    (((0, 0), (6, -6), (10, -2), (16, -10)), 3),
    (((0, 0), (-6, -6), (-2, -10), (-10, -16)), 5),
    (((0, 0), (-6, 6), (-10, 2), (-16, 10)), 1),
)


def _spiral(turn: float) -> Floats:
    angles = np.arange(21) * (np.pi / 4.0) + turn
    radii = np.linspace(3.0, 40.0, 21)
    points = np.stack((radii * np.cos(angles), radii * np.sin(angles)), axis=-1)
    return _picture((_rounded(points), palette.SPIKER))


SPIKERS: Floats = np.stack([_spiral(-quarter * np.pi / 2.0) for quarter in range(4)])
"""A spiral in four quarter turns, one a tick."""


def _fuseball(variant: int) -> Floats:
    arms = (
        (((0, 0), (0, 13), (6, 16), (3, 26), (12, 32), (7, 38), (15, 54)), 3),
        (((0, 0), (15, 11), (19, 4), (31, 10), (37, 28), (50, 28)), 1),
        (((0, 0), (6, -8), (15, -8), (17, -17), (32, -17), (33, -33), (50, -33)), 5),
        (((0, 0), (-2, -7), (-7, -19), (-24, -26), (-21, -34), (-17, -41)), 2),
        (((0, 0), (-7, 4), (-16, 0), (-20, 4), (-33, 1), (-39, -6), (-46, -14)), 4),
    )
    parts = []
    for arm, colour in arms:
        points = np.array(arm, np.float64)
        # The four pictures differ in the kinks of the arms, which makes the ball crackle.
        kinks = np.where(np.arange(len(points)) % 2 == 1, 2.0, -2.0) * (variant % 2)
        points[1:, 0] += kinks[1:]
        points[1:, 1] += kinks[1:] * (1 if variant < 2 else -1)
        parts.append((points, colour))
    return _picture(*parts)


FUSEBALLS: Floats = np.stack([_fuseball(variant) for variant in range(4)])

# ------------------------------------------------------------------------------- shots

SHOT_RING: Floats = _ring(8, 14.0)
SHOT_CORE: Floats = np.concatenate((_ring(8, 7.0), np.zeros((1, 2))))
ENEMY_SHOT_CORE: Floats = _ring(4, 8.0)


def _enemy_shot(turn: float) -> Floats:
    ends = zip(_ring(4, 15.0, turn), _ring(4, 23.0, turn + 0.5), strict=True)
    return _picture(*((np.stack(pair), palette.WHITE) for pair in ends))


ENEMY_SHOTS: Floats = np.stack([_enemy_shot(quarter * np.pi / 8.0) for quarter in range(4)])

# ------------------------------------------------------------------------------- explosions

BLAST: Floats = _picture(*((np.stack((0.12 * tip, tip)), palette.WHITE) for tip in _ring(16, 1.0)))
"""Sixteen rays of length 1: the end of an enemy or of its shot."""


def _splat() -> Floats:
    # Clockwise from the upper left; two sides at a time share one of the rotating colours.
    corners = (
        (-44, 73), (-38, 182), (17, 162), (75, 193), (65, 88), (140, 129),
        (115, 84), (146, 82), (130, 48), (226, 33), (98, -32), (140, -119),
        (74, -96), (64, -176), (16, -127), (-32, -176), (-45, -127), (-61, -136),
        (-51, -56), (-150, -92), (-126, -39), (-150, -32), (-110, 0), (-181, 97),
        (-44, 73),
    )  # fmt: skip
    outline = np.array(corners, np.float64) / 8.0
    order = (9, 10, 11, 9, 10, 11, 9, 11, 10, 9, 10, 11)
    return _picture(*((outline[2 * k : 2 * k + 3], order[k]) for k in range(12)))


SPLAT: Floats = _splat()
"""The dying claw's star at size 1; several stand inside one another."""
SPLAT_SIZES = np.array((1.5, 2.0, 3.0, 4.0, 6.0, 8.0))
SPLAT_STARS = np.repeat((1, 2, 3, 4, 5, 6, 4, 2), (3, 2, 2, 2, 2, 4, 3, 3))
"""Number of stars by the sequence number of the explosion: they grow, then shrink again."""

ASHES: Floats = _scatter(36)
"""The claw after a fuseball has touched it: dots at spread 1."""


def _field(plane: int) -> Floats:
    """Return twenty stars of one plane, scattered over the window of the star field."""
    source = random.Random(plane)
    return np.array([(source.randint(-420, 420), source.randint(-395, 485)) for _ in range(20)])


STARS: Floats = np.stack([_field(plane) for plane in range(4)]).astype(np.float64)
"""Four planes of stars at the unit distance; eight planes use each of them twice."""

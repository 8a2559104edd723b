"""The pictures that the beam draws: claw, enemies, shots, explosions.

Lane pictures (claw, flipper, pulsar) are in lane coordinates: (0, 0) is the lower spoke's point,
(1, 0) the next one's, the second coordinate is positive outward.  All other pictures are in
screen units at full size, x to the right and z up, around the object's place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .projection import Floats


class Part(NamedTuple):
    """One line of a picture, shape (n, 2), in one colour index."""

    points: Floats
    colour: int


def _eighths(*points: tuple[float, float]) -> Floats:
    return np.array(points, np.float64) / 8.0


def _mirrored(points: Floats) -> Floats:
    flipped = points[::-1].copy()
    flipped[:, 0] = 1.0 - flipped[:, 0]
    return flipped


def _claw(bend: int) -> Floats:
    """Return a claw whose elbow stands ``bend`` eighths along the lane, as a closed line."""
    return _eighths(
        (0, 0), (bend, 2), (8, 0), (5, -1), (7, 0), (bend, 1), (1, 0), (3, -1), (0, 0)
    )  # fmt: skip


_CLAW_EDGE = _eighths(
    (0, 0), (0, 2), (2, 3), (5, -1), (2, 2), (1, 2), (1, 0), (3, -1), (0, 0)
)  # fmt: skip
CLAWS: tuple[Floats, ...] = (
    _CLAW_EDGE, *(_claw(bend) for bend in (1, 2, 3, 5, 6, 7)), _mirrored(_CLAW_EDGE),
)  # fmt: skip
"""Eight postures: the claw leans over as it walks from one spoke to the next."""

LIFE_ICON: Floats = np.array(
    ((-25, 0), (0, 12), (25, 0), (10, -11), (19, 0), (0, 6), (-19, 0), (-10, -11), (-25, 0)),
    np.float64,
)

FLIPPER: Floats = _eighths((0, 0), (7, -2), (6, -1), (8, 0), (1, -2), (2, -1), (0, 0))
"""A bow tie that hangs on both spokes, its body inside the well."""


def pulsar(amplitude: float) -> Floats:
    """Return the zigzag of a pulsar, ``amplitude`` in lane widths."""
    return np.array(
        (
            (0.0, 0.0), (0.125, amplitude), (0.3125, -amplitude), (0.5, amplitude),
            (0.6875, -amplitude), (0.875, amplitude), (1.0, 0.0),
        )
    )  # fmt: skip


def _tanker() -> tuple[Floats, ...]:
    outer = 64.0 * np.array(((0, 1), (1, 0), (0, -1), (-1, 0)), np.float64)
    inner = outer * 0.3
    # A pinwheel: each tip is tied to its own inner corner and to the one before it.
    webs = tuple(np.stack((inner[k], outer[k], inner[k - 1])) for k in range(4))
    return (np.concatenate((outer, outer[:1])), np.concatenate((inner, inner[:1])), *webs)


TANKER: tuple[Floats, ...] = _tanker()

PULSAR_CARGO: Floats = np.array(
    ((-16, -4), (-10, 10), (-4, -10), (2, 10), (8, -10), (14, 6)), np.float64
)
FUSEBALL_CARGO: tuple[Part, ...] = (
    Part(np.array(((0, 0), (6, 6), (2, 10), (10, 16)), np.float64), 6),
    Part(np.array(((0, 0), (6, -6), (10, -2), (16, -10)), np.float64), 3),
    Part(np.array(((0, 0), (-6, -6), (-2, -10), (-10, -16)), np.float64), 5),
    Part(np.array(((0, 0), (-6, 6), (-10, 2), (-16, 10)), np.float64), 1),
)


def _spiral(turn: float) -> Floats:
    angles = np.arange(21) * (np.pi / 4.0) + turn
    radii = np.linspace(3.0, 40.0, 21)
    return np.stack((radii * np.cos(angles), radii * np.sin(angles)), axis=-1)


SPIKERS: tuple[Floats, ...] = tuple(_spiral(-quarter * np.pi / 2.0) for quarter in range(4))
"""A spiral in four quarter turns, one a tick."""


def _fuseball(variant: int) -> tuple[Part, ...]:
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
        parts.append(Part(points, colour))
    return tuple(parts)


FUSEBALLS: tuple[tuple[Part, ...], ...] = tuple(_fuseball(variant) for variant in range(4))


def _ring(count: int, radius: float, turn: float = 0.0) -> Floats:
    angles = np.arange(count) * (2.0 * np.pi / count) + turn
    return radius * np.stack((np.cos(angles), np.sin(angles)), axis=-1)


SHOT_RING: Floats = _ring(8, 14.0)
SHOT_CORE: Floats = np.concatenate((_ring(8, 7.0), np.zeros((1, 2))))

ENEMY_SHOT_CORE: Floats = _ring(4, 8.0)


def _enemy_shot(turn: float) -> tuple[Floats, ...]:
    starts = _ring(4, 15.0, turn)
    ends = _ring(4, 23.0, turn + 0.5)
    return tuple(np.stack(pair) for pair in zip(starts, ends, strict=True))


ENEMY_SHOTS: tuple[tuple[Floats, ...], ...] = tuple(
    _enemy_shot(quarter * np.pi / 8.0) for quarter in range(4)
)

BLAST: tuple[Floats, ...] = tuple(np.stack((0.12 * tip, tip)) for tip in _ring(16, 1.0))
"""Sixteen rays of length 1: the end of an enemy or of its shot."""


def _splat() -> tuple[Part, ...]:
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
    return tuple(Part(outline[2 * k : 2 * k + 3], order[k]) for k in range(12))


SPLAT: tuple[Part, ...] = _splat()
"""The dying claw's star at size 1; SPLAT_SIZES of them stand inside one another."""
SPLAT_SIZES = (1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)
SPLAT_STEPS = (0, 3, 5, 7, 9, 11, 15, 18)
"""Sequence numbers of the explosion at which the next larger star joins."""


def _scatter(count: int, seed: int) -> Floats:
    """Return ``count`` points spread evenly over the unit disc, in golden-angle order."""
    k = np.arange(count) + 0.5
    angles = k * np.pi * (3.0 - 5.0**0.5) + seed
    radii = np.sqrt(k / count)
    return np.stack((radii * np.cos(angles), radii * np.sin(angles)), axis=-1)


SHARDS: Floats = _scatter(48, 0)
STARS: Floats = _scatter(28, 0)

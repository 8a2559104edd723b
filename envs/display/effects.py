"""Explosions and the star field."""

from __future__ import annotations

import numpy as np

from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import BOOM_SLOTS, Ram, byte_table

from . import palette, shapes
from .beam import FAINT, NORMAL, Beam, draw_dots, draw_picture
from .camera import Camera, lane_middle, picture_size
from .glyphs import GLYPH_WIDTH, PITCH, write_number

# Types of explosions: 0 an enemy, 1 the claw, 2 to 4 a fuseball's points, 5 a grab (no picture).
_ENEMY, _CLAW = 0, 1
_POINTS = byte_table([0, 0, 250, 500, 750], 0)
_POINTS_WIDTH = 2 * PITCH + GLYPH_WIDTH

_BLAST_RADIUS = 66.0
_BLAST_LAST = 12
_BLAST_SHARE = np.round(((np.arange(_BLAST_LAST + 1) + 1) / (_BLAST_LAST + 1)) ** 1.8, 4)
"""Slow at first, then quick, as on the machine: full size at three quarters."""

# First picture of the claw's end, by cause: below a shot, from here on pulsar or spike, fuseball.
_TORN = 8
_BURNT = 10
_TORN_LAST = 19
_SPLAT_LAST = len(shapes.SPLAT_STARS) - 1

_STAR_EYE, _STAR_UNIT = -24.0, 40.0
_PLANES = 8
_PLANE_PICTURES = len(shapes.STARS)
_FIRST_COLOURED_WAVE = 5


@rule
def _draw_blast(beam: Beam, x: float, z: float, size: float, sequence: int) -> None:
    share = _BLAST_SHARE[min(sequence, _BLAST_LAST)]
    draw_picture(beam, shapes.BLAST, x, z, _BLAST_RADIUS * size * share)


@rule
def _draw_splat(beam: Beam, x: float, z: float, size: float, sequence: int) -> None:
    """Draw the claw that was shot: nested stars."""
    for star in range(shapes.SPLAT_STARS[min(sequence, _SPLAT_LAST)]):
        draw_picture(beam, shapes.SPLAT, x, z, size * shapes.SPLAT_SIZES[star])


@rule
def _draw_torn_claw(beam: Beam, x: float, z: float, size: float, sequence: int) -> None:
    """Draw the claw that a pulsar or a spike tore: its pieces fly apart, ever faster."""
    if sequence > _TORN_LAST:
        return
    # The vector generator's scale: it doubles every four steps, in between it grows evenly.
    step = max(sequence - 1, 0)
    spread = size * (129 + 32 * (step & 3)) / 256.0 / (1 << (4 - (step >> 2)))
    for piece in range(len(shapes.PIECE_FLIGHT)):
        outline = shapes.PIECES[shapes.PIECE_STARTS[piece] : shapes.PIECE_STARTS[piece + 1]]
        piece_x = x + spread * shapes.PIECE_FLIGHT[piece, 0]
        piece_z = z + spread * shapes.PIECE_FLIGHT[piece, 1]
        draw_picture(beam, outline, piece_x, piece_z, size)
    draw_dots(beam, shapes.SPARKS, x, z, spread, palette.CLAW, FAINT)


@rule
def _draw_ashes(beam: Beam, x: float, z: float, size: float, sequence: int) -> None:
    """Draw the claw that a fuseball burnt: a cloud of dots."""
    draw_dots(beam, shapes.ASHES, x, z, size * (14.0 + 4.0 * sequence), palette.CLAW, NORMAL)


@rule
def _draw_points(beam: Beam, points: int, x: float, z: float, size: float, sequence: int) -> None:
    grown = max(size * (1.0 + sequence / 16.0), 1.0)  # legible even at the bottom of the well
    right = x + _POINTS_WIDTH * grown / 2.0
    write_number(beam, points, right, z - 12.0 * grown, grown, palette.WHITE)


@rule
def draw_explosions(beam: Beam, ram: Ram, camera: Camera) -> None:
    """Draw all explosions, by type: a blast, the claw's end, a fuseball's points."""
    for slot in range(BOOM_SLOTS):
        depth = float(ram.boom_depth[slot])
        if depth == 0.0:
            continue
        kind, sequence = ram.boom_type[slot], int64(ram.boom_seq[slot])
        x, z = lane_middle(camera, ram, ram.boom_lane[slot], depth)
        size = picture_size(camera, depth)
        if kind == _ENEMY:
            _draw_blast(beam, x, z, size, sequence)
        elif kind == _CLAW:
            if ram.death_picture[2] >= _BURNT:
                _draw_ashes(beam, x, z, size, sequence)
            elif ram.death_picture[2] >= _TORN:
                _draw_torn_claw(beam, x, z, size, sequence)
            else:
                _draw_splat(beam, x, z, size, sequence)
        elif _POINTS[kind] != 0:
            _draw_points(beam, _POINTS[kind], x, z, size, sequence)


@rule
def draw_stars(beam: Beam, ram: Ram, camera: Camera) -> None:
    """Draw the star field of a dive: up to eight planes that come towards the eye.

    On the first five levels all stars are blue; from the sixth on each plane has its colour.
    """
    if ram.star_field == 0:
        return
    for plane in range(_PLANES):
        depth = float(ram.star_plane[plane])
        if depth == 0.0:
            continue
        colour = int64(palette.WELL)
        if ram.cur_wave >= _FIRST_COLOURED_WAVE:
            colour = palette.PULSAR_OFF if plane == _PLANES - 1 else int64(plane)
        stars = shapes.STARS[plane % _PLANE_PICTURES]
        size = _STAR_UNIT / max(depth - _STAR_EYE, 1.0)
        draw_dots(beam, stars, 0.0, camera.screen_z, size, colour, FAINT)

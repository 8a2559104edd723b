"""Explosions and the star field."""

from __future__ import annotations

import numpy as np

from tempest_agent.envs.machine.memory import Ram

from . import palette, shapes
from .actors import lane_middle
from .canvas import Canvas
from .glyphs import text_lines, text_width
from .projection import Camera, Floats
from .well import Well

_BLAST_RADIUS = 66.0
_SHARDS_PICTURES = (8, 9)
_FUSE_PICTURES = 10
_SPLAT_END = 20
_POINTS = {2: "250", 3: "500", 4: "750"}
_STAR_EYE, _STAR_UNIT = -24.0, 40.0
_STAR_SPREAD = 700.0


def draw_explosions(canvas: Canvas, ram: Ram, camera: Camera, well: Well) -> None:
    """Draw all explosions, by type: a blast, the claw's end, a fuseball's points, a grab."""
    for slot in np.flatnonzero(ram["boom_depth"]).tolist():
        depth = float(ram["boom_depth"][slot])
        sequence = int(ram["boom_seq"][slot])
        kind = int(ram["boom_type"][slot])
        place = lane_middle(camera, well, [int(ram["boom_lane"][slot])], depth)
        size = float(camera.size(depth))
        if kind == 0:
            # Slow at first, then quick, as on the machine: full size at three quarters.
            radius = _BLAST_RADIUS * size * min((sequence + 1) / 13.0, 1.0) ** 1.8
            canvas.strokes((place + radius * ray for ray in shapes.BLAST), palette.WHITE)
        elif kind == 1:
            _draw_death(canvas, ram, place, size, sequence)
        elif kind in _POINTS:
            _draw_points(canvas, _POINTS[kind], place[0], size * (1.0 + sequence / 16.0))
        elif kind == 5:
            spread = size * (20.0 + 5.0 * sequence)
            canvas.dots(place + spread * shapes.SHARDS[:16], palette.CLAW)


def _draw_death(canvas: Canvas, ram: Ram, place: Floats, size: float, sequence: int) -> None:
    """Draw the claw's end: nested stars, or a cloud of shards for the quieter deaths."""
    picture = int(ram["death_picture"][2])
    shards = picture in _SHARDS_PICTURES and sequence < _SPLAT_END
    if picture >= _FUSE_PICTURES or shards or sequence >= _SPLAT_END:
        spread = size * (14.0 + 4.0 * sequence)
        canvas.dots(place + spread * shapes.SHARDS, palette.CLAW)
        return
    for first, star in zip(shapes.SPLAT_STEPS, shapes.SPLAT_SIZES, strict=True):
        if sequence < first:
            break
        for part in shapes.SPLAT:
            canvas.stroke(place + size * star * part.points, part.colour)


def _draw_points(canvas: Canvas, text: str, place: Floats, size: float) -> None:
    size = max(size, 1.0)  # legible even at the bottom of the well
    left, base = place - np.array((text_width(text, size) / 2.0, 12.0 * size))
    canvas.strokes(text_lines(text, float(left), float(base), size), palette.WHITE)


def draw_stars(canvas: Canvas, ram: Ram, camera: Camera) -> None:
    """Draw the star field of a dive: up to eight planes that come towards the eye."""
    planes = ram["star_plane"]
    live = np.flatnonzero(planes)
    if not int(ram["star_field"]) or len(live) == 0:
        return
    distance = np.maximum(planes[live].astype(np.float64) - _STAR_EYE, 1.0)
    spread = (_STAR_SPREAD * _STAR_UNIT / distance)[:, None, None]
    turns = live * 0.8
    rotation = np.array(((np.cos(turns), -np.sin(turns)), (np.sin(turns), np.cos(turns))))
    stars = np.einsum("ijp,nj->pni", rotation, shapes.STARS)
    points = stars * spread + np.array((0.0, camera.screen_z))
    colours = np.repeat(live % 6, len(shapes.STARS))
    canvas.dots(points, colours)

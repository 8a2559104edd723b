"""The well: spokes, rim and bottom, with the colours that play gives them."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tempest_agent.envs.machine.memory import (
    BOTTOM_DEPTH,
    KIND_FLIPPING,
    KIND_MASK,
    LANES,
    PULSAR,
    RIM_DEPTH,
    Ram,
)

from . import palette
from .canvas import Canvas
from .projection import Camera, Floats

_DATA = Path(__file__).resolve().parent.parent / "machine" / "data" / "wells.json"
_OFF_SCREEN = 1024.0
_NEAREST_RIM = 0x0C
_DIVING_RIM = 0x0F


class Shape(NamedTuple):
    """What the renderer needs of a well's shape and the image does not hold."""

    eye_z: float
    flip_radius: float


@lru_cache(maxsize=1)
def shapes() -> tuple[Shape, ...]:
    """Return the sixteen shapes by well number."""
    wells = json.loads(_DATA.read_text(encoding="utf-8"))["wells"]
    table = {}
    for well in wells:
        scale = well["flip_draw_scale"]
        # The leg of 0x2C world units is drawn at the vector generator's scale for the well.
        radius = 44.0 * (1.0 - scale["linear"] / 256.0) * 2.0 ** (4 - scale["binary"])
        table[well["well_id"]] = Shape(float(well["eye_z"]), radius)
    return tuple(table[number] for number in range(len(table)))


class Well(NamedTuple):
    """The well of one image.  Arrays are world coordinates, one entry for each spoke or lane."""

    x: Floats
    z: Floats
    mid_x: Floats
    mid_z: Floats
    open: bool
    flip_radius: float


def well_of(ram: Ram) -> Well:
    """Return the well that an image holds."""
    x = ram["lane_x"].astype(np.float64)
    z = ram["lane_z"].astype(np.float64)
    return Well(
        x,
        z,
        (x + np.roll(x, -1)) / 2.0,
        (z + np.roll(z, -1)) / 2.0,
        bool(ram["well_open"]),
        shapes()[int(ram["well_shape"]) & 0x0F].flip_radius,
    )


def rim_depth(camera: Camera) -> float:
    """Return the depth at which the rim is drawn: just ahead of an eye that dived through it."""
    if camera.depth >= 0 and RIM_DEPTH - camera.depth < _NEAREST_RIM:
        return min(camera.depth + _DIVING_RIM, float(BOTTOM_DEPTH))
    return float(RIM_DEPTH)


def spoke_colours(ram: Ram) -> list[int]:
    """Return the colour index of each spoke, as play paints them."""
    frame = int(ram["frame_counter"])
    zap = int(ram["zap_timer"])
    # 0xFF marks a dive, in which the zapper cannot be used.
    if 0 < zap < 0xFF:
        flash = frame & 7
        return [palette.CLAW if flash == 7 else flash] * LANES
    colours = [palette.WELL] * LANES
    if not int(ram["player_lane_ccw"]) & 0x80:
        lane = int(ram["player_lane"]) & 0x0F
        colours[lane] = colours[(lane + 1) % LANES] = palette.CLAW
    for lane, potent in pulsar_lanes(ram):
        if potent:
            colours[lane] = colours[(lane + 1) % LANES] = palette.WHITE if frame & 1 else 1
    return colours


def pulsar_lanes(ram: Ram) -> list[tuple[int, bool]]:
    """Return the lanes that hold a pulsar at rest in them, and whether it kills there now."""
    pulse_on = not int(ram["pulse_phase"]) & 0x80
    limit = int(ram["pulse_depth"])
    return [
        (int(lane) & 0x0F, pulse_on and depth < limit)
        for kind, lane, depth in zip(
            ram["enemy_kind"].tolist(),
            ram["enemy_lane"].tolist(),
            ram["enemy_depth"].tolist(),
            strict=True,
        )
        if depth and kind & KIND_MASK == PULSAR and not kind & KIND_FLIPPING
    ]


def draw_well(canvas: Canvas, ram: Ram, camera: Camera, well: Well, in_play: bool) -> None:
    """Draw sixteen spokes, the rim and the bottom; what lies off the screen is left out.

    Out of play no spoke is coloured and nothing covers the rim.
    """
    rim = camera.project(well.x, well.z, rim_depth(camera))
    bottom = camera.project(well.x, well.z, BOTTOM_DEPTH)
    colours = spoke_colours(ram) if in_play else [palette.WELL] * LANES
    for lane, colour in enumerate(colours):
        canvas.stroke(np.stack((bottom[lane], rim[lane])), colour)
    blank = {lane for lane, _ in pulsar_lanes(ram)} if in_play else set()
    for outline, gaps in ((rim, blank), (bottom, set[int]())):
        if np.abs(outline).max() >= _OFF_SCREEN:
            continue
        for line in _runs(outline, well.open, gaps):
            canvas.stroke(line, palette.WELL)


def _runs(outline: Floats, is_open: bool, gaps: set[int]) -> list[Floats]:
    """Return the outline as lines, broken at the lanes in ``gaps`` and at an open well's ends."""
    closed = np.concatenate((outline, outline[:1]))
    breaks = sorted(gaps | ({LANES - 1} if is_open else set()))
    runs, first = [], 0
    for lane in (*breaks, LANES):
        if lane > first:
            runs.append(closed[first : lane + 1])
        first = lane + 1
    return runs

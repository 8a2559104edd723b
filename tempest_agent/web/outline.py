"""A plain picture of a RAM image as coloured segments, until the renderer's own is compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.machine import memory as m
from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import Ram
from tempest_agent.envs.machine.tables import WELL_EYE_Z
from tempest_agent.envs.render.palette import CLAW, FLIPPER, GROUPS, SPIKER, WELL, WHITE
from tempest_agent.envs.render.projection import (
    CENTRE_X,
    FOCAL,
    ORIGIN_X,
    ORIGIN_Z,
    PIXELS_PER_X,
    PIXELS_PER_Z,
)
from tempest_agent.envs.render.shapes import CLAWS, TANKER
from tempest_agent.envs.render.shapes import FLIPPER as FLIPPER_LINE

MOST_SEGMENTS = 2048
SEGMENT = 6
"""Numbers of a segment: x, y and x, y of its ends on a picture of 480 x 640, colour, width."""

_RGB = GROUPS[..., 0].astype(np.int64) << 16 | GROUPS[..., 1].astype(np.int64) << 8 | GROUPS[..., 2]
_CLAWS = np.stack(CLAWS)
_TANKER = TANKER[0]


@rule
def _x_of(ram: Ram, x: float, depth: float) -> float:
    return ORIGIN_X + 0.5 + (x - CENTRE_X) * FOCAL / _ahead(ram, depth) * PIXELS_PER_X


@rule
def _y_of(ram: Ram, z: float, depth: float) -> float:
    screen = int64(ram.screen_z[0]) | int64(ram.screen_z[1]) << 8
    if screen >= 0x8000:
        screen -= 0x10000
    eye = float(WELL_EYE_Z[ram.well_shape & 15])
    high = (z - eye) * FOCAL / _ahead(ram, depth) + screen
    return ORIGIN_Z + 0.5 - high * PIXELS_PER_Z


@rule
def _ahead(ram: Ram, depth: float) -> float:
    eye = int64(ram.eye_depth_hi) << 8 | int64(ram.eye_depth_lo)
    if eye >= 0x8000:
        eye -= 0x10000
    return max(depth - eye, 1.0)


@rule
def _add(
    out: NDArray[np.float32], at: int, x: float, y: float, to_x: float, to_y: float, colour: int
) -> int:
    if at >= MOST_SEGMENTS:
        return at
    out[at, 0], out[at, 1], out[at, 2], out[at, 3] = x, y, to_x, to_y
    out[at, 4] = colour
    out[at, 5] = 1.0
    return at + 1


@rule
def _mark(
    ram: Ram, out: NDArray[np.float32], at: int, lane: int, depth: float, size: float, colour: int
) -> int:
    """Add a diamond in the middle of a lane."""
    beyond = (lane + 1) & 15
    x = _x_of(ram, (float(ram.lane_x[lane]) + float(ram.lane_x[beyond])) / 2, depth)
    y = _y_of(ram, (float(ram.lane_z[lane]) + float(ram.lane_z[beyond])) / 2, depth)
    size = size * 60.0 / _ahead(ram, depth) / 64.0
    for k in range(4):
        a, b = _TANKER[k], _TANKER[k + 1]
        at = _add(
            out, at, x + a[0] * size, y - a[1] * size, x + b[0] * size, y - b[1] * size, colour
        )
    return at


@rule
def _lane_picture(
    ram: Ram,
    out: NDArray[np.float32],
    at: int,
    lane: int,
    depth: float,
    line: NDArray[np.float64],
    colour: int,
) -> int:
    """Add a line that hangs on a lane's two spokes."""
    beyond = (lane + 1) & 15
    x, y = _x_of(ram, float(ram.lane_x[lane]), depth), _y_of(ram, float(ram.lane_z[lane]), depth)
    right = _x_of(ram, float(ram.lane_x[beyond]), depth) - x
    down = _y_of(ram, float(ram.lane_z[beyond]), depth) - y
    for k in range(len(line) - 1):
        a, b = line[k], line[k + 1]
        at = _add(
            out, at,
            x + a[0] * right - a[1] * down, y + a[0] * down + a[1] * right,
            x + b[0] * right - b[1] * down, y + b[0] * down + b[1] * right,
            colour,
        )  # fmt: skip
    return at


@rule
def draw_outline(ram: Ram, out: NDArray[np.float32]) -> int:
    """Write the segments ``(MOST_SEGMENTS, SEGMENT)``; return how many."""
    group = min((ram.cur_wave & 0x70) >> 4, 5)
    eye = int64(ram.eye_depth_hi) << 8 | int64(ram.eye_depth_lo)
    if eye >= 0x8000:
        eye -= 0x10000
    rim = max(16.0, float(eye + 8))
    at = 0
    me = int64(ram.player_lane) & 15
    for lane in range(16):
        beyond = (lane + 1) & 15
        x, y = float(ram.lane_x[lane]), float(ram.lane_z[lane])
        to_x, to_y = float(ram.lane_x[beyond]), float(ram.lane_z[beyond])
        near = lane == me or lane == (me + 1) & 15
        colour = _RGB[group, CLAW if near and ram.player_lane_ccw < 0x80 else WELL]
        at = _add(out, at, _x_of(ram, x, rim), _y_of(ram, y, rim), _x_of(ram, x, 240.0),
                  _y_of(ram, y, 240.0), colour)  # fmt: skip
        if ram.well_open != 0 and lane == 15:
            continue
        for depth in (rim, 240.0):
            at = _add(out, at, _x_of(ram, x, depth), _y_of(ram, y, depth), _x_of(ram, to_x, depth),
                      _y_of(ram, to_y, depth), _RGB[group, WELL])  # fmt: skip
        if ram.spike_depth[lane] != 0:
            tip = float(ram.spike_depth[lane])
            x, y = (x + to_x) / 2, (y + to_y) / 2
            at = _add(out, at, _x_of(ram, x, tip), _y_of(ram, y, tip), _x_of(ram, x, 240.0),
                      _y_of(ram, y, 240.0), _RGB[group, SPIKER])  # fmt: skip
    if ram.player_lane_ccw != 0x81:
        line = _CLAWS[(ram.rim_pos & 15) >> 1]
        at = _lane_picture(ram, out, at, me, float(ram.player_depth), line, _RGB[group, CLAW])
    for slot in range(m.ENEMY_SLOTS):
        depth = float(ram.enemy_depth[slot])
        if depth == 0:
            continue
        lane, kind = int64(ram.enemy_lane[slot]) & 15, int64(ram.enemy_kind[slot]) & m.KIND_MASK
        colour = _RGB[group, min(2 + ((kind + 1) % 5), 6)]
        if kind in (m.FLIPPER, m.PULSAR):
            at = _lane_picture(ram, out, at, lane, depth, FLIPPER_LINE, _RGB[group, FLIPPER + kind])
        else:
            at = _mark(ram, out, at, lane, depth, 64.0, colour)
    for slot in range(m.PLAYER_SHOT_SLOTS):
        if ram.player_shot_depth[slot] != 0:
            depth, lane = float(ram.player_shot_depth[slot]), int64(ram.player_shot_lane[slot]) & 15
            at = _mark(ram, out, at, lane, depth, 14.0, _RGB[group, CLAW])
    for slot in range(m.ENEMY_SHOT_SLOTS):
        if ram.enemy_shot_depth[slot] != 0:
            depth, lane = float(ram.enemy_shot_depth[slot]), int64(ram.enemy_shot_lane[slot]) & 15
            at = _mark(ram, out, at, lane, depth, 18.0, _RGB[group, WHITE])
    for slot in range(m.BOOM_SLOTS):
        if ram.boom_depth[slot] != 0:
            depth, lane = float(ram.boom_depth[slot]), int64(ram.boom_lane[slot]) & 15
            size = 8.0 * (1 + int64(ram.boom_seq[slot]))
            at = _mark(ram, out, at, lane, depth, size, _RGB[group, WHITE])
    return at

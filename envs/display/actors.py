"""The claw, and the enemies by kind."""

from __future__ import annotations

import numpy as np

from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import (
    CARGO_MASK,
    ENEMY_SLOTS,
    FLIPPER,
    FUSEBALL,
    KIND_FLIPPING,
    KIND_MASK,
    PULSAR,
    SPIKER,
    TANKER,
    Ram,
)
from tempest_agent.envs.machine.tables import WELL_FLIP_SCALE

from . import palette, shapes
from .beam import Beam, draw_along, draw_picture
from .camera import Camera, lane_middle, picture_size, project, spoke_point

DEAD_HIDDEN = 0x81
# Direction of a flipping enemy's leg, by its angle in sixteenths of a turn.
_LEG = np.array((44, 40, 31, 16, 0, -16, -31, -40, -44, -40, -31, -16, 0, 16, 31, 40)) / 44.0
# Its length in world units: 44 at the vector generator's scale for the well.
_FLIP_RADIUS = 44.0 * WELL_FLIP_SCALE
_PULSE_ON_AMPLITUDE = 0.375
_CARGO_PULSAR, _CARGO_FUSEBALL = 2, 3


@rule
def draw_claw(beam: Beam, ram: Ram, camera: Camera) -> None:
    """Draw the player's claw, unless its death has hidden it.

    A claw that was grabbed stays on show: its lane byte is 0x80, not 0x81.
    """
    if ram.player_lane_ccw == DEAD_HIDDEN:
        return
    lane, depth = int64(ram.player_lane), float(ram.player_depth)
    x0, z0 = spoke_point(camera, ram, lane, depth)
    x1, z1 = spoke_point(camera, ram, lane + 1, depth)
    posture = (int64(ram.rim_pos) & 0x0F) >> 1
    draw_along(beam, shapes.CLAWS[posture], x0, z0, x1, z1, 1.0, palette.CLAW)


@rule
def _ends(ram: Ram, camera: Camera, slot: int) -> tuple[float, float, float, float]:
    """Return the two screen points between which a flipper or pulsar hangs."""
    depth = float(ram.enemy_depth[slot])
    lane = int64(ram.enemy_lane[slot]) & 0x0F
    x0, z0 = spoke_point(camera, ram, lane, depth)
    if ram.enemy_kind[slot] & KIND_FLIPPING:
        angle = int64(ram.enemy_lane_ccw[slot]) & 0x0F
        radius = _FLIP_RADIUS[ram.well_shape & 0x0F]
        x = float(ram.lane_x[lane]) + _LEG[angle] * radius
        z = float(ram.lane_z[lane]) + _LEG[(angle - 4) & 0x0F] * radius
        x1, z1 = project(camera, x, z, depth)
    else:
        x1, z1 = spoke_point(camera, ram, lane + 1, depth)
    return x0, z0, x1, z1


@rule
def draw_flipper(beam: Beam, ram: Ram, camera: Camera, slot: int) -> None:
    x0, z0, x1, z1 = _ends(ram, camera, slot)
    draw_along(beam, shapes.FLIPPER, x0, z0, x1, z1, 1.0, palette.FLIPPER)


@rule
def _pulse_amplitude(phase: int) -> float:
    """Return the zigzag's height in lanes: full while the pulse is on, swelling up before."""
    if phase & 0x80 == 0:
        return _PULSE_ON_AMPLITUDE
    return _PULSE_ON_AMPLITUDE * max(1.0 - (0x100 - phase) / 80.0, 0.2)


@rule
def draw_pulsar(beam: Beam, ram: Ram, camera: Camera, slot: int) -> None:
    x0, z0, x1, z1 = _ends(ram, camera, slot)
    phase = int64(ram.pulse_phase)
    height = _pulse_amplitude(phase)
    colour = palette.PULSAR_OFF if phase & 0x80 else palette.WHITE
    draw_along(beam, shapes.PULSAR, x0, z0, x1, z1, height, colour)


@rule
def draw_tanker(beam: Beam, ram: Ram, camera: Camera, slot: int) -> None:
    """Draw the diamond, with the mark of what it carries."""
    depth = float(ram.enemy_depth[slot])
    x, z = lane_middle(camera, ram, ram.enemy_lane[slot], depth)
    size = picture_size(camera, depth)
    draw_picture(beam, shapes.TANKER, x, z, size)
    cargo = ram.enemy_flags[slot] & CARGO_MASK
    if cargo == _CARGO_PULSAR:
        draw_picture(beam, shapes.PULSAR_CARGO, x, z, size)
    elif cargo == _CARGO_FUSEBALL:
        draw_picture(beam, shapes.FUSEBALL_CARGO, x, z, size)


@rule
def draw_spiker(beam: Beam, ram: Ram, camera: Camera, slot: int) -> None:
    depth = float(ram.enemy_depth[slot])
    x, z = lane_middle(camera, ram, ram.enemy_lane[slot], depth)
    picture = shapes.SPIKERS[int64(ram.frame_counter) & 3]
    draw_picture(beam, picture, x, z, picture_size(camera, depth))


@rule
def draw_fuseball(beam: Beam, ram: Ram, camera: Camera, slot: int) -> None:
    """Draw the ball on its spoke, or on its way to the next one."""
    depth = float(ram.enemy_depth[slot])
    spoke = int64(ram.enemy_lane[slot]) & 0x0F
    x, z = spoke_point(camera, ram, spoke, depth)
    if ram.enemy_kind[slot] & KIND_FLIPPING:
        rolled = (int64(ram.enemy_lane_ccw[slot]) & 7) / 8.0
        x1, z1 = spoke_point(camera, ram, spoke + 1, depth)
        x, z = x + rolled * (x1 - x), z + rolled * (z1 - z)
    picture = shapes.FUSEBALLS[int64(ram.frame_counter) & 3]
    draw_picture(beam, picture, x, z, picture_size(camera, depth))


@rule
def draw_enemies(beam: Beam, ram: Ram, camera: Camera) -> None:
    """Draw all live enemies, each in its kind's picture."""
    for slot in range(ENEMY_SLOTS):
        kind = ram.enemy_kind[slot] & KIND_MASK
        if ram.enemy_depth[slot] == 0:
            continue
        if kind == FLIPPER:
            draw_flipper(beam, ram, camera, slot)
        elif kind == PULSAR:
            draw_pulsar(beam, ram, camera, slot)
        elif kind == TANKER:
            draw_tanker(beam, ram, camera, slot)
        elif kind == SPIKER:
            draw_spiker(beam, ram, camera, slot)
        elif kind == FUSEBALL:
            draw_fuseball(beam, ram, camera, slot)

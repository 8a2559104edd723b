"""Shots, spikes, and the enemies that wait below the well."""

from __future__ import annotations

from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import (
    BOTTOM_DEPTH,
    ENEMY_SHOT_SLOTS,
    LANES,
    PLAYER_SHOT_SLOTS,
    QUEUE_SLOTS,
    Ram,
)

from . import palette, shapes
from .beam import FAINT, NORMAL, Beam, dot, draw_dots, draw_picture, line
from .camera import Camera, lane_middle, picture_size, spoke_point

_QUEUE_DRAWN = 19
_QUEUE_FAR = 0x50


@rule
def draw_player_shots(beam: Beam, ram: Ram, camera: Camera) -> None:
    """Draw two rings of dots for each shot; the inner one warns when shots run out."""
    for slot in range(PLAYER_SHOT_SLOTS):
        depth = float(ram.player_shot_depth[slot])
        if depth != 0.0:
            x, z = lane_middle(camera, ram, ram.player_shot_lane[slot], depth)
            size = picture_size(camera, depth)
            draw_dots(beam, shapes.SHOT_RING, x, z, size, palette.CLAW, NORMAL)
            draw_dots(beam, shapes.SHOT_CORE, x, z, size, palette.SHOT_CORE, NORMAL)


@rule
def draw_enemy_shots(beam: Beam, ram: Ram, camera: Camera) -> None:
    """Draw four whirling strokes around four dots for each shot."""
    picture = shapes.ENEMY_SHOTS[int64(ram.frame_counter) & 3]
    for slot in range(ENEMY_SHOT_SLOTS):
        depth = float(ram.enemy_shot_depth[slot])
        if depth != 0.0:
            x, z = lane_middle(camera, ram, ram.enemy_shot_lane[slot], depth)
            size = picture_size(camera, depth)
            draw_picture(beam, picture, x, z, size)
            draw_dots(beam, shapes.ENEMY_SHOT_CORE, x, z, size, palette.FLIPPER, NORMAL)


@rule
def draw_spikes(beam: Beam, ram: Ram, camera: Camera) -> None:
    """Draw a line up the middle of each spiked lane, with a dot at its tip."""
    for lane in range(LANES):
        depth = float(ram.spike_depth[lane])
        if depth != 0.0:
            foot_x, foot_z = lane_middle(camera, ram, lane, float(BOTTOM_DEPTH))
            tip_x, tip_z = lane_middle(camera, ram, lane, depth)
            line(beam, foot_x, foot_z, tip_x, tip_z, palette.SPIKER, NORMAL)
            dot(beam, tip_x, tip_z, palette.WHITE, NORMAL)


@rule
def draw_queue(beam: Beam, ram: Ram, camera: Camera) -> None:
    """Draw the waiting enemies as dots between the vanishing point and the well's bottom."""
    drawn = 0
    slot = QUEUE_SLOTS - 1
    while slot >= 0 and drawn < _QUEUE_DRAWN:
        timer = int64(ram.queue_depth[slot])
        if timer != 0:
            drawn += 1
            far_x, far_z = spoke_point(camera, ram, ram.queue_lane[slot], float(BOTTOM_DEPTH))
            share = (1.0 - (timer & 0x3F) / 256.0) / (1 << (timer >> 6))
            z = camera.screen_z + (far_z - camera.screen_z) * share
            dot(beam, far_x * share, z, palette.NYMPH, FAINT)
            # The beam has no time for all: far ones are drawn in every other slot.
            if timer >= _QUEUE_FAR:
                slot -= 1
        slot -= 1

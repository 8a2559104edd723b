"""Everything that moves in the well: claw, enemies, shots, spikes and the waiting queue."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.machine.memory import (
    BOTTOM_DEPTH,
    FLIPPER,
    FUSEBALL,
    KIND_FLIPPING,
    KIND_MASK,
    LANES,
    PULSAR,
    QUEUE_SLOTS,
    SPIKER,
    TANKER,
    Ram,
)

from . import palette, shapes
from .canvas import Canvas
from .projection import Camera, Floats, along_lane
from .well import Well

# Direction of a flipping enemy's leg, by its angle in sixteenths of a turn.
_LEG = np.array((44, 40, 31, 16, 0, -16, -31, -40, -44, -40, -31, -16, 0, 16, 31, 40)) / 44.0
_QUEUE_DRAWN = 19
_PULSE_ON_AMPLITUDE = 0.375
_CARGO_PULSAR, _CARGO_FUSEBALL = 2, 3


def lane_ends(camera: Camera, well: Well, lane: int, depth: float) -> tuple[Floats, Floats]:
    """Return the screen points of a lane's two spokes at ``depth``."""
    pair = np.array((lane % LANES, (lane + 1) % LANES))
    ends = camera.project(well.x[pair], well.z[pair], depth)
    return ends[0], ends[1]


def lane_middle(
    camera: Camera, well: Well, lanes: NDArray[Any] | list[int], depth: Floats | float
) -> Floats:
    """Return the screen points in the middle of lanes, shape (n, 2)."""
    where = np.asarray(lanes, np.intp) & 0x0F
    return camera.project(well.mid_x[where], well.mid_z[where], depth)


def draw_claw(canvas: Canvas, ram: Ram, camera: Camera, well: Well) -> None:
    """Draw the player's claw, unless its death has hidden it.

    A claw that was grabbed stays on show: its lane byte is 0x80, not 0x81.
    """
    if int(ram["player_lane_ccw"]) == 0x81:
        return
    posture = (int(ram["rim_pos"]) & 0x0F) >> 1
    start, end = lane_ends(camera, well, int(ram["player_lane"]), float(ram["player_depth"]))
    canvas.stroke(along_lane(start, end, shapes.CLAWS[posture]), palette.CLAW)


def draw_enemies(canvas: Canvas, ram: Ram, camera: Camera, well: Well) -> None:
    """Draw all live enemies, each in its kind's picture."""
    for slot in np.flatnonzero(ram["enemy_depth"]).tolist():
        kind = int(ram["enemy_kind"][slot])
        if kind & KIND_MASK in (FLIPPER, PULSAR):
            _draw_lane_walker(canvas, ram, camera, well, slot, kind)
        elif kind & KIND_MASK in (TANKER, SPIKER):
            _draw_climber(canvas, ram, camera, well, slot, kind & KIND_MASK)
        elif kind & KIND_MASK == FUSEBALL:
            _draw_fuseball(canvas, ram, camera, well, slot, kind)


def _draw_lane_walker(
    canvas: Canvas, ram: Ram, camera: Camera, well: Well, slot: int, kind: int
) -> None:
    depth = float(ram["enemy_depth"][slot])
    lane = int(ram["enemy_lane"][slot]) & 0x0F
    if kind & KIND_FLIPPING:
        angle = int(ram["enemy_lane_ccw"][slot]) & 0x0F
        x = well.x[lane] + np.array((0.0, _LEG[angle])) * well.flip_radius
        z = well.z[lane] + np.array((0.0, _LEG[angle - 4])) * well.flip_radius
        start, end = camera.project(x, z, depth)
    else:
        start, end = lane_ends(camera, well, lane, depth)
    if kind & KIND_MASK == FLIPPER:
        canvas.stroke(along_lane(start, end, shapes.FLIPPER), palette.FLIPPER)
        return
    phase = int(ram["pulse_phase"])
    # The zigzag is full while the pulse is on and swells up from almost flat before it.
    amplitude, colour = _PULSE_ON_AMPLITUDE, palette.WHITE
    if phase & 0x80:
        amplitude *= max(1.0 - (0x100 - phase) / 80.0, 0.2)
        colour = palette.PULSAR_OFF
    canvas.stroke(along_lane(start, end, shapes.pulsar(amplitude)), colour)


def _draw_climber(
    canvas: Canvas, ram: Ram, camera: Camera, well: Well, slot: int, kind: int
) -> None:
    depth = float(ram["enemy_depth"][slot])
    place = lane_middle(camera, well, [int(ram["enemy_lane"][slot])], depth)
    size = camera.size(depth)
    if kind == SPIKER:
        turn = int(ram["frame_counter"]) & 3
        canvas.stroke(place + size * shapes.SPIKERS[turn], palette.SPIKER)
        return
    canvas.strokes((place + size * line for line in shapes.TANKER), palette.TANKER)
    cargo = int(ram["enemy_flags"][slot]) & 0x03
    if cargo == _CARGO_PULSAR:
        canvas.stroke(place + size * shapes.PULSAR_CARGO, palette.PULSAR_OFF)
    elif cargo == _CARGO_FUSEBALL:
        for part in shapes.FUSEBALL_CARGO:
            canvas.stroke(place + size * part.points, part.colour)


def _draw_fuseball(
    canvas: Canvas, ram: Ram, camera: Camera, well: Well, slot: int, kind: int
) -> None:
    depth = float(ram["enemy_depth"][slot])
    spoke = int(ram["enemy_lane"][slot]) & 0x0F
    rolled = (int(ram["enemy_lane_ccw"][slot]) & 7) / 8.0 if kind & KIND_FLIPPING else 0.0
    start, end = lane_ends(camera, well, spoke, depth)
    place = start + rolled * (end - start)
    size = camera.size(depth)
    for part in shapes.FUSEBALLS[int(ram["frame_counter"]) & 3]:
        canvas.stroke(place + size * part.points, part.colour)


def draw_player_shots(canvas: Canvas, ram: Ram, camera: Camera, well: Well) -> None:
    """Draw two rings of dots for each shot; the inner one warns when shots run out."""
    depth = ram["player_shot_depth"]
    live = np.flatnonzero(depth)
    if len(live) == 0:
        return
    depths = depth[live].astype(np.float64)
    places = lane_middle(camera, well, ram["player_shot_lane"][live], depths)[:, None, :]
    sizes = camera.size(depths)[:, None, None]
    canvas.dots(places + sizes * shapes.SHOT_RING, palette.CLAW)
    canvas.dots(places + sizes * shapes.SHOT_CORE, palette.SHOT_CORE)


def draw_enemy_shots(canvas: Canvas, ram: Ram, camera: Camera, well: Well) -> None:
    """Draw four whirling strokes around four dots for each shot."""
    depth = ram["enemy_shot_depth"]
    live = np.flatnonzero(depth)
    if len(live) == 0:
        return
    depths = depth[live].astype(np.float64)
    places = lane_middle(camera, well, ram["enemy_shot_lane"][live], depths)
    sizes = camera.size(depths)
    strokes = shapes.ENEMY_SHOTS[int(ram["frame_counter"]) & 3]
    for place, size in zip(places, sizes.tolist(), strict=True):
        canvas.strokes((place + size * line for line in strokes), palette.WHITE)
    canvas.dots(places[:, None, :] + sizes[:, None, None] * shapes.ENEMY_SHOT_CORE, palette.FLIPPER)


def draw_spikes(canvas: Canvas, ram: Ram, camera: Camera, well: Well) -> None:
    """Draw a line up the middle of each spiked lane, with a dot at its tip."""
    depth = ram["spike_depth"]
    lanes = np.flatnonzero(depth)
    if len(lanes) == 0:
        return
    tips = lane_middle(camera, well, lanes, depth[lanes].astype(np.float64))
    feet = lane_middle(camera, well, lanes, BOTTOM_DEPTH)
    canvas.strokes(np.stack((feet, tips), axis=1), palette.SPIKER)
    canvas.dots(tips, palette.WHITE)


def draw_queue(canvas: Canvas, ram: Ram, camera: Camera, well: Well) -> None:
    """Draw the waiting enemies as dots between the vanishing point and the well's bottom."""
    timers = ram["queue_depth"].tolist()
    drawn: list[int] = []
    slot = QUEUE_SLOTS - 1
    while slot >= 0 and len(drawn) < _QUEUE_DRAWN:
        if timers[slot]:
            drawn.append(slot)
            # The beam has no time for all: far ones are drawn in every other slot.
            slot -= timers[slot] >= 0x50
        slot -= 1
    if not drawn:
        return
    timer = ram["queue_depth"][drawn].astype(np.float64)
    lanes = ram["queue_lane"][drawn].astype(np.intp) & 0x0F
    far = camera.project(well.x[lanes], well.z[lanes], BOTTOM_DEPTH)
    vanishing = np.array((0.0, camera.screen_z))
    share = 0.5 ** np.floor(timer / 64.0) * (1.0 - (timer % 64.0) / 256.0)
    canvas.dots(vanishing + (far - vanishing) * share[:, None], palette.NYMPH)

"""The well: spokes, rim and bottom, with the colours that play gives them."""

from __future__ import annotations

from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import (
    BOTTOM_DEPTH,
    ENEMY_SLOTS,
    KIND_FLIPPING,
    KIND_MASK,
    LANES,
    PULSAR,
    RIM_DEPTH,
    Ram,
)

from . import palette
from .beam import NORMAL, Beam, line
from .camera import Camera, spoke_point

_OFF_SCREEN = 1024.0
_NEAREST_RIM = 0x0C
_DIVING_RIM = 0x0F
_DIVING_ZAP = 0xFF
_FLASH_IDLE = 0x80


@rule
def rim_depth(camera: Camera) -> float:
    """Return the depth at which the rim is drawn: just ahead of an eye that dived through it."""
    if camera.depth >= 0 and RIM_DEPTH - camera.depth < _NEAREST_RIM:
        return min(camera.depth + _DIVING_RIM, float(BOTTOM_DEPTH))
    return float(RIM_DEPTH)


@rule
def _pulsar_lanes(ram: Ram, potent_only: bool) -> int:
    """Return the lanes that hold a pulsar at rest in them, one bit each, or only those it
    kills in now."""
    pulse_on = (ram.pulse_phase & 0x80) == 0
    lanes = int64(0)
    for slot in range(ENEMY_SLOTS):
        kind = ram.enemy_kind[slot]
        depth = ram.enemy_depth[slot]
        if depth == 0 or kind & KIND_MASK != PULSAR or kind & KIND_FLIPPING:
            continue
        if not potent_only or (pulse_on and depth < ram.pulse_depth):
            lanes |= 1 << (int64(ram.enemy_lane[slot]) & 0x0F)
    return lanes


@rule
def _touches(lanes: int, spoke: int) -> bool:
    """Return whether one of the two lanes beside a spoke is in a set of lanes."""
    return (lanes >> spoke) & 1 != 0 or (lanes >> ((spoke - 1) % LANES)) & 1 != 0


@rule
def _spoke_colour(ram: Ram, spoke: int, potent: int) -> int:
    """Return the colour of a spoke in play; ``potent`` are the lanes where a pulsar kills."""
    frame = int64(ram.frame_counter)
    # 0xFF marks a dive, in which the zapper cannot be used.
    if 0 < ram.zap_timer < _DIVING_ZAP:
        return palette.CLAW if frame & 7 == 7 else frame & 7
    if ram.life_flash < _FLASH_IDLE:
        colour = (spoke + ((int64(ram.life_flash) & 0x0E) >> 1)) & 7
        return palette.FLIPPER if colour == 7 else colour
    if _touches(potent, spoke):
        return palette.WHITE if frame & 1 else palette.CLAW
    if ram.player_lane_ccw & 0x80 == 0 and _touches(1 << (int64(ram.player_lane) & 0x0F), spoke):
        return palette.CLAW
    return palette.WELL


@rule
def _draw_outline(beam: Beam, ram: Ram, camera: Camera, depth: float, gaps: int) -> None:
    """Draw the well's outline at ``depth`` without the lanes in ``gaps``, if all of it is near
    the screen."""
    for spoke in range(LANES):
        x, z = spoke_point(camera, ram, spoke, depth)
        if max(abs(x), abs(z)) >= _OFF_SCREEN:
            return
    for lane in range(LANES):
        if (gaps >> lane) & 1 == 0:
            x0, z0 = spoke_point(camera, ram, lane, depth)
            x1, z1 = spoke_point(camera, ram, lane + 1, depth)
            line(beam, x0, z0, x1, z1, palette.WELL, NORMAL)


@rule
def draw_well(beam: Beam, ram: Ram, camera: Camera, in_play: bool) -> None:
    """Draw sixteen spokes, the rim and the bottom.

    Out of play no spoke is coloured and nothing covers the rim.
    """
    rim = rim_depth(camera)
    potent = _pulsar_lanes(ram, True) if in_play else int64(0)
    for spoke in range(LANES):
        x0, z0 = spoke_point(camera, ram, spoke, BOTTOM_DEPTH)
        x1, z1 = spoke_point(camera, ram, spoke, rim)
        colour = _spoke_colour(ram, spoke, potent) if in_play else int64(palette.WELL)
        line(beam, x0, z0, x1, z1, colour, NORMAL)
    open_side = int64(1 << (LANES - 1)) if ram.well_open else int64(0)
    covered = _pulsar_lanes(ram, False) if in_play else int64(0)
    _draw_outline(beam, ram, camera, rim, open_side | covered)
    _draw_outline(beam, ram, camera, float(BOTTOM_DEPTH), open_side)

"""How a life ended, read from the RAM image at the end of the deadly tick."""

from __future__ import annotations

from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import (
    BOOM_SLOTS,
    ENEMY_SLOTS,
    FLIPPER,
    FUSEBALL,
    KIND_FLIPPING,
    KIND_MASK,
    PULSAR,
    STATE_WARP,
    Ram,
)

from .motion import pulse_turns, signed_byte

GRAB, PULSE, FUSE, ENEMY_SHOT, SPIKE = range(5)
DEATH_CAUSES = ("grab", "pulsar", "fuseball", "enemy_shot", "spike")
"""Names of the causes, in the order of their numbers."""

_GRABBED = 0x80
_FIRST_BOOM_STEP = 3


@rule
def _pulse_was_on(ram: Ram) -> bool:
    """Return whether pulsars could kill in the last tick: the clock moves after the enemies."""
    phase = signed_byte(int64(ram.pulse_phase))
    step = signed_byte(int64(ram.pulse_step))
    if pulse_turns(phase):
        step = -step
    return phase - step >= 0


@rule
def _just_exploded(ram: Ram) -> bool:
    """Return whether an enemy near enough to pulse was shot in the player's lane in this tick."""
    depths = ram.boom_depth
    kinds = ram.boom_type
    steps = ram.boom_seq
    lanes = ram.boom_lane
    found = False
    for slot in range(BOOM_SLOTS):
        fresh = kinds[slot] == 0 and steps[slot] == _FIRST_BOOM_STEP
        here = lanes[slot] == ram.player_lane and 0 < depths[slot] < ram.pulse_depth
        found = found or (fresh and here)
    return found


@rule
def death_cause(ram: Ram) -> int:
    """Return the number of the cause of death, an index into ``DEATH_CAUSES``.

    ``ram`` is the image right after the tick in which the player died.  The image alone decides,
    so this works on the simulator, on the real machine and on recordings.  A pulsar that a shot of
    the player removed in the same tick is known by its empty slot and its explosion.
    """
    if ram.game_state == STATE_WARP:
        return SPIKE
    if ram.player_lane_ccw == _GRABBED:
        return GRAB
    lane = ram.player_lane
    depths = ram.enemy_depth
    lanes = ram.enemy_lane
    kinds = ram.enemy_kind
    for slot in range(ENEMY_SLOTS):
        at_player = lanes[slot] == lane and depths[slot] == ram.player_depth
        if at_player and kinds[slot] & KIND_MASK == FUSEBALL:
            return FUSE
    if not _pulse_was_on(ram):
        return ENEMY_SHOT
    for slot in range(ENEMY_SLOTS):
        if lanes[slot] != lane or kinds[slot] & KIND_FLIPPING:
            continue
        kind = kinds[slot] & KIND_MASK
        if depths[slot] == 0:
            if kind == PULSAR and _just_exploded(ram):
                return PULSE
        elif kind == PULSAR and depths[slot] < ram.pulse_depth:
            return PULSE
        elif kind == FLIPPER and depths[slot] == ram.player_depth:
            # A pulsar on arrival beside another walker loses its type; a flipper would have
            # grabbed the player.
            return PULSE
    return ENEMY_SHOT

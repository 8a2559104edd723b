"""What an enemy's program will turn to next: how soon, to which side, and how often."""

from __future__ import annotations

from tempest_agent.envs.game_state.motion import kind_of
from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import KIND_CCW, KIND_FLIPPING, LANES, PULSAR, Ram
from tempest_agent.envs.machine.programs import (
    P_AVOIDER,
    P_RIM,
    P_SPIRAL,
    P_SPIRAL_ALTERNATE,
    P_STEP8_FLIP,
    PROGRAM_STARTS,
)

from .enemy_programs import PULSAR_MOVED, STEP8_MOVING, next_direction
from .pulsars import forecast_pulse, ticks_before_flip
from .table import AHEAD, Table

UNKNOWN = -1
FIRST_RUN, SECOND_RUN = 2, 3
"""Flips one way, then the other, of the program that alternates."""
STEP8_LENGTH = 8
"""Ticks between two flips of the program that pauses."""

_SECOND_RUN = PROGRAM_STARTS["SPIRAL_ALTERNATE.d"]
_RUNS = PROGRAM_STARTS["SPIRAL_ALTERNATE.b"]
_AVOIDER_RESTS = PROGRAM_STARTS["AVOIDER.c"]


@rule
def ticks_to_flip(ram: Ram, table: Table, slot: int) -> int:
    """Return the tick in which an enemy in its lane starts to flip; UNKNOWN for those who may not.

    For a pulsar with a flip beyond the foreseen ticks, the ticks until it may.
    """
    address = int64(ram.enemy_script_pc[slot])
    if kind_of(ram, slot) == PULSAR:
        if address == PULSAR_MOVED and int64(ram.enemy_loop[slot]) > AHEAD:
            return int64(ram.enemy_loop[slot]) - 1
        forecast_pulse(ram, table)
        return ticks_before_flip(ram, table, slot)
    if address == STEP8_MOVING or address >= _AVOIDER_RESTS:
        return max(int64(ram.enemy_loop[slot]) - 1, 0)
    if address == P_STEP8_FLIP:
        return STEP8_LENGTH
    if not P_SPIRAL <= address < P_RIM:
        return 0 if address == P_AVOIDER else UNKNOWN
    moves = address in (P_SPIRAL, P_SPIRAL_ALTERNATE)
    moves |= address > _SECOND_RUN and int64(ram.enemy_loop[slot]) == 1
    return int(moves)


@rule
def flips_before_turn(ram: Ram, slot: int) -> int:
    """Return the flips one way that an alternating enemy has still to make or end; 0 for others."""
    address = int64(ram.enemy_script_pc[slot])
    if not P_SPIRAL_ALTERNATE <= address < P_RIM:
        return 0
    left = int64(ram.enemy_loop[slot])
    if ram.enemy_kind[slot] & KIND_FLIPPING:
        return left
    if address < _RUNS:
        return FIRST_RUN
    if left > 1:
        return left - 1
    return SECOND_RUN if address < _SECOND_RUN else FIRST_RUN


@rule
def flip_goes_up(ram: Ram, slot: int, player_lane: int) -> bool:
    """Return whether the next flip of an enemy in its lane goes towards higher numbers.

    ``player_lane``: where the player is then; pulsars aim at it, and avoiders turn away.
    """
    open_well = ram.well_open != 0
    lane = int64(ram.enemy_lane[slot]) & 15
    address = int64(ram.enemy_script_pc[slot])
    up = int64(ram.enemy_kind[slot]) & KIND_CCW != 0
    if kind_of(ram, slot) == PULSAR or address >= P_AVOIDER:
        apart = player_lane - lane
        if not open_well:
            apart = ((apart + LANES // 2) & 15) - LANES // 2
        up = (apart >= 0) == (address < P_AVOIDER)
    elif _RUNS <= address < P_RIM and int64(ram.enemy_loop[slot]) == 1:
        up = not up
    return next_direction(open_well, lane, up)

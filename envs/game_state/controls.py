"""What the controls do: the claw's place, legal superzaps, ticks that need no decision."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.arcade.player import OPEN_RIM_END, player_alive
from tempest_agent.envs.arcade.superzapper import ZAPS_PER_WAVE
from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import (
    ENEMY_SLOTS,
    STATE_END_LIFE,
    STATE_END_WAVE,
    STATE_LEVEL_ENTRY,
    STATE_NEW_LIFE,
    STATE_NEW_LIFE_2,
    STATE_PAUSE,
    STATE_PLAY,
    STATE_WARP,
    Ram,
)

REACH = 2
"""Most lanes that one tick's move can cross."""

_STATES_WITHOUT_INPUT = (
    STATE_PAUSE,
    STATE_LEVEL_ENTRY,
    STATE_NEW_LIFE,
    STATE_NEW_LIFE_2,
    STATE_END_LIFE,
    STATE_END_WAVE,
)


@rule
def anybody_alive(ram: Ram) -> bool:
    """Return whether an enemy is in the well or on its rim; waiting nymphs do not count."""
    depth = ram.enemy_depth
    alive = 0
    for slot in range(ENEMY_SLOTS):
        alive |= int64(depth[slot])
    return alive != 0


@rule
def zap_legal(ram: Ram) -> bool:
    """Return whether a superzap in the next tick would start and could kill an enemy.

    The machine would also accept, and waste, one with no enemy alive: that is ruled out here.
    """
    return bool(
        ram.game_state == STATE_PLAY
        and ram.zap_uses < ZAPS_PER_WAVE
        and ram.zap_timer == 0
        and player_alive(ram)
        and anybody_alive(ram)
    )


@rule
def rim_position(ram: Ram) -> int:
    """Return the player's place on the rim in sixteenths of a lane, as the next move uses it."""
    place = int64(ram.rim_pos)
    if ram.well_open:
        return min(place, OPEN_RIM_END)
    return place


@rule
def place_after(ram: Ram, spins: NDArray[np.int8], delay: int) -> int:
    """Return the place on the rim after the first ``delay`` of the knob counts ``spins``."""
    place = rim_position(ram)
    for tick in range(delay):
        place -= int64(spins[tick])
        if ram.well_open:
            place = min(max(place, 0), OPEN_RIM_END)
        else:
            place &= 0xFF
    return place


@rule
def needs_no_input(ram: Ram) -> bool:
    """Return whether the next tick is one of those that ``skip_idle`` plays by itself.

    These are the ticks of a dead player, and the states that only lead from one stretch of play
    to the next.  In two of those (pause, level entry) the machine would let a living player move,
    but nothing can happen to him.
    """
    state = ram.game_state
    if state in (STATE_PLAY, STATE_WARP):
        return not player_alive(ram)
    return state in _STATES_WITHOUT_INPUT

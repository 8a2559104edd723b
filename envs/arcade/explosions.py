"""Explosions: eight slots; while any is active a wave cannot end and a death cannot proceed."""

from __future__ import annotations

import numpy as np

from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import BOOM_SLOTS, Ram, byte_table

BOOM_ENEMY = 0
BOOM_PLAYER = 1
BOOM_FUSEBALL_250 = 2
BOOM_FUSEBALL_500 = 3
BOOM_FUSEBALL_750 = 4
BOOM_GRAB = 5

_STEP = byte_table([3, 1, 3, 3, 3, 3], 0, np.uint8)
_LIMIT = byte_table([16, 21, 32, 32, 32, 16], 0, np.uint8)


@rule
def start_explosion(ram: Ram, kind: int, lane: int, depth: int) -> None:
    """Put an explosion into the highest free slot, or over the one that has run longest."""
    slot = -1
    for i in range(BOOM_SLOTS - 1, -1, -1):
        if ram.boom_depth[i] == 0:
            slot = i
            break
    if slot < 0:
        oldest = int64(-1)
        for i in range(BOOM_SLOTS - 1, -1, -1):
            if int64(ram.boom_seq[i]) >= oldest:
                oldest = int64(ram.boom_seq[i])
                slot = i
    else:
        ram.explosion_count += 1
    ram.boom_lane[slot] = lane
    ram.boom_type[slot] = kind
    ram.boom_depth[slot] = depth
    ram.boom_seq[slot] = 0


@rule
def advance_explosions(ram: Ram) -> None:
    """Advance every explosion by one step."""
    if ram.explosion_count == 0:
        return
    for i in range(BOOM_SLOTS - 1, -1, -1):
        if ram.boom_depth[i] != 0:
            kind = ram.boom_type[i]
            ram.boom_seq[i] += _STEP[kind]
            if ram.boom_seq[i] >= _LIMIT[kind]:
                ram.boom_depth[i] = 0
                ram.explosion_count -= 1


@rule
def clear_explosions(ram: Ram) -> None:
    for i in range(BOOM_SLOTS):
        ram.boom_depth[i] = 0
    ram.explosion_count = 0

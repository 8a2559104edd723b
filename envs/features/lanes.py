"""The observation of a lane besides its enemies: its shape, spike, shots and nymphs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.game_state.motion import enemy_shot_speed, flip_length
from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import (
    ENEMY_SHOT_SLOTS,
    LANES,
    OPEN_LANES,
    PLAYER_SHOT_SLOTS,
    QUEUE_SLOTS,
    Ram,
)

from . import layout as at
from .codes import FULL, nearness, put_nearer, share, soon
from .layout import LANE_FEATURES

_NYMPH_SETTLED = 0x40


@rule
def write_lanes(ram: Ram, me: int, out: NDArray[np.int8]) -> None:
    """Write what every lane has: whether it exists, its spike, and the turn to its neighbour."""
    spike = ram.spike_depth
    player_depth = int64(ram.player_depth)
    lanes = OPEN_LANES if ram.well_open else LANES
    for lane in range(lanes):
        base = ((lane - me) & 15) * LANE_FEATURES
        out[base + at.EXISTS] = FULL
        if lane < lanes - 1 or lanes == LANES:
            out[base + at.FLIP_STEPS] = share(flip_length(ram, lane + 1), 16)
        tip = int64(spike[lane])
        if tip != 0:
            out[base + at.SPIKE] = FULL
            out[base + at.SPIKE_NEARNESS] = nearness(tip)
            out[base + at.SPIKE_MARGIN] = max(-FULL, min(FULL, 4 * (tip - player_depth)))


@rule
def write_shots(ram: Ram, me: int, out: NDArray[np.int8]) -> None:
    """Write the player's shots and the enemies' shots."""
    depth = ram.player_shot_depth
    lanes = ram.player_shot_lane
    for slot in range(PLAYER_SHOT_SLOTS):
        if depth[slot] != 0:
            base = ((int64(lanes[slot]) - me) & 15) * LANE_FEATURES
            near = nearness(int64(depth[slot]))
            out[base + at.OWN_SHOT] = FULL
            put_nearer(out, base + at.OWN_SHOT_NEAREST, near)
            farthest = out[base + at.OWN_SHOT_FARTHEST]
            if farthest == 0 or near < farthest:
                out[base + at.OWN_SHOT_FARTHEST] = near
    depth = ram.enemy_shot_depth
    lanes = ram.enemy_shot_lane
    fraction = ram.enemy_shot_frac
    speed = enemy_shot_speed(ram)
    for slot in range(ENEMY_SHOT_SLOTS):
        if depth[slot] != 0:
            base = ((int64(lanes[slot]) - me) & 15) * LANE_FEATURES
            if out[base + at.ENEMY_SHOT] != 0:
                out[base + at.ENEMY_SHOTS_MORE] = FULL
            out[base + at.ENEMY_SHOT] = FULL
            put_nearer(out, base + at.ENEMY_SHOT_NEARNESS, nearness(int64(depth[slot])))
            left = (int64(depth[slot]) - ram.player_depth) * 256 + fraction[slot]
            put_nearer(out, base + at.ENEMY_SHOT_ARRIVAL, soon(left // speed, 32))


@rule
def write_nymphs(ram: Ram, me: int, out: NDArray[np.int8]) -> None:
    """Write the nymphs that wait below a lane and no longer leave it."""
    timers = ram.queue_depth
    lanes = ram.queue_lane
    count = int64(ram.queue_count)
    found = 0
    for i in range(QUEUE_SLOTS):
        if found == count:
            break
        timer = int64(timers[i])
        if timer == 0:
            continue
        found += 1
        lane = int64(lanes[i])
        if timer >= _NYMPH_SETTLED or (ram.well_open and lane >= OPEN_LANES):
            continue
        base = ((lane - me) & 15) * LANE_FEATURES
        out[base + at.NYMPH] = FULL
        put_nearer(out, base + at.NYMPH_HATCH, soon(timer - 1, 64))

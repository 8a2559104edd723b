"""Shots in flight, and the enemies' fire."""

from __future__ import annotations

from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import (
    BOTTOM_DEPTH,
    ENEMY_SHOT_SLOTS,
    ENEMY_SLOTS,
    FLAG_MAY_FIRE,
    KIND_FLIPPING,
    PLAYER_SHOT_SLOTS,
    Ram,
    byte_table,
)
from tempest_agent.envs.machine.randomness import Source, draw

from .player import PICTURE_SHOT, kill_player, player_alive
from .score import add_points

SHOT_SPEED = 9
SHOT_SPEED_IN_SPIKE = 5
SPIKE_HITS_PER_SHOT = 2
FIRE_DEPTH = 0x30
"""Enemies nearer than this do not fire."""

_FIRE_LIMIT = byte_table([0x00, 0xE0, 0xF0, 0xFA, 0xFF], 0xFF)
"""Random byte needed to fire, by number of enemy shots in flight."""


@rule
def move_shots(ram: Ram) -> None:
    """Move the enemy shots, then the player's."""
    if ram.enemy_shot_count != 0:
        for shot in range(ENEMY_SHOT_SLOTS - 1, -1, -1):
            if ram.enemy_shot_depth[shot] != 0:
                move_enemy_shot(ram, shot)
    if ram.player_shot_count != 0:
        for shot in range(PLAYER_SHOT_SLOTS - 1, -1, -1):
            if ram.player_shot_depth[shot] != 0:
                move_player_shot(ram, shot)


@rule
def move_enemy_shot(ram: Ram, shot: int) -> None:
    speed = (int64(ram.enemy_shot_speed_int) << 8) | int64(ram.enemy_shot_speed_frac)
    depth = (int64(ram.enemy_shot_depth[shot]) << 8) | int64(ram.enemy_shot_frac[shot])
    depth = (depth + speed) & 0xFFFF
    ram.enemy_shot_frac[shot] = depth & 0xFF
    ram.enemy_shot_depth[shot] = depth >> 8
    if (depth >> 8) < int64(ram.player_depth):
        ram.enemy_shot_count -= 1
        ram.enemy_shot_depth[shot] = 0
        if ram.enemy_shot_lane[shot] == ram.player_lane and player_alive(ram):
            kill_player(ram, PICTURE_SHOT)


@rule
def move_player_shot(ram: Ram, shot: int) -> None:
    """Move a shot; one that meets a spike cuts it back, slows, cuts again and is spent."""
    step = SHOT_SPEED if ram.player_shot_hits[shot] == 0 else SHOT_SPEED_IN_SPIKE
    depth = (int64(ram.player_shot_depth[shot]) + step) & 0xFF
    ram.player_shot_depth[shot] = depth
    lane = int64(ram.player_shot_lane[shot])
    tip = int64(ram.spike_depth[lane])
    if tip != 0:
        if depth >= tip:
            ram.spike_depth[lane] = depth if depth < BOTTOM_DEPTH else 0
            ram.spike_dirty[lane] = 0xC0
            ram.player_shot_hits[shot] += 1
            add_points(ram, 1)
        if ram.player_shot_hits[shot] >= SPIKE_HITS_PER_SHOT:
            ram.player_shot_depth[shot] = 0
            ram.player_shot_count -= 1
            return
    if depth >= BOTTOM_DEPTH:
        ram.player_shot_depth[shot] = 0
        ram.player_shot_count -= 1


@rule
def enemy_fire(ram: Ram, source: Source) -> None:
    if not player_alive(ram):
        return
    for slot in range(ENEMY_SLOTS - 1, -1, -1):
        if (
            int64(ram.enemy_depth[slot]) >= FIRE_DEPTH
            and (ram.enemy_flags[slot] & FLAG_MAY_FIRE) != 0
        ):
            if 0 < ram.enemy_fire_timer[slot] <= 0x80:
                ram.enemy_fire_timer[slot] -= 1
            elif (ram.enemy_kind[slot] & KIND_FLIPPING) == 0:
                try_to_fire(ram, source, slot)


@rule
def try_to_fire(ram: Ram, source: Source, slot: int) -> None:
    if draw(source, 0xA2CC) < _FIRE_LIMIT[ram.enemy_shot_count]:
        return
    for shot in range(int64(ram.enemy_shot_top_slot), -1, -1):
        if ram.enemy_shot_depth[shot] == 0:
            ram.enemy_shot_depth[shot] = ram.enemy_depth[slot]
            ram.enemy_shot_lane[shot] = ram.enemy_lane[slot]
            ram.enemy_shot_lane_ccw[shot] = ram.enemy_lane_ccw[slot]
            ram.enemy_fire_timer[slot] = ram.enemy_fire_delay
            ram.enemy_shot_count += 1
            return


@rule
def clear_shots(ram: Ram) -> None:
    for shot in range(PLAYER_SHOT_SLOTS):
        ram.player_shot_depth[shot] = 0
    for shot in range(ENEMY_SHOT_SLOTS):
        ram.enemy_shot_depth[shot] = 0
    ram.player_shot_count = 0
    ram.enemy_shot_count = 0

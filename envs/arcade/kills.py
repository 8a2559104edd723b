"""Destroying enemies: explosion, removal, the split of a tanker, points."""

from __future__ import annotations

import numpy as np

from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import (
    CARGO_MASK,
    FUSEBALL,
    KIND_CCW,
    KIND_FLIPPING,
    KIND_MASK,
    Ram,
    byte_table,
)
from tempest_agent.envs.machine.randomness import Source, draw

from .explosions import BOOM_ENEMY, BOOM_FUSEBALL_250, start_explosion
from .score import add_points
from .spawn import CARGO_KIND, create_split_child

_POINTS = byte_table([150, 200, 100, 50, 150], 0)
"""By kind; the fuseball's is what the superzapper pays."""

_FUSEBALL_PRIZE = np.array([0, 1, 2, 0, 0, 0, 0, 0], np.int64)
_FUSEBALL_POINTS = np.array([250, 500, 750], np.int64)


@rule
def shoot_enemy(ram: Ram, source: Source, slot: int) -> None:
    """Kill an enemy that a player shot hit."""
    if (int64(ram.enemy_kind[slot]) & KIND_MASK) == FUSEBALL:
        prize = _FUSEBALL_PRIZE[draw(source, 0xA31A) & 0x07]
        start_explosion(ram, BOOM_FUSEBALL_250 + prize, ram.enemy_lane[slot], ram.enemy_depth[slot])
        remove_enemy(ram, slot)
        add_points(ram, _FUSEBALL_POINTS[prize])
        return
    destroy_enemy(ram, source, slot)


@rule
def zap_enemy(ram: Ram, source: Source, slot: int) -> None:
    """Kill an enemy struck by the superzapper, its cargo with it."""
    ram.enemy_flags[slot] &= 0xFF - CARGO_MASK
    destroy_enemy(ram, source, slot)


@rule
def destroy_enemy(ram: Ram, source: Source, slot: int) -> None:
    kind = int64(ram.enemy_kind[slot])
    lane = int64(ram.enemy_lane[slot])
    if (kind & KIND_FLIPPING) != 0 and (kind & KIND_CCW) != 0:
        lane = (lane - 1) & 0x0F
    start_explosion(ram, BOOM_ENEMY, lane, ram.enemy_depth[slot])
    if (ram.enemy_flags[slot] & CARGO_MASK) != 0:
        split_tanker(ram, source, slot)
    else:
        remove_enemy(ram, slot)
    # The machine looks the points up after the split, from the enemy in the slot then.
    add_points(ram, _POINTS[int64(ram.enemy_kind[slot]) & KIND_MASK])


@rule
def remove_enemy(ram: Ram, slot: int) -> None:
    """Free a slot and keep the counts as the machine does, oddities included."""
    kind = int64(ram.enemy_kind[slot]) & KIND_MASK
    if ram.enemy_depth[slot] == ram.player_depth and kind != FUSEBALL:
        ram.enemies_on_rim -= 1
    else:
        ram.enemies_in_well -= 1
    ram.kind_count[kind] -= 1
    ram.enemy_depth[slot] = 0


@rule
def split_tanker(ram: Ram, source: Source, slot: int) -> None:
    """Replace a tanker by up to two of what it carries, in the lanes beside it."""
    kind = CARGO_KIND[int64(ram.enemy_flags[slot]) & CARGO_MASK]
    depth = int64(ram.enemy_depth[slot])
    lane = int64(ram.enemy_lane[slot])
    remove_enemy(ram, slot)
    is_open = ram.well_open != 0
    first = (lane - 1) & 0x0F
    if is_open and first == 0x0F:
        first = 0
    create_split_child(ram, source, kind, first, depth, False)
    second = (first + 2) & 0x0F
    if is_open and second == 0x0F:
        second = 0x0E
    create_split_child(ram, source, kind, second, depth, True)

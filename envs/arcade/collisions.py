"""Player shots against enemies and enemy shots."""

from __future__ import annotations

from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import (
    ENEMY_SHOT_SLOTS,
    ENEMY_SLOTS,
    FUSEBALL,
    KIND_MASK,
    PLAYER_SHOT_SLOTS,
    Ram,
)
from tempest_agent.envs.machine.randomness import Source

from .explosions import BOOM_ENEMY, start_explosion
from .kills import shoot_enemy


@rule
def collide_all_shots(ram: Ram, source: Source) -> None:
    if ram.player_shot_count == 0:
        return
    for shot in range(PLAYER_SHOT_SLOTS - 1, -1, -1):
        if ram.player_shot_depth[shot] != 0:
            collide_shot(ram, source, shot)


@rule
def collide_shot(ram: Ram, source: Source, shot: int) -> None:
    """Test one player shot against everything; it may destroy several things, then it is spent."""
    depth = int64(ram.player_shot_depth[shot])
    hit = False
    for slot in range(ENEMY_SLOTS - 1, -1, -1):
        if ram.enemy_depth[slot] != 0 and shot_hits_enemy(ram, shot, slot):
            shoot_enemy(ram, source, slot)
            hit = True
    if ram.enemy_shot_count != 0:
        for other in range(ENEMY_SHOT_SLOTS - 1, -1, -1):
            other_depth = int64(ram.enemy_shot_depth[other])
            if (
                other_depth != 0
                and abs(other_depth - depth) < int64(ram.shot_shot_range)
                and ram.enemy_shot_lane[other] == ram.player_shot_lane[shot]
            ):
                start_explosion(ram, BOOM_ENEMY, ram.enemy_shot_lane[other], other_depth)
                ram.enemy_shot_depth[other] = 0
                ram.enemy_shot_count -= 1
                hit = True
    if hit:
        ram.player_shot_depth[shot] = 0
        ram.player_shot_hits[shot] = 0
        ram.player_shot_count -= 1


@rule
def shot_hits_enemy(ram: Ram, shot: int, slot: int) -> bool:
    """Return whether a player shot, where it is now, hits a live enemy."""
    depth = int64(ram.enemy_depth[slot])
    kind = int64(ram.enemy_kind[slot]) & KIND_MASK
    if abs(depth - int64(ram.player_shot_depth[shot])) >= int64(ram.hit_range[kind]):
        return False
    at_rim = depth == int64(ram.player_depth)
    turning = (ram.enemy_lane_ccw[slot] & 0x80) != 0
    lane = ram.enemy_lane[slot]
    if kind == FUSEBALL:
        return not at_rim and turning and lane == ram.player_shot_lane[shot]
    if turning:
        return lane == ram.player_shot_lane_ccw[shot] or lane == ram.player_shot_lane[shot]
    return not at_rim and lane == ram.player_shot_lane[shot]

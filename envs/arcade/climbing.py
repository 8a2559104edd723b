"""Moving along a lane: up to the rim and down again, spikes, pulsars, fuseballs."""

from __future__ import annotations

from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import (
    BOTTOM_DEPTH,
    CARGO_MASK,
    ENEMY_SLOTS,
    FLAG_MOVING_DOWN,
    FLIPPER,
    FUSEBALL,
    KIND_CCW,
    KIND_FLIPPING,
    KIND_MASK,
    PULSAR,
    TANKER,
    Ram,
)
from tempest_agent.envs.machine.programs import P_FUSE, P_PULSAR, P_RIM, P_STRAIGHT
from tempest_agent.envs.machine.randomness import Source, draw

from .flips import aim, chase, start_roll, toggle_vertical
from .kills import split_tanker
from .player import PICTURE_BURNT, PICTURE_ELECTRIFIED, kill_player
from .spawn import CARGO_KIND, SPLIT_NEAR_RIM

BELOW_BOTTOM = 0xF2
NEAR_RIM = 0x20
FUSE_TURN_DEPTH = 0x80
FUSE_CHASE_AT_RIM = 0x80
FUSE_CHASE_IN_WELL = 0x40
EARLY_LEVELS = 17
"""Below this level index fuseballs turn before they reach the rim."""


@rule
def move(ram: Ram, source: Source, slot: int) -> bool:
    """Run operation MOVE; return True if the enemy split and its turn is over."""
    if (ram.enemy_flags[slot] & FLAG_MOVING_DOWN) != 0:
        sink(ram, slot, int64(ram.enemy_kind[slot]) & KIND_MASK)
        return False
    return rise(ram, source, slot, int64(ram.enemy_kind[slot]) & KIND_MASK)


@rule
def add_speed(ram: Ram, slot: int, speed_kind: int, sign: int) -> int:
    """Add (or subtract) a kind's speed to depth and fraction; return the new depth."""
    speed = (int64(ram.speed_int[speed_kind]) << 8) | int64(ram.speed_frac[speed_kind])
    depth = (int64(ram.enemy_depth[slot]) << 8) | int64(ram.enemy_depth_frac[slot])
    depth = (depth + sign * speed) & 0xFFFF
    ram.enemy_depth_frac[slot] = depth & 0xFF
    ram.enemy_depth[slot] = depth >> 8
    return depth >> 8


@rule
def rise(ram: Ram, source: Source, slot: int, speed_kind: int) -> bool:
    """Climb one step at the speed of ``speed_kind``; return True if a tanker split."""
    depth = add_speed(ram, slot, speed_kind, 1)
    if depth <= int64(ram.player_depth):
        arrive_at_rim(ram, slot)
        return False
    cargo = int64(ram.enemy_flags[slot]) & CARGO_MASK
    if depth >= SPLIT_NEAR_RIM or cargo == 0:
        return False
    split_tanker(ram, source, slot)
    child = CARGO_KIND[cargo]
    if child == FLIPPER:
        ram.enemy_script_pc[slot] = P_STRAIGHT
    elif child == PULSAR:
        ram.enemy_script_pc[slot] = P_PULSAR
    else:
        ram.enemy_script_pc[slot] = P_FUSE
    return True


@rule
def sink(ram: Ram, slot: int, speed_kind: int) -> None:
    if add_speed(ram, slot, speed_kind, -1) >= BOTTOM_DEPTH:
        ram.enemy_depth[slot] = BELOW_BOTTOM


@rule
def arrive_at_rim(ram: Ram, slot: int) -> None:
    """Let an enemy that reached the player's depth walk the rim, or send it back down."""
    ram.enemy_depth[slot] = ram.player_depth
    kind = int64(ram.enemy_kind[slot])
    if (kind & KIND_MASK) == PULSAR and ram.queue_count != 0:
        toggle_vertical(ram, slot)
        return
    if (kind & KIND_FLIPPING) != 0:
        ram.enemy_depth[slot] += 1
        return
    ram.enemies_in_well -= 1
    if ram.enemies_on_rim == 1:
        # The whole byte becomes the other walker's opposite direction: a pulsar turns flipper.
        other = int64(ram.projected_z_hi_spoke8)
        for i in range(ENEMY_SLOTS - 1, -1, -1):
            if i != slot and ram.enemy_depth[i] != 0 and ram.enemy_depth[i] == ram.player_depth:
                other = int64(ram.enemy_kind[i])
                break
        ram.enemy_kind[slot] = (other ^ KIND_CCW) & KIND_CCW
    else:
        aim(ram, slot)
    ram.enemy_script_pc[slot] = P_RIM
    ram.enemies_on_rim += 1


@rule
def grow_spike(ram: Ram, source: Source, slot: int) -> int:
    """Run operation SPIKE, for spikers; return the status flag, 0 if it has become a tanker."""
    lane = int64(ram.enemy_lane[slot])
    depth = int64(ram.enemy_depth[slot])
    if ram.spike_depth[lane] == 0:
        ram.spike_depth[lane] = 0xF1
    if depth < int64(ram.spike_depth[lane]):
        ram.spike_depth[lane] = depth
        ram.spike_dirty[lane] = 0x80
    if depth < NEAR_RIM:
        ram.enemy_flags[slot] |= FLAG_MOVING_DOWN
        ram.enemy_depth[slot] = NEAR_RIM
        return 1
    if depth >= BELOW_BOTTOM:
        return hop(ram, source, slot)
    return 1


@rule
def hop(ram: Ram, source: Source, slot: int) -> int:
    """Move a spiker at the bottom to the lane with the shortest spike; return the status flag."""
    lane = draw(source, 0xA031) & 0x0F
    best = int64(0)
    best_lane = lane
    for _ in range(16):
        if ram.well_open == 0 or lane != 0x0F:
            tip = int64(ram.spike_depth[lane])
            if tip == 0:
                tip = int64(0xFF)
            if tip >= best:
                best = tip
                best_lane = lane
        lane = (lane - 1) & 0x0F
    ram.enemy_lane[slot] = best_lane
    ram.enemy_lane_ccw[slot] = (best_lane + 1) & 0x0F
    ram.enemy_flags[slot] &= 0xFF - FLAG_MOVING_DOWN
    ram.enemy_depth[slot] = BOTTOM_DEPTH
    if ram.queue_count != 0:
        return 1
    ram.enemy_kind[slot] = (int64(ram.enemy_kind[slot]) & (0xFF - KIND_MASK)) | TANKER
    ram.enemy_flags[slot] = (int64(ram.enemy_flags[slot]) & (0xFF - CARGO_MASK)) | 1
    return 0


@rule
def above_spike(ram: Ram, slot: int) -> int:
    """Run operation ONSPIKE?; return 0 while the enemy is deeper than its lane's spike."""
    tip = int64(ram.spike_depth[ram.enemy_lane[slot]])
    if tip == 0:
        tip = int64(0xFF)
    return 0 if int64(ram.enemy_depth[slot]) > tip else 1


@rule
def in_player_lane(ram: Ram, slot: int) -> bool:
    """Return whether the enemy stands, not flipping, in the lane of a living player."""
    return (
        ram.enemy_lane[slot] == ram.player_lane and ram.enemy_lane_ccw[slot] == ram.player_lane_ccw
    )


@rule
def pulsing(ram: Ram) -> int:
    """Run operation PULSING?; return 0 if the pulse is off, also four steps later."""
    phase = int64(ram.pulse_phase)
    ahead = (4 * int64(ram.pulse_step) + phase) & 0xFF
    return 0 if (ahead & phase & 0x80) != 0 else 0x80


@rule
def move_pulsar(ram: Ram, source: Source, slot: int) -> None:
    """Run operation PULSARMOVE: oscillate between rim and potency depth, electrify the lane."""
    potency = int64(ram.pulse_depth)
    if (ram.enemy_flags[slot] & FLAG_MOVING_DOWN) != 0:
        sink(ram, slot, PULSAR)
        reached = int64(ram.enemy_depth[slot]) if ram.queue_count != 0 else int64(0xFF)
        if reached >= potency:
            toggle_vertical(ram, slot)
    else:
        near = int64(ram.enemy_depth[slot]) < potency
        rise(ram, source, slot, PULSAR if near else FLIPPER)
    pulse_on = (ram.pulse_phase & 0x80) == 0
    if pulse_on and int64(ram.enemy_depth[slot]) < potency and in_player_lane(ram, slot):
        kill_player(ram, PICTURE_ELECTRIFIED)


@rule
def advance_pulse(ram: Ram) -> None:
    """Advance the clock that all pulsars share."""
    phase = (int64(ram.pulse_phase) + int64(ram.pulse_step)) & 0xFF
    ram.pulse_phase = phase
    if 0x0F <= phase < 0xC1:
        ram.pulse_step = -int64(ram.pulse_step) & 0xFF


@rule
def move_fuseball(ram: Ram, source: Source, slot: int) -> None:
    """Run operation FUSEMOVE: along the spoke, now and then off to a neighbouring one."""
    if (ram.enemy_flags[slot] & FLAG_MOVING_DOWN) != 0:
        sink(ram, slot, FUSEBALL)
        if int64(ram.enemy_depth[slot]) >= FUSE_TURN_DEPTH:
            turn_fuseball(ram, source, slot, (ram.fuse_chase & FUSE_CHASE_IN_WELL) != 0)
        else:
            maybe_turn_fuseball(ram, source, slot)
        return
    depth = add_speed(ram, slot, FUSEBALL, 1)
    at_rim = depth < int64(ram.player_depth)
    if at_rim:
        ram.enemy_depth[slot] = ram.player_depth
    elif ram.queue_count == 0:
        return
    if at_rim or (ram.cur_wave < EARLY_LEVELS and depth < NEAR_RIM):
        turn_fuseball(ram, source, slot, (ram.fuse_chase & FUSE_CHASE_AT_RIM) != 0)
    else:
        maybe_turn_fuseball(ram, source, slot)


@rule
def turn_fuseball(ram: Ram, source: Source, slot: int, chasing: bool) -> None:
    if chasing:
        chase(ram, slot)
        return
    if (draw(source, 0x9F8F) & 0x40) != 0:
        ram.enemy_kind[slot] |= KIND_CCW
    else:
        ram.enemy_kind[slot] &= 0xFF - KIND_CCW
    start_roll(ram, slot)


@rule
def maybe_turn_fuseball(ram: Ram, source: Source, slot: int) -> None:
    """Turn at random in every other band of 32 depths."""
    if (ram.enemy_depth[slot] & 0x20) == 0:
        return
    if draw(source, 0x9F66) >= int64(ram.fuse_move_threshold):
        chasing = (ram.fuse_chase & FUSE_CHASE_IN_WELL) != 0 and (slot & 1) != 0
        turn_fuseball(ram, source, slot, chasing)


@rule
def fuseball_kills(ram: Ram, slot: int) -> None:
    """Run operation FUSEKILL?: kill on contact at the rim, in the lane above the spoke byte."""
    if ram.enemy_depth[slot] == ram.player_depth and ram.enemy_lane[slot] == ram.player_lane:
        kill_player(ram, PICTURE_BURNT)

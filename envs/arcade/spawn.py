"""New enemies: which kind hatches, what it is born with, and where it is put."""

from __future__ import annotations

from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import (
    BOTTOM_DEPTH,
    CARGO_MASK,
    ENEMY_SLOTS,
    FLAG_MAY_FIRE,
    FLIPPER,
    FUSEBALL,
    KIND_CCW,
    PULSAR,
    SPIKER,
    TANKER,
    Ram,
    byte_table,
)
from tempest_agent.envs.machine.programs import P_FUSE, P_PULSAR, P_SPIKER, P_STRAIGHT
from tempest_agent.envs.machine.randomness import Source, draw

CARGO_KIND = byte_table([FLIPPER, FLIPPER, PULSAR, FUSEBALL], FLIPPER)
"""Kind that cargo 1, 2 or 3 releases."""

LONG_SPIKE = 0xCC
SPLIT_NEAR_RIM = 0x20


@rule
def hatch(ram: Ram, source: Source, lane: int) -> bool:
    """Turn a waiting enemy into a live one at the bottom of ``lane``; return False if none fits."""
    openings = ram.kind_openings
    kinds = count_openings(ram)
    if kinds == 0:
        return False
    if kinds == 1:
        for kind in range(5):
            if openings[kind] != 0:
                if ram.kind_min[kind] == 0:
                    return False
                return create(ram, source, kind, lane) >= 0
    for kind in range(4, -1, -1):
        below_minimum = ram.kind_count[kind] < ram.kind_min[kind]
        if openings[kind] != 0 and below_minimum and create(ram, source, kind, lane) >= 0:
            return True
    if openings[SPIKER] != 0 and openings[TANKER] != 0:
        tip = int64(ram.spike_depth[lane])
        kind = TANKER if 0 < tip < LONG_SPIKE else SPIKER
        if create(ram, source, kind, lane) >= 0:
            return True
    return hatch_any(ram, source, lane)


@rule
def hatch_any(ram: Ram, source: Source, lane: int) -> bool:
    """Try the kinds from a random one downwards."""
    kind = (draw(source, 0x9A61) & 0x03) + 1
    tries = 5
    while tries > 0:
        tries -= 1
        if ram.kind_min[kind] != 0 and ram.kind_openings[kind] != 0:
            result = create(ram, source, kind, lane)
            if result >= 0:
                return True
            if kind == TANKER and result <= _NO_CARGO:
                # The cargo search shares the machine's try counter and leaves its draw there.
                tries = _NO_CARGO - result
        kind = kind - 1 if kind > 0 else 4
    return False


@rule
def count_openings(ram: Ram) -> int:
    """Fill kind_openings and return how many kinds have any."""
    openings = ram.kind_openings
    total = int64(0)
    for kind in range(5):
        spare = int64(ram.kind_max[kind]) - int64(ram.kind_count[kind])
        openings[kind] = max(spare, 0)
        total += int64(ram.kind_count[kind])
    for slot in range(ENEMY_SLOTS - 1, -1, -1):
        if ram.enemy_depth[slot] != 0:
            cargo = int64(ram.enemy_flags[slot]) & CARGO_MASK
            if cargo != 0:
                # No floor: what wraps below 0 counts as wide open in the next step.
                openings[CARGO_KIND[cargo]] -= 2
    free = (7 - total) & 0xFF
    kinds = 0
    for kind in range(5):
        if openings[kind] > free:
            openings[kind] = free
        if openings[kind] != 0:
            kinds += 1
    return kinds


_NO_SLOT = -1
_NO_CARGO = -2


@rule
def create(ram: Ram, source: Source, kind: int, lane: int) -> int:
    """Create one enemy of ``kind`` at the bottom; return its slot, or a negative number on failure.

    A tanker that finds no cargo returns ``-2 - r``, r the random number that its search began with.
    """
    flags = birth_flags(ram, kind)
    if kind == TANKER:
        first = draw(source, 0x9ABB) & 0x03
        entry = first
        cargo = int64(0)
        for _ in range(4):
            entry = entry - 1 if entry > 0 else 3
            candidate = int64(ram.tanker_cargo[entry])
            if ram.kind_openings[CARGO_KIND[candidate]] != 0:
                cargo = candidate
                break
        if cargo == 0:
            return _NO_CARGO - first
        flags |= cargo
    return place(ram, source, kind, kind, flags, birth_program(ram, kind), lane, BOTTOM_DEPTH)


@rule
def create_split_child(
    ram: Ram, source: Source, kind: int, lane: int, depth: int, second: bool
) -> None:
    """Create one of the two enemies that a tanker releases, if a slot is free."""
    flags = birth_flags(ram, kind)
    program = birth_program(ram, kind)
    if depth < SPLIT_NEAR_RIM:
        if kind == FLIPPER:
            program = P_STRAIGHT
        elif kind == PULSAR:
            flags = 0
    motion = kind | KIND_CCW if second else kind
    place(ram, source, kind, motion, flags, program, lane, depth)


@rule
def birth_flags(ram: Ram, kind: int) -> int:
    if kind == PULSAR:
        return int64(ram.pulsar_fire)
    if kind == FUSEBALL:
        return int64(0)
    return int64(FLAG_MAY_FIRE)


@rule
def birth_program(ram: Ram, kind: int) -> int:
    if kind == FLIPPER:
        return int64(ram.flipper_script)
    if kind == PULSAR:
        return int64(P_PULSAR)
    if kind == TANKER:
        return int64(P_STRAIGHT)
    if kind == SPIKER:
        return int64(P_SPIKER)
    return int64(P_FUSE)


@rule
def place(
    ram: Ram,
    source: Source,
    kind: int,
    motion: int,
    flags: int,
    program: int,
    lane: int,
    depth: int,
) -> int:
    """Fill the highest free slot and return it, or -1.

    Depth fraction and loop counter stay as the slot's last enemy left them.
    """
    for slot in range(int64(ram.enemy_top_slot), -1, -1):
        if ram.enemy_depth[slot] == 0:
            if ram.well_open != 0 and lane == 0x0F:
                lane = draw(source, 0x9967) & 0x0E
            ram.enemy_kind[slot] = motion
            ram.enemy_flags[slot] = flags
            ram.enemy_script_pc[slot] = program
            ram.enemy_fire_timer[slot] = 0
            ram.enemy_depth[slot] = depth
            ram.enemy_lane[slot] = lane
            ram.enemy_lane_ccw[slot] = (lane + 1) & 0x0F
            ram.enemies_in_well += 1
            ram.kind_count[kind] += 1
            return slot
    return _NO_SLOT

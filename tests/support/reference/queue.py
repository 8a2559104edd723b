"""The waiting queue, and how what hatches from it is chosen and placed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import cells as c
from .programs import LABELS

if TYPE_CHECKING:
    from .machine import Machine


def lane_bit(lane: int) -> int:
    """A lane's bit in the claim mask; lanes L and 15-L share one."""
    return 0x80 >> lane if lane < 8 else 1 << (lane - 8)


def move_queue(g: Machine) -> None:
    """Every entry one nearer, turning about the well, hatching at 0."""
    m = g.m
    active = (m[c.TUBE_COUNT] + m[c.RIM_COUNT]) & 0xFF
    blocked = active > 6 or m[c.ZAP_TIMER] != 0
    claimed = 0
    for i in range(63, -1, -1):
        timer = c.QUEUE_TIMER + i
        lane = c.QUEUE_LANE + i
        if m[timer] == 0:
            continue
        if not blocked:
            m.add(timer, -1)
            if m[timer] == 0:
                if hatch(g, m[lane]):
                    m.add(c.QUEUE_COUNT, -1)
                    continue
                m[timer] = 1
                blocked = True
            elif m[timer] == 0x3F and claimed & lane_bit(m[lane]):
                m[timer] = 0x40
        if m[timer] >= 0x40:
            if m[c.FRAME] % 2 == 0:
                m[lane] = (m[lane] + 1) % 16
        elif m[timer] >= 0x20:
            claimed |= lane_bit(m[lane])
    m[c.CLAIM] = claimed
    m[c.CLAIM_COPY] = claimed


def carried_kind(cargo: int) -> int:
    """Kind of a tanker's children."""
    return {1: c.FLIPPER, 2: c.PULSAR, 3: c.FUSEBALL}[cargo]


def openings(g: Machine) -> list[int]:
    """How many of each kind may still come, the machine's wrap-around included."""
    m = g.m
    count = [m[c.KIND_COUNT + t] for t in range(5)]
    most = [m[c.KIND_MAX + t] for t in range(5)]
    out = [max(0, most[t] - count[t]) for t in range(5)]
    for slot in range(6, -1, -1):
        cargo = m[c.FLAGS + slot] & 3
        if m[c.DEPTH + slot] and cargo:
            kind = carried_kind(cargo)
            out[kind] = (out[kind] - 2) & 0xFF
    free = (7 - sum(count)) & 0xFF
    return [min(n, free) for n in out]


def hatch(g: Machine, lane: int) -> bool:
    """Choose a kind for a waiting enemy and put it into the well; False if none can come."""
    m = g.m
    room = openings(g)
    least = [m[c.KIND_MIN + t] for t in range(5)]
    possible = [t for t in range(5) if room[t]]
    if not possible:
        return False
    if len(possible) == 1:
        return least[possible[0]] != 0 and create(g, possible[0], lane, room)[0]
    for t in (4, 3, 2, 1, 0):
        if room[t] and m[c.KIND_COUNT + t] < least[t] and create(g, t, lane, room)[0]:
            return True
    if room[c.SPIKER] and room[c.TANKER]:
        height = m[c.SPIKE + lane] or 255
        if create(g, c.TANKER if height < 0xCC else c.SPIKER, lane, room)[0]:
            return True
    return hatch_at_random(g, lane, room, least)


def hatch_at_random(g: Machine, lane: int, room: list[int], least: list[int]) -> bool:
    """Try kinds downwards from a random one."""
    t = (g.draw(0x9A61) & 3) + 1
    tries = 5
    while tries:
        tries -= 1
        if least[t] and room[t]:
            made, drawn = create(g, t, lane, room)
            if made:
                return True
            if t == c.TANKER:
                # The failed search for a cargo leaves its random number in the try counter.
                tries = drawn
        t = (t - 1) % 5
    return False


def create(g: Machine, kind: int, lane: int, room: list[int]) -> tuple[bool, int]:
    """A new enemy at the bottom: whether it was made, and the cargo number drawn."""
    m = g.m
    if kind != c.TANKER:
        return place_enemy(g, kind, lane, 0xF0, 0), 0
    drawn = g.draw(0x9ABB) & 3
    r = drawn
    for _ in range(4):
        r = (r - 1) % 4
        cargo = m[c.CARGO + r]
        if room[carried_kind(cargo)]:
            return place_enemy(g, kind, lane, 0xF0, 0, cargo), drawn
    return False, drawn


def place_enemy(
    g: Machine, kind: int, lane: int, depth: int, rotation: int, cargo: int = 0
) -> bool:
    """Fill the highest free slot; False if there is none.

    The fraction of the depth and the loop counter are left as the slot's last user had them.
    """
    m = g.m
    free = [slot for slot in range(7) if m[c.DEPTH + slot] == 0]
    if not free:
        return False
    slot = free[-1]
    if lane == 15 and m[c.WELL_OPEN]:
        lane = g.draw(0x9967) & 14
    near = depth < 0x20
    flags = {
        c.FLIPPER: 0x40,
        c.PULSAR: 0 if near else m[c.PULSAR_FIRE],
        c.TANKER: 0x40 | cargo,
        c.SPIKER: 0x40,
        c.FUSEBALL: 0,
    }
    program = {
        c.FLIPPER: LABELS["STRAIGHT"] if near else m[c.FLIPPER_PROGRAM],
        c.PULSAR: LABELS["PULSAR"],
        c.TANKER: LABELS["STRAIGHT"],
        c.SPIKER: LABELS["SPIKER"],
        c.FUSEBALL: LABELS["FUSE"],
    }
    m[c.KIND + slot] = kind | rotation
    m[c.FLAGS + slot] = flags[kind]
    m[c.PC + slot] = program[kind]
    m[c.FIRE_TIMER + slot] = 0
    m[c.LANE + slot] = lane
    m[c.CCW + slot] = (lane + 1) % 16
    m[c.DEPTH + slot] = depth
    m.add(c.TUBE_COUNT, 1)
    m.add(c.KIND_COUNT + kind, 1)
    return True

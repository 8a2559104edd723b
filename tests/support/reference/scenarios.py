"""Random legal states of a game, many of them such as ordinary play reaches once in a lifetime."""

from __future__ import annotations

import random

from . import cells as c
from .machine import Machine, to_bcd
from .programs import LABELS
from .queue import place_enemy

EDGE_DEPTHS = (0x10, 0x11, 0x18, 0x1F, 0x20, 0x21, 0x2F, 0x30, 0x9E, 0x9F, 0xA0, 0xA1, 0xEF, 0xF0)
BOOM_LIMITS = (16, 21, 32, 32, 32, 16)
BOOM_STEPS = (3, 1, 3, 3, 3, 3)


def new_life(
    rng: random.Random, wave: int | None = None, difficulty: int | None = None
) -> bytearray:
    """The image that state 02 starts from: a level (0-based), any switches, any score."""
    ram = bytearray(2048)
    g = Machine(ram, lambda _: rng.randrange(256))
    m = g.m
    m[c.MODE] = 0xC0
    m[c.FRAME] = rng.randrange(256)
    switch = rng.randrange(4) if difficulty is None else difficulty
    m[c.OPTIONS] = switch | rng.choice((0, 4))
    m[c.BONUS_INTERVAL] = rng.randrange(8)
    m[c.LIVES_PER_GAME] = rng.randrange(2, 6)
    m[c.LIVES] = rng.choice((1, 1, 2, 3, 4, 5, 6))
    m[c.CUR_WAVE] = rng.choice((rng.randrange(99), rng.randrange(99), rng.randrange(99), 98))
    if wave is not None:
        m[c.CUR_WAVE] = wave
    m[c.WAVE_INDEX] = m[c.CUR_WAVE]
    m[c.START_BONUS] = rng.choice((0, rng.randrange(28)))
    m[c.DSW1] = rng.choice((2, 2, 2, 0x40))
    m[c.PAUSE_MASK] = rng.choice((0, 0, 1))
    digits = rng.choice((rng.randrange(1_000_000), 999_000 + rng.randrange(1000),
                         10_000 * rng.randrange(1, 100) - rng.randrange(1, 800)))  # fmt: skip
    for i in range(3):
        m[c.SCORE + i] = to_bcd(digits // 100**i % 100)
    g.set_up_wave_tables()
    g.fill_spikes_and_count()
    m[c.GAME_STATE] = 2
    for slot in range(7):
        m[c.FRAC + slot] = rng.randrange(256)
        m[c.LOOP + slot] = rng.randrange(256)
    for shot in range(8, 12):
        m[c.SHOT_FRAC + shot] = rng.randrange(256)
    return ram


def scramble(ram: bytearray, rng: random.Random) -> None:
    """Turn an image in play into another one in play that a game could have come to."""
    g = Machine(ram, lambda _: rng.randrange(256))
    m = g.m
    g.clear_shots()
    m.fill(c.DEPTH, 7, 0)
    m.fill(c.KIND_COUNT, 5, 0)
    m[c.TUBE_COUNT] = 0
    m[c.RIM_COUNT] = 0
    _player(g, rng)
    _enemies(g, rng)
    _queue(g, rng)
    _shots(g, rng)
    _explosions(g, rng)
    _pulse(g, rng)
    heights = (0, 0, 0x11, 0x20, 0x80, 0xCB, 0xCC, 0xEF, 0xF0, 0xF1)
    if rng.random() < 0.7:
        for lane in range(16):
            m[c.SPIKE + lane] = rng.choice((*heights, rng.randrange(0x11, 0xF2)))
    m[c.ZAP_USES] = rng.randrange(3)
    m[c.ZAP_TIMER] = rng.choice((0, 0, 0, 0xFF))
    if m[c.ZAP_USES] and rng.random() < 0.3:
        m[c.ZAP_TIMER] = rng.randrange(1, (0, 0x13, 5)[m[c.ZAP_USES]])


def _player(g: Machine, rng: random.Random) -> None:
    m = g.m
    m[c.RIM_POS] = rng.randrange(0xF0 if m[c.WELL_OPEN] else 0x100)
    m[c.PLAYER_LANE] = m[c.RIM_POS] >> 4
    m[c.PLAYER_CCW] = (m[c.PLAYER_LANE] + 1) % 16
    m[c.PLAYER_DEPTH] = 0x10
    if rng.random() < 0.1:
        m[c.PLAYER_CCW] = rng.choice((0x80, 0x81))


def _enemies(g: Machine, rng: random.Random) -> None:
    m = g.m
    kinds = [rng.randrange(5) for _ in range(rng.randrange(8))]
    chance = rng.random()
    if chance < 0.1:
        kinds = [c.FLIPPER] * m[c.KIND_MAX] + [c.SPIKER] * rng.randrange(3)
    elif chance < 0.35:
        kinds = [rng.choice((rng.randrange(5), c.PULSAR, c.FUSEBALL))] * rng.randrange(1, 8)
    for kind in kinds:
        lanes = 15 if m[c.WELL_OPEN] else 16
        lane = rng.choice((rng.randrange(lanes), m[c.PLAYER_LANE], 0, lanes - 1))
        depth = rng.choice((rng.choice(EDGE_DEPTHS), rng.randrange(0x11, 0xF1)))
        slot = max(s for s in range(7) if m[c.DEPTH + s] == 0)
        turning = kind in (c.FLIPPER, c.PULSAR, c.FUSEBALL)
        rotation = rng.choice((0, 0x40)) if turning else 0
        place_enemy(g, kind, lane, max(depth, 0x20), rotation, rng.randrange(1, 4))
        m[c.DEPTH + slot] = depth
        m[c.FRAC + slot] = rng.randrange(256)
        m[c.FIRE_TIMER + slot] = rng.choice((0, 0, rng.randrange(80)))
        if kind in (c.PULSAR, c.SPIKER, c.FUSEBALL):
            m[c.FLAGS + slot] |= rng.choice((0, 0x80))
        if kind == c.FUSEBALL:
            _fuseball(g, slot, rng)
        elif depth == 0x10 and kind not in (c.PULSAR, c.FUSEBALL):
            _rim_walker(g, slot)
        elif kind == c.FLIPPER and rng.random() < 0.3:
            m[c.PC + slot] = rng.choice([LABELS[name] for name in (
                "STRAIGHT", "STEP8_FLIP", "SPIRAL", "SPIRAL_ALTERNATE", "SPIKE_RIDER", "AVOIDER"
            )])  # fmt: skip


def _fuseball(g: Machine, slot: int, rng: random.Random) -> None:
    """Fresh, resting on a spoke, or somewhere on its way across a lane."""
    m = g.m
    how = rng.randrange(3)
    if how == 1:
        m[c.CCW + slot] = 0x20
    elif how == 2:
        m[c.KIND + slot] |= 0x80
        m[c.CCW + slot] = 0x80 | rng.randrange(1, 8)
        m[c.PC + slot] = LABELS["fr_c"] + 2
        m[c.LOOP + slot] = rng.randrange(1, 4)


def _rim_walker(g: Machine, slot: int) -> None:
    m = g.m
    kind = m[c.KIND + slot] & 7
    m.add(c.KIND_COUNT + kind, -1)
    m.add(c.KIND_COUNT + c.FLIPPER, 1)
    m[c.KIND + slot] &= 0x40
    m[c.FLAGS + slot] = 0x40
    m[c.PC + slot] = LABELS["RIM"]
    m[c.FRAC + slot] = 0
    m.add(c.TUBE_COUNT, -1)
    m.add(c.RIM_COUNT, 1)


def _queue(g: Machine, rng: random.Random) -> None:
    m = g.m
    m.fill(c.QUEUE_TIMER, 64, 0)
    m[c.QUEUE_COUNT] = rng.choice((0, 0, 0, 1, 3, 10, 30, 64))
    for i in rng.sample(range(64), m[c.QUEUE_COUNT]):
        m[c.QUEUE_LANE + i] = rng.randrange(16)
        near = rng.choice((1, 2, 5, 0x20, 0x3F, 0x40, 0x41, rng.randrange(1, 256)))
        m[c.QUEUE_TIMER + i] = near


def _shots(g: Machine, rng: random.Random) -> None:
    m = g.m
    lanes = 15 if m[c.WELL_OPEN] else 16
    for shot in range(8):
        if rng.random() < 0.3:
            m[c.SHOT_DEPTH + shot] = rng.randrange(0x11, 0xF0)
            m[c.SHOT_LANE + shot] = rng.randrange(lanes)
            m[c.SHOT_CCW + shot] = (m[c.SHOT_LANE + shot] + 1) % 16
            m[c.SHOT_HITS + shot] = rng.randrange(2)
            m.add(c.PLAYER_SHOTS, 1)
    for slot in range(m[c.SHOT_TOP_SLOT] + 1):
        if rng.random() < 0.4:
            m[c.SHOT_DEPTH + 8 + slot] = rng.choice((0x11, 0x18, rng.randrange(0x11, 0xF0)))
            lane = rng.choice((m[c.PLAYER_LANE], rng.randrange(lanes)))
            m[c.SHOT_LANE + 8 + slot] = lane
            m[c.SHOT_CCW + 8 + slot] = (lane + 1) % 16
            m.add(c.ENEMY_SHOTS, 1)


def _explosions(g: Machine, rng: random.Random) -> None:
    m = g.m
    busy = rng.choice((0, 0, 0, 0, 3, 7, 8))
    m.fill(c.BOOM_DEPTH, 8, 0)
    m[c.BOOM_COUNT] = busy
    for i in rng.sample(range(8), busy):
        kind = rng.randrange(6)
        m[c.BOOM_TYPE + i] = kind
        m[c.BOOM_LANE + i] = rng.randrange(16)
        m[c.BOOM_DEPTH + i] = rng.randrange(0x10, 0xF1)
        step = BOOM_STEPS[kind]
        m[c.BOOM_SEQ + i] = step * rng.randrange((BOOM_LIMITS[kind] - 1) // step + 1)


def _pulse(g: Machine, rng: random.Random) -> None:
    m = g.m
    step = m[c.PULSE_STEP]
    step = min(step, 256 - step)
    m[c.PULSE] = -1 + step * rng.randrange(-60 // step, 16 // step + 1)
    m[c.PULSE_STEP] = rng.choice((step, -step))
    if m[c.PULSE] >= 15 and not m[c.PULSE] & 0x80:
        m[c.PULSE_STEP] = -step
    if m[c.PULSE] & 0x80 and m[c.PULSE] < 0xC1:
        m[c.PULSE_STEP] = step


def start_dive(ram: bytearray, rng: random.Random) -> None:
    """From an image in play: the wave cleared, any spikes, the dive about to begin."""
    g = Machine(ram, lambda _: rng.randrange(256))
    m = g.m
    m.fill(c.DEPTH, 7, 0)
    m.fill(c.QUEUE_TIMER, 64, 0)
    m[c.QUEUE_COUNT] = 0
    m[c.BOOM_COUNT] = 0
    m.fill(c.BOOM_DEPTH, 8, 0)
    m[c.PLAYER_CCW] = (m[c.PLAYER_LANE] + 1) % 16
    for lane in range(16):
        m[c.SPIKE + lane] = rng.choice((0, 0, 0, rng.randrange(0x11, 0xF2)))


def new_game(rng: random.Random) -> bytearray:
    """State 00 after any earlier game, any switches."""
    ram = new_life(rng)
    m = Machine(ram, lambda _: 0).m
    m[c.GAME_STATE] = 0
    m[c.LAST_TOP_WAVE] = rng.choice((0, rng.randrange(98)))
    m[c.BEST_SCORE_TOP] = rng.choice((0x06, 0x29, 0x30, 0x50, 0x69, 0x70, 0x99))
    m[c.SPIN] = rng.randrange(256)
    return ram


def controls(ram: bytearray, rng: random.Random, style: float) -> None:
    """One tick's controls; ``style`` 0-1 is how often fire is held."""
    m = ram
    m[c.SPIN] = rng.choice((0, rng.randrange(256), rng.randrange(-40, 41) & 0xFF))
    held = 0x10 if rng.random() < style else 0
    if rng.random() < 0.02:
        held |= 0x08
        m[c.LATCHED] |= 0x08
    if rng.random() < 0.005:
        held |= rng.choice((0x20, 0x40))
        m[c.LATCHED] |= held & 0x60
    if held & ~m[c.HELD] & 0x10:
        m[c.LATCHED] |= 0x10
    m[c.HELD] = held

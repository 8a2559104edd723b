"""Where enemies are on their way to, and how long it takes them: read off the RAM image.

What is certain and the same for everybody who looks ahead; the observation and the teachers each
draw their own conclusions from it.
"""

from __future__ import annotations

from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import FUSEBALL, KIND_CCW, KIND_MASK, Ram
from tempest_agent.envs.machine.programs import P_FUSE_ROLL, P_RIM, P_SPIKE_RIDER

PULSE_TOP, PULSE_BOTTOM = 15, -63
"""The pulse clock turns round where it is not from ``PULSE_BOTTOM`` to ``PULSE_TOP - 1``."""

_P_RIM_END = P_SPIKE_RIDER


@rule
def signed_byte(value: int) -> int:
    """Return the number -128 to 127 whose two's complement is the byte ``value``."""
    return value - 256 if value >= 128 else value


@rule
def pulse_turns(phase: int) -> bool:
    """Return whether the pulse clock turns round once it has come to ``phase``, a signed number."""
    return phase >= PULSE_TOP or phase < PULSE_BOTTOM


@rule
def kind_of(ram: Ram, slot: int) -> int:
    """Return the enemy's kind; one that no game has, in a foreign image, counts as a fuseball."""
    return min(int64(ram.enemy_kind[slot]) & KIND_MASK, FUSEBALL)


@rule
def kind_speed(ram: Ram, kind: int) -> int:
    """Return the depth that an enemy of ``kind`` climbs per tick, in 1/256; at least 1."""
    return 0x10000 - (int64(ram.speed_int[kind]) * 256 + int64(ram.speed_frac[kind]))


@rule
def enemy_shot_speed(ram: Ram) -> int:
    """Return the depth that an enemy's shot climbs per tick, in 1/256; at least 1."""
    return 0x10000 - (int64(ram.enemy_shot_speed_int) * 256 + int64(ram.enemy_shot_speed_frac))


@rule
def ticks_to_depth(ram: Ram, slot: int, speed: int, limit: int) -> int:
    """Return the tick after whose move the climbing enemy is nearer than ``limit`` (8.8 depth)."""
    depth = int64(ram.enemy_depth[slot]) * 256 + int64(ram.enemy_depth_frac[slot])
    if depth - speed < limit:
        return 0
    return (depth - limit) // speed


@rule
def is_walker(ram: Ram, slot: int) -> bool:
    """Return whether the enemy walks the rim, by its program: a pulsar keeps its kind there."""
    return P_RIM <= int64(ram.enemy_script_pc[slot]) < _P_RIM_END


@rule
def flip_length(ram: Ram, pivot: int) -> int:
    """Return the steps of a whole flip about spoke ``pivot``: 1 to 16."""
    before = int64(ram.lane_angle[(pivot - 1) & 15])
    steps = (before + 8 - int64(ram.lane_angle[pivot & 15])) & 15
    return steps if steps else 16


@rule
def flip_steps_left(ram: Ram, slot: int) -> int:
    """Return the steps left of a flip of the enemy in ``slot``: 1 to 16.  Not for fuseballs."""
    pivot = int64(ram.enemy_lane[slot]) & 15
    angle = int64(ram.enemy_lane_ccw[slot]) & 15
    if ram.enemy_kind[slot] & KIND_CCW:
        steps = (angle - int64(ram.lane_angle[pivot])) & 15
    else:
        steps = (int64(ram.lane_angle[(pivot - 1) & 15]) + 8 - angle) & 15
    return steps if steps else 16


@rule
def roll_end(ram: Ram, slot: int) -> int:
    """Return the tick in which a rolling fuseball comes to rest: one step in four ticks."""
    angle = int64(ram.enemy_lane_ccw[slot]) & 7
    steps = angle if int64(ram.enemy_kind[slot]) & KIND_CCW else 8 - angle
    # Where it has not just made a step, its loop counts the ticks until the next one.
    first = 3
    if ram.enemy_script_pc[slot] != P_FUSE_ROLL:
        first = int64(ram.enemy_loop[slot]) - 1
    return first + 4 * (max(steps, 1) - 1)

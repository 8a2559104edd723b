"""The enemies' turn: every live slot runs its program, then the pulse clock advances."""

from __future__ import annotations

from tempest_agent.envs.machine import programs as op
from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import ENEMY_SLOTS, KIND_FLIPPING, Ram
from tempest_agent.envs.machine.randomness import Source

from .climbing import (
    above_spike,
    advance_pulse,
    fuseball_kills,
    grow_spike,
    in_player_lane,
    move,
    move_fuseball,
    move_pulsar,
    pulsing,
)
from .flips import aim, reverse, start_flip, step_flip
from .player import grab_player, player_alive

_CODE = op.CODE
_OPERATION = op.OPERATION


@rule
def move_enemies(ram: Ram, source: Source) -> None:
    """Move slots 6 down to 0; a death inside does not stop the others, one before does."""
    if player_alive(ram):
        for slot in range(ENEMY_SLOTS - 1, -1, -1):
            if ram.enemy_depth[slot] != 0:
                run_program(ram, source, slot)
    advance_pulse(ram)


@rule
def run_program(ram: Ram, source: Source, slot: int) -> None:  # noqa: C901 - one arm an operation
    """Run the enemy's program until HALT."""
    flag = int64(ram.script_status)
    pc = int64(ram.enemy_script_pc[slot])
    while True:
        code = int64(_OPERATION[pc])
        pc += 1
        if code == op.HALT:
            break
        if code <= op.SPIKE:
            if code == op.MOVE:
                ram.enemy_script_pc[slot] = pc
                if move(ram, source, slot):
                    return
                pc = int64(ram.enemy_script_pc[slot])
            else:
                flag = grow_spike(ram, source, slot)
        elif code <= op.LOOP_PULSAR:
            if code == op.LOOP:
                ram.enemy_loop[slot] = _CODE[pc]
            elif code == op.LOOP_RIM:
                ram.enemy_loop[slot] = ram.rim_flip_steps
            else:
                ram.enemy_loop[slot] = ram.pulsar_flip_delay
            pc += 1
        elif code == op.AGAIN:
            ram.enemy_loop[slot] -= 1
            pc = int64(_CODE[pc]) if ram.enemy_loop[slot] != 0 else pc + 1
        elif code == op.GOTO:
            pc = int64(_CODE[pc])
        elif code == op.IF0:
            pc = int64(_CODE[pc]) if flag == 0 else pc + 1
        elif code == op.SKIP0:
            if flag == 0:
                pc += 2
        elif code == op.FLIP_START:
            start_flip(ram, slot)
        elif code == op.FLIP:
            ram.enemy_script_pc[slot] = pc
            flag = step_flip(ram, slot)
            pc = int64(ram.enemy_script_pc[slot])
        elif code == op.REVERSE:
            reverse(ram, slot)
        elif code == op.AIM:
            aim(ram, slot)
        elif code == op.GRAB:
            flipping = (ram.enemy_kind[slot] & KIND_FLIPPING) != 0
            if not flipping and in_player_lane(ram, slot):
                grab_player(ram)
        elif code == op.ON_SPIKE:
            flag = above_spike(ram, slot)
        elif code == op.PULSING:
            flag = pulsing(ram)
        else:
            ram.enemy_script_pc[slot] = pc
            if code == op.PULSAR_MOVE:
                move_pulsar(ram, source, slot)
            elif code == op.FUSE_MOVE:
                move_fuseball(ram, source, slot)
            else:
                fuseball_kills(ram, slot)
            pc = int64(ram.enemy_script_pc[slot])
    ram.enemy_script_pc[slot] = pc
    ram.script_status = flag

"""The superzapper: twice a wave, one enemy every second tick."""

from __future__ import annotations

from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import (
    BUTTON_ZAP,
    ENEMY_SLOTS,
    MODE_IN_GAME,
    Ram,
    byte_table,
)
from tempest_agent.envs.machine.randomness import Source

from .kills import zap_enemy
from .player import player_alive

ZAPS_PER_WAVE = 2
_TICKS = byte_table([0, 0x13, 5], 0)
"""When a use ends, by number of uses."""


@rule
def superzapper(ram: Ram, source: Source) -> None:
    """Start on a press, run, kill; and mark the buttons as seen."""
    timer = int64(ram.zap_timer)
    if timer == 0:
        if (
            (ram.buttons_latched & BUTTON_ZAP) != 0
            and player_alive(ram)
            and (ram.mode_flags & MODE_IN_GAME) != 0
        ):
            if ram.zap_uses < ZAPS_PER_WAVE:
                ram.zap_uses += 1
                ram.zap_timer = 1
            ram.buttons_latched &= 0xFF - BUTTON_ZAP
    else:
        timer = (timer + 1) & 0xFF
        if timer >= _TICKS[ram.zap_uses]:
            timer = int64(0)
        if timer >= 3 and (timer & 1) == 0:
            slot = ENEMY_SLOTS - 1
            while slot >= 0 and ram.enemy_depth[slot] == 0:
                slot -= 1
            if slot >= 0:
                zap_enemy(ram, source, slot)
            else:
                timer = int64(0)
        ram.zap_timer = timer
    ram.buttons_latched &= 0x7F

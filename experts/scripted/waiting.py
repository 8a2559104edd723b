"""The queue of waiting enemies, on whose end pulsars and fuseballs change their ways."""

from __future__ import annotations

from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import ENEMY_SLOTS, QUEUE_SLOTS, Ram


@rule
def queue_may_be_empty(ram: Ram, tick: int) -> bool:
    """Whether all waiting enemies can have hatched by ``tick``; their timers count single ticks.

    They hatch before the enemies move, so one that does in ``tick`` itself counts.
    """
    if ram.queue_count > ENEMY_SLOTS:
        return False
    for entry in range(QUEUE_SLOTS):
        if int64(ram.queue_depth[entry]) > tick + 1:
            return False
    return True

"""The queue of waiting enemies ("nymphs") below the well."""

from __future__ import annotations

from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import QUEUE_SLOTS, Ram, byte_table
from tempest_agent.envs.machine.randomness import Source, draw

from .spawn import hatch

FAR = 0x40
"""From here on an entry circles round the lanes."""

CLAIMING = 0x20
ENEMIES_AT_ONCE = 6

_LANE_BIT = byte_table(
    [0x80, 0x40, 0x20, 0x10, 0x08, 0x04, 0x02, 0x01,
     0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80], 0
)  # fmt: skip


@rule
def refill_queue(ram: Ram, source: Source) -> None:
    """Line up queue_count entries in random lanes, one 16th of the range apart."""
    for i in range(QUEUE_SLOTS):
        ram.queue_depth[i] = 0
    count = int64(ram.queue_count)
    if count == 0:
        # The machine's loop runs once all the same, and its lane lands outside the array.
        lane = draw(source, 0x9254) & 0x0F
        ram.boom_type[0] = lane
        return
    for i in range(count - 1, -1, -1):
        lane = draw(source, 0x9254) & 0x0F
        depth = ((i * 16) & 0xFF) | lane
        if depth == 0:
            depth = 0x0F
        if i < QUEUE_SLOTS:
            ram.queue_lane[i] = lane
            ram.queue_depth[i] = depth
        else:
            # Beyond the array: lanes land on timers that are overwritten below, timers on the
            # kinds of empty slots.
            ram.queue_depth[i - QUEUE_SLOTS] = lane
            ram.enemy_kind[i - QUEUE_SLOTS] = depth


@rule
def move_queue(ram: Ram, source: Source) -> None:
    """Count down and circle every entry; one that reaches 0 hatches."""
    claimed = int64(0)
    if ram.queue_count != 0:
        claimed = advance_entries(ram, source)
    ram.queue_claim = claimed
    ram.queue_claim_copy = claimed


@rule
def advance_entries(ram: Ram, source: Source) -> int:
    depths = ram.queue_depth
    lanes = ram.queue_lane
    active = (int64(ram.enemies_in_well) + int64(ram.enemies_on_rim)) & 0xFF
    blocked = active > ENEMIES_AT_ONCE or ram.zap_timer != 0
    circling = (ram.frame_counter & 1) == 0
    claimed = int64(0)
    for i in range(QUEUE_SLOTS - 1, -1, -1):
        depth = int64(depths[i])
        if depth == 0:
            continue
        lane = int64(lanes[i])
        if not blocked:
            depth -= 1
            if depth == 0:
                if hatch(ram, source, lane):
                    depths[i] = 0
                    ram.queue_count -= 1
                    continue
                depth = int64(1)
                blocked = True
            elif depth == FAR - 1 and (claimed & _LANE_BIT[lane]) != 0:
                depth = int64(FAR)
            depths[i] = depth
        if depth >= FAR:
            if circling:
                lanes[i] = (lane + 1) & 0x0F
        elif depth >= CLAIMING:
            claimed |= _LANE_BIT[lane]
    return claimed

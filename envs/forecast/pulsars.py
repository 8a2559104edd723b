"""Forecast of pulsars in the well: when the pulse is on, and in which lanes."""

from __future__ import annotations

from tempest_agent.envs.game_state.motion import (
    flip_length,
    flip_steps_left,
    kind_speed,
    pulse_turns,
    signed_byte,
    ticks_to_depth,
)
from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import (
    FLAG_MOVING_DOWN,
    FLIPPER,
    KIND_FLIPPING,
    PULSAR,
    RIM_DEPTH,
    Ram,
)

from .enemy_programs import (
    PULSAR_LINGERS,
    PULSAR_MOVED,
    PULSAR_STARTS,
    flip_landing,
    next_direction,
    queue_may_be_empty,
    stays_below,
)
from .table import AHEAD, Table, mark, span
from .walkers import GRAB_TICKS


@rule
def forecast_pulse(ram: Ram, table: Table) -> None:
    """Run the pulse clock ahead, unless it has been.

    Bit k of ``pulse_on``: the pulse kills in tick k.  Bit k of ``pulse_quiet``: a pulsar may
    start a flip in tick k, as the pulse is off then and four steps later.
    """
    if table.pulse_known:
        return
    table.pulse_known = 1
    pulse = signed_byte(int64(ram.pulse_phase))
    step = signed_byte(int64(ram.pulse_step))
    on = 0
    quiet = 0
    for tick in range(AHEAD):
        if pulse >= 0:
            on |= 1 << tick
        elif (pulse + 4 * step) & 0x80:
            quiet |= 1 << tick
        pulse += step
        if pulse_turns(pulse):
            step = -step
    table.pulse_on = on
    table.pulse_quiet = quiet


@rule
def mark_pulses(table: Table, first: int, end: int, lane: int) -> None:
    """Mark ``lane`` in the ticks ``first`` to ``end - 1`` in which the pulse is on."""
    mark(table.deadly, table.pulse_on & span(first, end), lane)


@rule
def ticks_before_flip(ram: Ram, table: Table, slot: int) -> int:
    """Return the tick in which a pulsar in its lane starts the next flip; AHEAD if later."""
    address = int64(ram.enemy_script_pc[slot])
    tick = 0
    if address == PULSAR_MOVED:
        tick = (int64(ram.enemy_loop[slot]) - 1) & 0xFF
    elif address == PULSAR_STARTS:
        tick = int64(ram.pulsar_flip_delay)
    elif address != PULSAR_LINGERS:
        return AHEAD
    while tick < AHEAD and not (table.pulse_quiet >> tick) & 1:
        tick += 1
    return min(tick, AHEAD)


@rule
def first_potent_tick(ram: Ram, slot: int) -> int:
    """Return the first tick after whose move the pulsar can kill; AHEAD if not soon."""
    potency = int64(ram.pulse_depth)
    depth = int64(ram.enemy_depth[slot])
    if depth < potency:
        return 0
    if ram.enemy_flags[slot] & FLAG_MOVING_DOWN:
        return AHEAD
    speed = kind_speed(ram, FLIPPER)
    if stays_below(ram, slot, speed, potency * 256):
        return AHEAD
    return ticks_to_depth(ram, slot, speed, potency * 256)


@rule
def forecast_pulsar(ram: Ram, table: Table, slot: int, player_lane: int) -> None:
    """Mark a pulsar's lane while the pulse is on, and the lane of its next landing."""
    open_well = ram.well_open != 0
    potent = first_potent_tick(ram, slot)
    if int64(ram.enemy_kind[slot]) & KIND_FLIPPING:
        landing = flip_steps_left(ram, slot) - 1
        mark_pulses(table, max(landing, potent), AHEAD, flip_landing(ram, slot))
        return
    lane = int64(ram.enemy_lane[slot]) & 15
    flip = ticks_before_flip(ram, table, slot)
    if not ram.enemy_flags[slot] & FLAG_MOVING_DOWN:
        # With an empty queue it does not turn at the rim: it arrives, grabs, and walks.
        arrival = ticks_to_depth(ram, slot, kind_speed(ram, PULSAR), (RIM_DEPTH + 1) * 256)
        if arrival < flip and queue_may_be_empty(ram, arrival):
            mark_pulses(table, potent, arrival + 1, lane)
            mark(table.deadly, span(arrival, arrival + GRAB_TICKS), lane)
            return
    mark_pulses(table, potent, flip, lane)
    if flip >= AHEAD:
        return
    # At the start of the flip it aims at the player.
    apart = player_lane - lane
    if not open_well:
        apart = ((apart + 8) & 15) - 8
    ccw = next_direction(open_well, lane, apart >= 0)
    pivot = (lane + 1) & 15 if ccw else lane
    landing = flip + flip_length(ram, pivot)
    mark_pulses(table, max(landing, potent), AHEAD, pivot if ccw else (lane - 1) & 15)

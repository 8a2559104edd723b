"""What a player thinks, drawn on the well: the worth of each lane as a bar beyond the rim.

Of a policy it is the chance that it goes there.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tempest_agent.agent.inference.deterministic_arithmetic import Doubles, exponential
from tempest_agent.envs.arcade.player import OPEN_RIM_END
from tempest_agent.envs.display.beam import BRIGHT, NORMAL, Beam, dot, line
from tempest_agent.envs.display.camera import camera_of, spoke_point
from tempest_agent.envs.display.palette import CLAW, SPIKER, WHITE
from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.inputs import SPINNER_MAX, ZAP
from tempest_agent.envs.machine.memory import LANES, OPEN_LANES, RIM_DEPTH, Ram
from tempest_agent.experts.scripted.decision import LETHAL

UNKNOWN = -1e300
"""Worth of a lane that nothing is known of."""

_SHORTEST, _LONGEST, _GAP = 4.0, 64.0, 16.0
_TEACHER_AT = 10.0


@rule
def lane_after(ram: Ram, turn: int) -> int:
    """Return the lane in which the claw lands after a turn of the knob."""
    position = int64(ram.rim_pos) - turn
    if ram.well_open != 0:
        return min(max(position, 0), OPEN_RIM_END) >> 4
    return (position & 0xFF) >> 4


@rule
def worth_of_turns(
    ram: Ram, values: Doubles, deadly: NDArray[np.bool_], zap_legal: bool, worth: Doubles
) -> None:
    """Write the best value ``(16,)`` of the actions that lead into each lane.

    ``values``: of buttons and turns, ``(4, 63)``.  ``deadly``: turns that are no choice, ``(63,)``.
    """
    worth[:] = UNKNOWN
    for pair in range(values.shape[0] if zap_legal else ZAP):
        for turn in range(-SPINNER_MAX, SPINNER_MAX + 1):
            if not deadly[turn + SPINNER_MAX]:
                lane = lane_after(ram, turn)
                worth[lane] = max(worth[lane], values[pair, turn + SPINNER_MAX])


@rule
def turn_into_chances(
    ram: Ram, logits: Doubles, deadly: NDArray[np.bool_], zap_legal: bool, worth: Doubles
) -> None:
    """Write how likely a policy is to go into each lane that has a worth, ``(16,)``."""
    largest = UNKNOWN
    for lane in range(LANES):
        largest = max(largest, worth[lane])
        if worth[lane] != UNKNOWN:
            worth[lane] = 0.0
    total = 0.0
    for pair in range(logits.shape[0] if zap_legal else ZAP):
        for turn in range(-SPINNER_MAX, SPINNER_MAX + 1):
            if not deadly[turn + SPINNER_MAX]:
                chance = exponential(logits[pair, turn + SPINNER_MAX] - largest)
                worth[lane_after(ram, turn)] += chance
                total += chance
    for lane in range(LANES):
        if worth[lane] != UNKNOWN:
            worth[lane] /= total


@rule
def worth_of_plan(ram: Ram, value: Doubles, danger: Doubles, worth: Doubles) -> None:
    """Write what the expert thinks lanes are worth ``(16,)``; nothing where the next tick kills."""
    lanes = OPEN_LANES if ram.well_open != 0 else LANES
    worth[:] = UNKNOWN
    for lane in range(lanes):
        if danger[0, lane] < LETHAL:
            worth[lane] = value[lane]


@rule
def draw_worth(
    beam: Beam, ram: Ram, worth: Doubles, chances: bool, chosen: int, teacher: int
) -> None:
    """Draw a bar for each lane of known worth, a bright one for the ``chosen`` lane.

    The longest bar is a chance of 1, or the best worth; the shortest a chance of 0, or the least.
    A star stands beyond the lane ``teacher`` where it is another one; -1 for none.
    """
    camera = camera_of(ram)
    low, high = 1e300, UNKNOWN
    for lane in range(LANES):
        if worth[lane] != UNKNOWN:
            low, high = min(low, worth[lane]), max(high, worth[lane])
    if chances:
        low, high = 0.0, 1.0
    for lane in range(LANES):
        x0, z0 = spoke_point(camera, ram, lane, float(RIM_DEPTH))
        x1, z1 = spoke_point(camera, ram, (lane + 1) % LANES, float(RIM_DEPTH))
        across, up = x1 - x0, z1 - z0
        length = max(math.sqrt(across * across + up * up), 1.0)
        right, high_up = up / length, -across / length
        x, z = (x0 + x1) / 2 + _GAP * right, (z0 + z1) / 2 + _GAP * high_up
        if worth[lane] != UNKNOWN:
            share = (worth[lane] - low) / max(high - low, 1e-9)
            reach = _SHORTEST + share * (_LONGEST - _SHORTEST)
            colour, light = (CLAW, BRIGHT) if lane == chosen else (SPIKER, NORMAL)
            for side in (-2.0, 0.0, 2.0):
                beside_x, beside_z = x + side * across / length, z + side * up / length
                line(beam, beside_x, beside_z, beside_x + reach * right,
                     beside_z + reach * high_up, colour, light)  # fmt: skip
        if lane == teacher and teacher != chosen:
            for step in range(3):
                beyond = _LONGEST + _TEACHER_AT + 4.0 * step
                dot(beam, x + beyond * right, z + beyond * high_up, WHITE, BRIGHT)

"""The escape table: from every lane, the best way through the danger of the next ticks.

Dynamic programming backwards over (tick, lane).  A tick in a lane earns the lane's value and
pays its cost; a deadly one ends the way, the sooner the worse.  The spinner's reach is two lanes
a tick: at 31 counts from the middle of a lane one lands near the middle of the second next,
and never is in the lane between, because the rules look only at where a tick's move ends.
"""

from __future__ import annotations

import numpy as np

from tempest_agent.envs.forecast.table import HORIZON
from tempest_agent.envs.game_state.controls import REACH, rim_position
from tempest_agent.envs.machine.compiled import rule
from tempest_agent.envs.machine.inputs import SPINNER_MAX
from tempest_agent.envs.machine.memory import LANES, Ram

from .decision import LETHAL, Plan
from .weights import WeightsRecord

MIDDLE = 8
"""The place in a lane, in sixteenths, from which two lanes either way are within reach."""


@rule
def step_back(plan: Plan, tick: int, later: int, open_well: bool, travel_cost: float) -> None:
    """Compute one tick of the recursion: ``outlook[1 - later]`` from ``outlook[later]``."""
    ahead = plan.outlook[later]
    now = plan.outlook[1 - later]
    danger = plan.danger[tick]
    value = plan.value
    for _ in range(REACH):
        first = ahead[0]
        before = ahead[LANES - 1] if not open_well else -np.inf
        for lane in range(LANES):
            here = ahead[lane]
            after = ahead[lane + 1] if lane + 1 < LANES else first
            if open_well and lane >= LANES - 2:
                after = -np.inf
            ahead[lane] = max(here, max(before, after) - travel_cost)
            before = here
    for lane in range(LANES):
        if danger[lane] >= LETHAL:
            now[lane] = -LETHAL * (HORIZON - tick)
        else:
            now[lane] = ahead[lane] + value[lane] - danger[lane]


@rule
def choose_lane(ram: Ram, plan: Plan, weights: WeightsRecord) -> None:
    """Set ``plan.lane``, ``plan.spin`` and ``plan.best``: the first step of the best way."""
    open_well = ram.well_open != 0
    plan.outlook[:] = 0.0
    later = 0
    for tick in range(HORIZON - 1, -1, -1):
        step_back(plan, tick, later, open_well, weights.travel_cost)
        later = 1 - later
    outlook = plan.outlook[later]
    place = rim_position(ram)
    best = -np.inf
    for distance in range(REACH + 1):
        for side in range(-1, 2, 2):
            lane = (place >> 4) + side * distance
            if open_well and not 0 <= lane < LANES - 1:
                continue
            turn = spin_towards(place, lane)
            if (place - turn) >> 4 != lane:
                continue
            total = outlook[lane & 15] - weights.travel_cost * distance
            if total > best:
                best = total
                plan.lane = lane & 15
                plan.spin = turn
    plan.best = best


@rule
def spin_towards(place: int, lane: int) -> int:
    """Return the knob counts that bring the player from ``place`` towards the middle of ``lane``.

    ``lane`` may lie beyond 0-15: the way there then leads across the seam of a closed well.
    """
    return max(-SPINNER_MAX, min(SPINNER_MAX, place - (lane * 16 + MIDDLE)))

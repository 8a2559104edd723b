"""Steering down the well after a wave: past the spikes, or through what the shots leave of one."""

from __future__ import annotations

from tempest_agent.envs.forecast.dive import depth_reached
from tempest_agent.envs.forecast.table import clear_table
from tempest_agent.envs.machine.compiled import rule
from tempest_agent.envs.machine.memory import LANES, Ram

from .costs import write_costs
from .decision import Plan
from .weights import WeightsRecord

DEPTH_VALUE = 1.0 / 16.0
"""Worth of a lane for each unit of depth that can be reached in it."""
LONGEST_DIVE = 256
"""More ticks than any dive takes."""


@rule
def value_dive(ram: Ram, plan: Plan, place: int, weights: WeightsRecord) -> None:
    """Fill ``plan.danger`` and ``plan.value`` for the dive, or for the warning pause before it."""
    clear_table(plan)
    plan.value[:] = 0.0
    if weights.knows_spikes:
        for lane in range(LANES):
            reached = depth_reached(ram, plan, lane, place, 0, LONGEST_DIVE)
            plan.value[lane] = DEPTH_VALUE * reached
    write_costs(plan, 0.0)

"""The costs of the lanes in the next ticks: the forecast, as far as the expert knows it."""

from __future__ import annotations

from tempest_agent.envs.forecast.danger import FUSEBALLS, PULSARS, SHOTS, WALKERS, forecast
from tempest_agent.envs.forecast.fuseballs import forecast_fuseball
from tempest_agent.envs.forecast.table import HORIZON, mark, span
from tempest_agent.envs.game_state.motion import is_walker, kind_of
from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import ENEMY_SLOTS, FUSEBALL, LANES, Ram

from .decision import LETHAL, Plan
from .weights import WeightsRecord


@rule
def known(weights: WeightsRecord) -> int:
    """Return the bits of what the forecast of a player with ``weights`` looks at."""
    knows = SHOTS if weights.knows_shots else 0
    knows |= WALKERS if weights.knows_walkers else 0
    knows |= PULSARS if weights.knows_pulsars else 0
    return knows | (FUSEBALLS if weights.knows_fuseballs else 0)


@rule
def add_chance(seen: Ram, plan: Plan, delay: int) -> None:
    """Add what chance may have decided before the decision acts: which way fuseballs roll.

    ``seen`` is the image ``delay`` ticks before the one that the forecast was made from by rolling
    forward.  That roll took one side at random; the fuseball may take the other.
    """
    chance = plan.chance
    chance[:] = 0
    for slot in range(ENEMY_SLOTS):
        if seen.enemy_depth[slot] and kind_of(seen, slot) == FUSEBALL and not is_walker(seen, slot):
            forecast_fuseball(seen, slot, chance)
    for lane in range(LANES):
        mark(plan.deadly, (int64(chance[lane]) & span(0, HORIZON)) >> delay, lane)


@rule
def write_costs(plan: Plan, possible_cost: float) -> None:
    """Fill ``plan.danger`` from the forecast; ``possible_cost``: of a tick in which one may die."""
    danger = plan.danger
    for lane in range(LANES):
        deadly = int64(plan.deadly[lane])
        possible = int64(plan.possible[lane])
        for tick in range(HORIZON):
            cost = 0.0
            if (deadly >> tick) & 1:
                cost = LETHAL
            elif (possible >> tick) & 1:
                cost = possible_cost
            danger[tick, lane] = cost


@rule
def foresee(ram: Ram, seen: Ram, delay: int, weights: WeightsRecord, plan: Plan) -> None:
    """Fill ``plan.danger`` for play; see ``add_chance`` for ``seen`` and ``delay``."""
    forecast(ram, plan, plan.lane, known(weights))
    if delay and weights.knows_fuseballs:
        add_chance(seen, plan, delay)
    write_costs(plan, max(weights.near_rim_cost, 0.0))

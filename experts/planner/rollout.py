"""Rollouts: what a plan earns in a copy of the game."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.arcade.player import DEAD_VISIBLE
from tempest_agent.envs.arcade.score import SCORE_WRAP, score_of
from tempest_agent.envs.arcade.tick import tick
from tempest_agent.envs.checks import check_number
from tempest_agent.envs.game_state.controls import rim_position
from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.inputs import set_inputs
from tempest_agent.envs.machine.memory import LANES, STATE_PLAY, Ram
from tempest_agent.envs.machine.randomness import Source
from tempest_agent.envs.messages import shown
from tempest_agent.experts.scripted.decision import Plan
from tempest_agent.experts.scripted.escape import spin_towards
from tempest_agent.experts.scripted.expert import decide
from tempest_agent.experts.scripted.weights import WeightsRecord

LONGEST = 1000
"""Most ticks and futures that a planner can be given."""

FOLLOW_EXPERT = -1
"""Instead of a target lane: the scripted expert decides every tick of the rollout."""

BUDGET_DTYPE = np.dtype(
    [
        ("lanes", "<i8"),
        ("horizon", "<i8"),
        ("streams", "<i8"),
        ("every", "<i8"),
        ("fire_choices", "<i8"),
        ("follows_expert", "u1"),
        ("discount", "<f8"),
        ("death_cost", "<f8"),
        ("wave_worth", "<f8"),
    ]
)

BudgetRecord: TypeAlias = Any
"""One record of BUDGET_DTYPE; its fields are attributes only inside compiled code."""


@dataclass(frozen=True)
class Budget:
    """A planner's computation for one decision, and the values of its rollouts.

    A planned decision simulates at most ``(lanes * fire_choices + follows_expert) * horizon *
    streams`` ticks of the game, and twice as many for the lanes while a zap may end the wave.

    Raises:
        ValueError: for a number out of its range.
    """

    lanes: int = 16
    """Target lanes that are tried, 1 to 16: the nearest ones, the player's own first."""
    horizon: int = 30
    """Ticks that each plan is rolled forward; a shot needs about 24 to the bottom of the well."""
    streams: int = 2
    """Random futures that each plan is judged by; all plans meet the same ones."""
    every: int = 1
    """Ticks between two decisions; in between the chosen plan continues."""
    fire_choices: int = 1
    """1: fire is held on the way; 2: every lane is tried without firing as well."""
    follows_expert: bool = True
    """Whether the scripted expert's own play is one of the plans."""
    discount: float = 0.92
    """Worth of a point one tick later: below 1 the planner hurries, and levels go by faster."""
    death_cost: float = 20_000.0
    """Points that a death at the horizon costs; one in the first tick costs twice as many."""

    wave_worth: float = 20.0
    """Points for each tick of the horizon that is left when a plan ends the wave."""

    def __post_init__(self) -> None:
        limits = {
            "lanes": (1, LANES),
            "horizon": (1, LONGEST),
            "streams": (1, LONGEST),
            "every": (1, LONGEST),
            "fire_choices": (1, 2),
            "discount": (0.0, 1.0),
            "death_cost": (0.0, 1e9),
            "wave_worth": (0.0, 1e9),
        }
        for name, (low, high) in limits.items():
            value = getattr(self, name)
            check_number(f"planner {name}", value)
            if not low <= value <= high:
                raise ValueError(
                    f"planner {name}={shown(value)}: give a number from {low} to {high:g}"
                )

    def record(self) -> NDArray[np.void]:
        """Return the budget for compiled code, an array of one BUDGET_DTYPE record, ``(1,)``."""
        record = np.zeros(1, BUDGET_DTYPE)
        for name, value in asdict(self).items():
            record[name] = value
        return record


assert [field.name for field in fields(Budget)] == list(BUDGET_DTYPE.names or ())


@rule
def steer(ram: Ram, lane: int) -> int:
    """Return the counts towards the middle of ``lane``, the shorter way round a closed well."""
    place = rim_position(ram)
    apart = lane - (place >> 4)
    if ram.well_open == 0:
        if apart > LANES // 2:
            apart -= LANES
        elif apart < -(LANES // 2):
            apart += LANES
    return spin_towards(place, (place >> 4) + apart)


@rule
def roll_plan(
    future: Ram,
    source: Source,
    lane: int,
    fires: bool,
    zaps: bool,
    budget: BudgetRecord,
    weights: WeightsRecord,
    plan: Plan,
) -> float:
    """Play ``future`` by one plan, in place, and return what it earned.

    The plan: go to ``lane`` and stay, with fire held if ``fires`` and the superzapper pressed in
    the first tick if ``zaps``; or ``FOLLOW_EXPERT``.  It ends at the horizon, at the player's
    death, or when the wave is over.  The sum is the points, discounted by tick, and the worth of
    a wave that ends early, less the cost of a death.
    """
    value = 0.0
    worth = 1.0
    for step in range(budget.horizon):
        if future.game_state != STATE_PLAY:
            value += budget.wave_worth * (budget.horizon - step)
            break
        spin = int64(0)
        fire = fires
        zap = zaps and step == 0
        if lane == FOLLOW_EXPERT:
            decide(future, future, 0, weights, plan)
            spin = int64(plan.spin)
            fire = plan.fire != 0
            zap = plan.zap != 0
        else:
            spin = steer(future, lane)
        before = score_of(future)
        set_inputs(future, spin, fire, zap)
        tick(future, source)
        value += worth * ((score_of(future) - before) % SCORE_WRAP)
        worth *= budget.discount
        if future.player_lane_ccw >= DEAD_VISIBLE:
            value -= budget.death_cost * (2.0 - step / budget.horizon)
            break
    return value

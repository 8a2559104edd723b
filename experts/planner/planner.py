"""The planner: tries plans in copies of the game and plays the best one's first tick."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.checks import check_number
from tempest_agent.envs.machine.compiled import kernel, rule
from tempest_agent.envs.machine.inputs import FIRE, ZAP
from tempest_agent.envs.machine.memory import LANES, RAM_DTYPE
from tempest_agent.envs.machine.randomness import STREAM_DTYPE, Source
from tempest_agent.envs.messages import shown
from tempest_agent.experts.interface import PendingInputs, check_pending, check_rows
from tempest_agent.experts.scripted.decision import PLAN_DTYPE, Plan
from tempest_agent.experts.scripted.weights import Weights, WeightsRecord

from .plan_values import PLAN_PARTS, begin, judge, list_plans, most_plans, value_batch
from .rollout import FOLLOW_EXPERT, LONGEST, Budget, BudgetRecord, steer

HELD_DTYPE = np.dtype([("left", "<i8"), ("lane", "<i8"), ("fire", "<i8"), ("zap", "<i8")])
"""The plan of a game between two decisions: ticks left, lane, fire button, and whether the
superzapper is pressed next."""

_HELD_LIMITS = {
    "left": (0, LONGEST),
    "lane": (FOLLOW_EXPERT, LANES - 1),
    "fire": (0, 1),
    "zap": (0, 1),
}


@rule
def choose_plan(
    scratch: NDArray[np.void],
    source: Source,
    budget: BudgetRecord,
    weights: WeightsRecord,
    plan: Plan,
    listed: NDArray[np.int64],
    values: NDArray[np.float64],
    held: Any,
) -> None:
    """Fill ``values`` (16) and ``held`` for the game ``scratch[0]``; ``plan`` holds the expert's.

    The expert's plan counts for the lane that it steps to first.  ``listed`` is room for plans.
    """
    seed = source.state
    best = -np.inf
    expert_lane = plan.lane
    for i in range(list_plans(scratch[0], budget, listed)):
        lane, fires, zaps = listed[i, 0], listed[i, 1], listed[i, 2]
        value = judge(scratch, source, seed, lane, fires != 0, zaps != 0, budget, weights, plan)
        counts_for = expert_lane if lane == FOLLOW_EXPERT else lane
        values[counts_for] = max(values[counts_for], value)
        if value > best:
            best = value
            held.lane = lane
            held.fire = fires
            held.zap = zaps


@kernel
def plan_batch(
    ram: NDArray[np.void],
    games: NDArray[np.int64],
    pending: PendingInputs,
    seed: int,
    budgets: NDArray[np.void],
    weights: NDArray[np.void],
    held: NDArray[np.void],
    sources: NDArray[np.void],
    scratch: NDArray[np.void],
    plans: NDArray[np.void],
    listed: NDArray[np.int64],
    values: NDArray[np.float64],
    spins: NDArray[np.int8],
    buttons: NDArray[np.uint8],
) -> None:
    """Decide for every game; ``values`` stays -inf where no plan was tried."""
    plan = plans[0]
    source = sources[0]
    budget = budgets[0]
    for row in range(len(ram)):
        chooses = begin(scratch, source, ram[row], pending[row], seed, weights[0], plan)
        spins[row] = plan.spin
        buttons[row] = plan.fire * FIRE + plan.zap * ZAP
        mine = held[games[row]]
        if not chooses:
            values[row, plan.lane] = 0.0
            mine.left = 0
            continue
        if mine.left <= 0:
            choose_plan(scratch, source, budget, weights[0], plan, listed, values[row], mine)
            mine.left = budget.every
        elif mine.lane == FOLLOW_EXPERT:
            values[row, plan.lane] = 0.0
        else:
            values[row, mine.lane] = 0.0
        mine.left -= 1
        if mine.lane != FOLLOW_EXPERT:
            spins[row] = steer(scratch[0], mine.lane)
            buttons[row] = mine.fire * FIRE + mine.zap * ZAP
            mine.zap = 0


class Planner:
    """The strongest teacher: looks ahead in the compiled simulator.

    Every plan ("go to this lane and stay there, firing", at the end of a wave also with the
    superzapper first, or the scripted expert's own play) is played for some ticks in copies of the
    RAM image, on random streams derived from the image and ``seed``, the same ones for all plans;
    it never reads or moves a game's own stream.  The plan that earns most is followed for
    ``budget.every`` ticks.  In the dive between two levels the expert steers.

    With ``every=1`` a decision is a function of the image, the inputs under way and the seed.
    Otherwise the planner remembers each game's plan: see ``reset`` and ``state_dict``.

    Args:
        budget: plans, horizon, futures, ticks between decisions.
        weights: the numbers of the expert that it consults.
        seed: of the random futures.
    """

    name = "planner"

    def __init__(
        self, budget: Budget | None = None, weights: Weights | None = None, seed: int = 0
    ) -> None:
        self.budget = budget or Budget()
        self._budget = self.budget.record()
        self._weights = (weights or Weights()).record()
        self._seed = seed
        self._held = np.zeros(0, HELD_DTYPE)

    def act(
        self,
        ram: NDArray[np.void],
        pending: PendingInputs | None = None,
        games: NDArray[np.int64] | None = None,
    ) -> tuple[NDArray[np.int8], NDArray[np.uint8]]:
        """Return one decision for each of N games; see ``Teacher.act``."""
        _, spins, buttons = self.evaluate(ram, pending, games)
        return spins, buttons

    def evaluate(
        self,
        ram: NDArray[np.void],
        pending: PendingInputs | None = None,
        games: NDArray[np.int64] | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.int8], NDArray[np.uint8]]:
        """Return one decision for each of N games, with the value of every target lane.

        Returns:
            Values, float64 of shape ``(N, 16)``: the discounted points of the best plan to each
            lane, less the cost of a death, ``-inf`` where none was tried; then knob counts and
            buttons as of ``act``.  Where there was nothing to choose (the dive, a dead player,
            the ticks between two decisions) the lane that is steered to has 0 and the others
            ``-inf``.
        """
        rows = check_rows(ram, games)
        inputs = check_pending(ram, pending)
        self._make_room(int(rows.max(initial=-1)) + 1)
        values = np.full((len(ram), LANES), -np.inf)
        spins = np.zeros(len(ram), np.int8)
        buttons = np.zeros(len(ram), np.uint8)
        plan_batch(
            ram,
            rows,
            inputs,
            self._seed,
            self._budget,
            self._weights,
            self._held,
            np.zeros(1, STREAM_DTYPE),
            np.zeros(2, RAM_DTYPE),
            np.zeros(1, PLAN_DTYPE),
            np.zeros((most_plans(self.budget), PLAN_PARTS), np.int64),
            values,
            spins,
            buttons,
        )
        return values, spins, buttons

    def evaluate_plans(
        self,
        ram: NDArray[np.void],
        pending: PendingInputs | None = None,
    ) -> tuple[NDArray[np.int8], NDArray[np.uint8], NDArray[np.float64]]:
        """Return first action and value of every plan of N states, each judged alone.

        Nothing is remembered of the games, so that any thread may ask.

        Returns:
            Knob counts, int8 ``(N, P)``, and buttons, uint8 ``(N, P)``, of each plan's first tick;
            values as of ``evaluate``, float64 ``(N, P)``, ``-inf`` where there is no plan.  P is
            ``most_plans`` of the budget.  Where there is nothing to choose the expert's action is
            the only plan, worth 0.
        """
        check_rows(ram, None)
        shape = len(ram), most_plans(self.budget)
        spins, buttons = np.zeros(shape, np.int8), np.zeros(shape, np.uint8)
        values = np.full(shape, -np.inf)
        value_batch(
            ram,
            check_pending(ram, pending),
            self._seed,
            self._budget,
            self._weights,
            np.zeros(1, STREAM_DTYPE),
            np.zeros(2, RAM_DTYPE),
            np.zeros(1, PLAN_DTYPE),
            spins,
            buttons,
            values,
        )
        return spins, buttons, values

    def soft_targets(
        self,
        ram: NDArray[np.void],
        pending: PendingInputs | None = None,
        games: NDArray[np.int64] | None = None,
        temperature: float = 100.0,
    ) -> tuple[NDArray[np.float64], NDArray[np.int8], NDArray[np.uint8]]:
        """Return one decision for each of N games, with a distribution over target lanes.

        Args:
            ram: as of ``act``, and so ``pending`` and ``games``.
            temperature: points of difference that make a lane e times less likely.

        Returns:
            Probabilities, float64 of shape ``(N, 16)``, rows sum to 1: the softmax of
            ``evaluate``'s values; knob counts; buttons.

        Raises:
            ValueError: if ``temperature`` is not positive.
        """
        check_number("temperature", temperature)
        if not temperature > 0.0:
            raise ValueError(f"temperature={shown(temperature)}: give a number of points above 0")
        values, spins, buttons = self.evaluate(ram, pending, games)
        weights = np.exp((values - values.max(axis=1, keepdims=True)) / temperature)
        return weights / weights.sum(axis=1, keepdims=True), spins, buttons

    def reset(self, mask: NDArray[np.bool_] | None = None) -> None:
        """Forget the plans of the games chosen by ``mask``, or of all."""
        if mask is None:
            self._held = np.zeros(0, HELD_DTYPE)
            return
        self._make_room(len(mask))
        self._held["left"][: len(mask)][mask] = 0

    def state_dict(self) -> dict[str, Any]:
        """Return what is remembered of the games: plain arrays."""
        return {name: self._held[name].copy() for name in HELD_DTYPE.names or ()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from ``state_dict()``; ``ValueError`` for anything else."""
        held = np.zeros(np.shape(state["left"]), HELD_DTYPE)
        for name, (low, high) in _HELD_LIMITS.items():
            values = np.asarray(state[name], np.int64)
            if values.ndim != 1 or values.shape != held.shape:
                raise ValueError(
                    f"the planner's state has {name} of shape {values.shape} and left of shape "
                    f"{held.shape}: a number for each game is needed in both"
                )
            if values.min(initial=low) < low or values.max(initial=low) > high:
                raise ValueError(
                    f"the planner's state is damaged: {name} goes from {low} to {high}"
                )
            held[name] = values
        self._held = held

    def _make_room(self, games: int) -> None:
        """Make room for ``games`` games; known ones keep what is remembered."""
        missing = games - len(self._held)
        if missing > 0:
            self._held = np.concatenate([self._held, np.zeros(missing, HELD_DTYPE)])

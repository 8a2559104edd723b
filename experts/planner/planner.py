"""The planner: tries plans in copies of the game and plays the best one's first tick."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.arcade.playable import misfit
from tempest_agent.envs.arcade.player import DEAD_VISIBLE
from tempest_agent.envs.checks import check_number
from tempest_agent.envs.game_state.controls import rim_position
from tempest_agent.envs.machine.compiled import kernel, rule
from tempest_agent.envs.machine.inputs import FIRE, ZAP
from tempest_agent.envs.machine.memory import LANES, OPEN_LANES, RAM_DTYPE, STATE_PLAY
from tempest_agent.envs.machine.randomness import STREAM_DTYPE, Source
from tempest_agent.envs.messages import shown
from tempest_agent.experts.interface import PendingInputs, check_pending, check_rows
from tempest_agent.experts.scripted.decision import PLAN_DTYPE, Plan
from tempest_agent.experts.scripted.expert import decide, look_ahead, reseed
from tempest_agent.experts.scripted.fire import can_zap
from tempest_agent.experts.scripted.weights import Weights, WeightsRecord

from .rollout import FOLLOW_EXPERT, LONGEST, Budget, BudgetRecord, roll_plan, steer

GOLDEN = 0x9E3779B97F4A7C15
"""Step between the seeds of a decision's random futures (the golden ratio's bits)."""

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
def judge(
    scratch: NDArray[np.void],
    source: Source,
    seed: np.uint64,
    lane: int,
    fires: bool,
    zaps: bool,
    budget: BudgetRecord,
    weights: WeightsRecord,
    plan: Plan,
) -> float:
    """Return the mean of what a plan earns from ``scratch[0]`` in the futures of ``seed``."""
    total = 0.0
    for future in range(budget.streams):
        source.state = (seed + np.uint64(future) * np.uint64(GOLDEN)) | np.uint64(1)
        scratch[1] = scratch[0]
        total += roll_plan(scratch[1], source, lane, fires, zaps, budget, weights, plan)
    return total / budget.streams


@rule
def choose_plan(
    scratch: NDArray[np.void],
    source: Source,
    budget: BudgetRecord,
    weights: WeightsRecord,
    plan: Plan,
    values: NDArray[np.float64],
    held: Any,
) -> None:
    """Fill ``values`` (16) and ``held`` for the game ``scratch[0]``; ``plan`` holds the expert's.

    The expert's plan counts for the lane that it steps to first.  While nothing waits to hatch,
    every lane is tried with the superzapper too.
    """
    root = scratch[0]
    seed = source.state
    here = rim_position(root) >> 4
    best = -np.inf
    expert_lane = plan.lane
    zap_choices = 2 if root.queue_count == 0 and can_zap(root) else 1
    held.zap = 0
    if budget.follows_expert:
        best = judge(scratch, source, seed, FOLLOW_EXPERT, True, False, budget, weights, plan)
        values[expert_lane] = best
        held.lane = FOLLOW_EXPERT
    for nearness in range(budget.lanes):
        # 0, +1, -1, +2, -2 ...: the nearest lanes first, so that they win where all are equal.
        apart = (nearness + 1) // 2 if nearness & 1 else -(nearness // 2)
        lane = here + apart
        if root.well_open != 0 and not 0 <= lane < OPEN_LANES:
            continue
        lane &= LANES - 1
        for choice in range(budget.fire_choices * zap_choices):
            fires, zaps = choice % budget.fire_choices == 0, choice >= budget.fire_choices
            value = judge(scratch, source, seed, lane, fires, zaps, budget, weights, plan)
            values[lane] = max(values[lane], value)
            if value > best:
                best = value
                held.lane = lane
                held.fire = int(fires)
                held.zap = int(zaps)


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
    values: NDArray[np.float64],
    spins: NDArray[np.int8],
    buttons: NDArray[np.uint8],
) -> None:
    """Decide for every game; ``values`` stays -inf where no plan was tried."""
    plan = plans[0]
    source = sources[0]
    budget = budgets[0]
    for row in range(len(ram)):
        delay = pending.shape[1]
        reseed(source, ram[row], seed)
        scratch[0] = ram[row]
        if delay:
            look_ahead(scratch, ram[row], pending[row], source)
        root = scratch[0]
        decide(root, ram[row], delay, weights[0], plan)
        spins[row] = plan.spin
        buttons[row] = plan.fire * FIRE + plan.zap * ZAP
        mine = held[games[row]]
        alive = root.game_state == STATE_PLAY and root.player_lane_ccw < DEAD_VISIBLE
        if not alive or misfit(root) >= 0:
            # The dive needs no search, nothing else a decision, and some images cannot be played.
            values[row, plan.lane] = 0.0
            mine.left = 0
            continue
        if mine.left <= 0:
            choose_plan(scratch, source, budget, weights[0], plan, values[row], mine)
            mine.left = budget.every
        elif mine.lane == FOLLOW_EXPERT:
            values[row, plan.lane] = 0.0
        else:
            values[row, mine.lane] = 0.0
        mine.left -= 1
        if mine.lane != FOLLOW_EXPERT:
            spins[row] = steer(root, mine.lane)
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
            values,
            spins,
            buttons,
        )
        return values, spins, buttons

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

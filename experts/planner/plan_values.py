"""The plans of a decision and what each of them is worth."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.arcade.playable import misfit
from tempest_agent.envs.arcade.player import player_alive
from tempest_agent.envs.game_state.controls import rim_position
from tempest_agent.envs.machine.compiled import int64, kernel, rule
from tempest_agent.envs.machine.inputs import FIRE, ZAP
from tempest_agent.envs.machine.memory import LANES, OPEN_LANES, STATE_PLAY, Ram
from tempest_agent.envs.machine.randomness import Source
from tempest_agent.experts.interface import PendingInputs, under_way
from tempest_agent.experts.scripted.decision import Plan
from tempest_agent.experts.scripted.expert import decide, look_ahead, reseed
from tempest_agent.experts.scripted.fire import can_zap
from tempest_agent.experts.scripted.weights import WeightsRecord

from .rollout import FOLLOW_EXPERT, Budget, BudgetRecord, roll_plan, steer

GOLDEN = 0x9E3779B97F4A7C15
"""Step between the seeds of a decision's random futures (the golden ratio's bits)."""

PLAN_PARTS = 3
"""What a listed plan is: target lane (or ``FOLLOW_EXPERT``), whether it fires, whether it zaps."""


def most_plans(budget: Budget) -> int:
    """Return the most plans that a decision has: every lane with and without the superzapper."""
    return int(budget.follows_expert) + 2 * budget.lanes * budget.fire_choices


@rule
def begin(
    scratch: NDArray[np.void],
    source: Source,
    ram: Ram,
    inputs: NDArray[np.int16],
    seed: int,
    weights: WeightsRecord,
    plan: Plan,
) -> bool:
    """Fill ``scratch[0]`` with the image that is decided on, and ``plan`` with the expert's plan.

    Return whether there is something to choose: the dive needs no search, nothing else a decision,
    and some images cannot be played.
    """
    delay = under_way(inputs)
    reseed(source, ram, seed)
    scratch[0] = ram
    if delay:
        look_ahead(scratch, ram, inputs[:delay], source)
    root = scratch[0]
    decide(root, ram, delay, weights, plan)
    return root.game_state == STATE_PLAY and player_alive(root) and misfit(root) < 0


@rule
def list_plans(root: Ram, budget: BudgetRecord, listed: NDArray[np.int64]) -> int:
    """Write the plans of a decision to ``listed``, ``(most_plans, 3)``; return how many.

    The expert's comes first, then the nearest lanes, so that they win where all are equal.  While
    nothing waits to hatch, every lane is tried with the superzapper too.
    """
    count = 0
    if budget.follows_expert:
        listed[0] = FOLLOW_EXPERT, 1, 0
        count = 1
    here = rim_position(root) >> 4
    zap_choices = 2 if root.queue_count == 0 and can_zap(root) else 1
    for nearness in range(budget.lanes):
        # 0, +1, -1, +2, -2 ...
        apart = (nearness + 1) // 2 if nearness & 1 else -(nearness // 2)
        lane = here + apart
        if root.well_open != 0 and not 0 <= lane < OPEN_LANES:
            continue
        for choice in range(budget.fire_choices * zap_choices):
            listed[count, 0] = lane & (LANES - 1)
            listed[count, 1] = int64(choice % budget.fire_choices == 0)
            listed[count, 2] = int64(choice >= budget.fire_choices)
            count += 1
    return count


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


@kernel
def value_batch(
    ram: NDArray[np.void],
    pending: PendingInputs,
    seed: int,
    budgets: NDArray[np.void],
    weights: NDArray[np.void],
    sources: NDArray[np.void],
    scratch: NDArray[np.void],
    plans: NDArray[np.void],
    spins: NDArray[np.int8],
    buttons: NDArray[np.uint8],
    values: NDArray[np.float64],
) -> None:
    """Write first action and value of every plan of every game, ``(N, most_plans)`` each."""
    plan = plans[0]
    source = sources[0]
    budget = budgets[0]
    listed = np.zeros((values.shape[1], PLAN_PARTS), np.int64)
    for row in range(len(ram)):
        chooses = begin(scratch, source, ram[row], pending[row], seed, weights[0], plan)
        spins[row, 0] = plan.spin
        buttons[row, 0] = plan.fire * FIRE + plan.zap * ZAP
        if not chooses:
            values[row, 0] = 0.0
            continue
        root = scratch[0]
        first = source.state
        for i in range(list_plans(root, budget, listed)):
            lane, fires, zaps = listed[i, 0], listed[i, 1], listed[i, 2]
            if lane != FOLLOW_EXPERT:
                spins[row, i] = steer(root, lane)
                buttons[row, i] = fires * FIRE + zaps * ZAP
            values[row, i] = judge(
                scratch, source, first, lane, fires != 0, zaps != 0, budget, weights[0], plan
            )

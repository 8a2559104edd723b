"""The escape table against plain recursion over every way through the danger."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from tempest_agent.envs.forecast.table import HORIZON
from tempest_agent.envs.machine.compiled import rule
from tempest_agent.envs.machine.memory import RAM_DTYPE
from tempest_agent.experts.scripted.decision import LETHAL, PLAN_DTYPE
from tempest_agent.experts.scripted.escape import choose_lane, spin_towards
from tempest_agent.experts.scripted.weights import Weights

WEIGHTS = Weights(travel_cost=0.125)


@rule
def solve(ram: NDArray[np.void], plan: NDArray[np.void], weights: NDArray[np.void]) -> None:
    choose_lane(ram[0], plan[0], weights[0])


@rule
def spin_of(place: int, lane: int) -> int:
    return spin_towards(place, lane)


def solved(
    place: int, open_well: bool, danger: NDArray[np.float64], value: NDArray[np.float64]
) -> np.void:
    ram = np.zeros(1, RAM_DTYPE)
    ram["rim_pos"] = place
    ram["well_open"] = 0xFF if open_well else 0
    plan = np.zeros(1, PLAN_DTYPE)
    plan["danger"] = danger
    plan["value"] = value
    solve(ram, plan, WEIGHTS.record())
    result: np.void = plan[0]
    return result


def reference(
    place: int, open_well: bool, danger: NDArray[np.float64], value: NDArray[np.float64]
) -> float:
    """The best sum over all ways, lane by lane and tick by tick."""
    lanes = 15 if open_well else 16

    def reachable(lane: int) -> list[tuple[int, int]]:
        steps = [(lane + step, abs(step)) for step in (-2, -1, 0, 1, 2)]
        if open_well:
            return [(to, cost) for to, cost in steps if 0 <= to < lanes]
        return [(to % 16, cost) for to, cost in steps]

    @cache
    def best_from(tick: int, lane: int) -> float:
        if tick == HORIZON:
            return 0.0
        if danger[tick, lane] >= LETHAL:
            return -LETHAL * (HORIZON - tick)
        here = float(value[lane] - danger[tick, lane])
        if tick == HORIZON - 1:
            return here
        return here + max(
            best_from(tick + 1, to) - WEIGHTS.travel_cost * cost for to, cost in reachable(lane)
        )

    first = []
    for turn in range(-31, 32):
        after = place - turn
        if open_well:
            after = min(max(after, 0), 0xEF)
        lane = (after >> 4) % 16
        apart = abs((after >> 4) - (place >> 4))
        first.append(best_from(0, lane) - WEIGHTS.travel_cost * apart)
    return max(first)


@pytest.mark.parametrize("open_well", [False, True])
@pytest.mark.parametrize("density", [0.05, 0.3, 0.6])
def test_value_of_the_best_way(open_well: bool, density: float) -> None:
    random = np.random.default_rng(int(density * 100) + open_well)
    for _ in range(40):
        danger = np.where(random.random((HORIZON, 16)) < density, LETHAL, 0.0)
        danger[random.random((HORIZON, 16)) < 0.1] += 2.0
        value = random.integers(0, 20, 16).astype(float)
        place = int(random.integers(0, 240 if open_well else 256))
        plan = solved(place, open_well, danger, value)
        assert plan["best"] == pytest.approx(reference(place, open_well, danger, value))


@pytest.mark.parametrize("open_well", [False, True])
def test_the_counts_lead_to_the_lane(open_well: bool) -> None:
    random = np.random.default_rng(7)
    for place in range(240):
        danger = np.where(random.random((HORIZON, 16)) < 0.4, LETHAL, 0.0)
        plan = solved(place, open_well, danger, np.zeros(16))
        after = (place - int(plan["spin"])) & 0xFF
        assert abs(int(plan["spin"])) <= 31
        assert after >> 4 == plan["lane"]
        assert not open_well or plan["lane"] < 15


def test_goes_the_long_way_round_a_wall_of_deadly_lanes() -> None:
    danger = np.zeros((HORIZON, 16))
    danger[:, 5:7] = LETHAL
    value = np.zeros(16)
    value[7] = 10.0
    open_way = solved(4 * 16 + 8, False, np.zeros((HORIZON, 16)), value)
    walled = solved(4 * 16 + 8, False, danger, value)
    assert open_way["lane"] in (5, 6)
    assert walled["lane"] in (2, 3)
    assert walled["spin"] > 0


def test_jumps_over_a_single_deadly_lane() -> None:
    danger = np.zeros((HORIZON, 16))
    danger[:, 5] = LETHAL
    value = np.zeros(16)
    value[6] = 10.0
    assert solved(4 * 16 + 8, False, danger, value)["lane"] == 6


def test_dies_as_late_as_possible_when_it_must() -> None:
    danger = np.full((HORIZON, 16), LETHAL)
    danger[:3, 9] = 0.0
    plan = solved(8 * 16 + 8, False, danger, np.arange(16.0))
    assert plan["lane"] == 9
    assert plan["best"] < -LETHAL


@pytest.mark.parametrize(
    ("place", "lane", "counts"), [(8, 0, 0), (8, 1, -16), (8, 2, -31), (0, 15, -31), (40, 1, 16)]
)
def test_knob_counts(place: int, lane: int, counts: int) -> None:
    assert spin_of(place, lane) == counts

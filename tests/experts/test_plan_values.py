"""The values of all plans: against the planner's own decision, and each state alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from planner_scenes import scenes

from tempest_agent.envs.machine.memory import RAM_DTYPE, STATE_WARP
from tempest_agent.experts import Budget, Planner, ScriptedExpert


def at_an_end() -> NDArray[np.void]:
    """Scenes at level 33 in which nothing waits to hatch, so that zaps are tried."""
    rams = scenes(8, 260, 33)[:3]
    rams["queue_count"] = 0
    rams["zap_uses"] = 0
    rams["zap_timer"] = 0
    return rams


def test_the_best_plan_is_what_the_planner_does_and_is_worth_what_it_says() -> None:
    planner = Planner(Budget(horizon=20, streams=2), seed=3)
    rams = np.concatenate([scenes(), at_an_end()])
    pending = np.zeros((len(rams), 1, 2), np.int16)
    pending[:, 0] = 5, 1
    for inputs in (None, pending):
        values, spin, pressed = planner.evaluate(rams, inputs)
        spins, buttons, each = planner.evaluate_plans(rams, inputs)
        assert each.shape == (len(rams), 33)
        np.testing.assert_array_equal(each.max(axis=1), values.max(axis=1))
        best, rows = each.argmax(axis=1), np.arange(len(rams))
        np.testing.assert_array_equal(spins[rows, best], spin)
        np.testing.assert_array_equal(buttons[rows, best], pressed)
    zaps = (buttons & 2 > 0) & np.isfinite(each)
    assert zaps[-3:].sum(axis=1).min() >= 15


def test_plans_to_a_lane_are_worth_what_the_lane_is() -> None:
    planner = Planner(Budget(horizon=12, streams=1, follows_expert=False), seed=3)
    rams = at_an_end()
    values = planner.evaluate(rams)[0]
    each = planner.evaluate_plans(rams)[2]
    for ram, lanes, plans in zip(rams, values, each, strict=True):
        known = sorted(lanes[np.isfinite(lanes)])
        assert sorted(plans[np.isfinite(plans)].reshape(-1, 2).max(axis=1)) == known
        assert np.isfinite(plans).sum() == (30 if ram["well_open"] else 32)


def test_each_state_is_judged_alone() -> None:
    planner = Planner(Budget(horizon=8, streams=1, every=3), seed=1)
    rams = scenes()
    planner.act(rams)
    whole = planner.evaluate_plans(rams)
    alone = [planner.evaluate_plans(rams[i : i + 1]) for i in reversed(range(len(rams)))]
    for part, parts in zip(whole, zip(*reversed(alone), strict=True), strict=True):
        np.testing.assert_array_equal(part, np.concatenate(parts))


def test_where_there_is_nothing_to_choose_the_experts_action_is_the_only_plan() -> None:
    rams = np.concatenate([scenes(), np.zeros(1, RAM_DTYPE)])
    rams["game_state"][:-1] = STATE_WARP
    spins, buttons, values = Planner().evaluate_plans(rams)
    expert = ScriptedExpert().act(rams)
    np.testing.assert_array_equal([spins[:, 0], buttons[:, 0]], expert)
    assert (values[:, 0] == 0).all()
    assert (values[:, 1:] == -np.inf).all()

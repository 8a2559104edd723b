"""The planner: its rollouts against a plain loop, its independence, its memory, its strength."""

from __future__ import annotations

import numpy as np
import pytest
from arena import play_games, press, start_batch
from numpy.typing import NDArray
from planner_scenes import scenes

from tempest_agent.envs.machine.compiled import kernel
from tempest_agent.envs.machine.memory import RAM_DTYPE, STATE_PLAY, STATE_WARP, as_bytes
from tempest_agent.envs.machine.randomness import STREAM_DTYPE, new_streams
from tempest_agent.envs.machine.switches import Switches
from tempest_agent.experts import Budget, Planner, ScriptedExpert, make_teacher
from tempest_agent.experts.scripted.expert import reseed

SMALL = Budget(horizon=8, streams=1)


@kernel
def seed_of(ram: NDArray[np.void], seed: int, source: NDArray[np.void]) -> None:
    reseed(source[0], ram[0], seed)


def digits(ram: NDArray[np.void]) -> int:
    """The score, read digit by digit."""
    return int("".join(f"{byte:02x}" for byte in reversed(ram["score_p1"][0].tolist())))


def slow_rollout(
    ram: NDArray[np.void], lane: int, fire: bool, zap: bool, budget: Budget, seed: int
) -> float:
    """What ``roll_plan`` does, one tick at a time from Python."""
    source = np.zeros(1, STREAM_DTYPE)
    seed_of(ram, seed, source)
    first, total = int(source["state"][0]), 0.0
    for future in range(budget.streams):
        game = ram.copy()
        source["state"] = (first + future * 0x9E3779B97F4A7C15) % 2**64 | 1
        for step in range(budget.horizon):
            if game["game_state"][0] != STATE_PLAY:
                total += budget.wave_worth * (budget.horizon - step)
                break
            place = int(game["rim_pos"][0])
            ways = [lane * 16 + 8 - place]
            if game["well_open"][0]:
                place = min(place, 0xEF)
                ways = [lane * 16 + 8 - place]
            else:
                ways += [ways[0] + 256, ways[0] - 256]
            way = min(ways, key=lambda each: abs((place + each) // 16 - place // 16))
            before = digits(game)
            press(game, source, int(np.clip(-way, -31, 31)), fire + 2 * (zap and step == 0))
            total += budget.discount**step * ((digits(game) - before) % 1_000_000)
            if game["player_lane_ccw"][0] >= 0x80:
                total -= budget.death_cost * (2 - step / budget.horizon)
                break
    return total / budget.streams


def test_every_lane_is_worth_what_a_plain_loop_finds() -> None:
    budget = Budget(horizon=30, streams=2, fire_choices=2, follows_expert=False)
    planner = Planner(budget, seed=7)
    deaths = ends = 0
    at_an_end = scenes(8, 260, 33)[:3]
    at_an_end["queue_count"] = 0
    for ram in (*scenes(8, 260, 33), *at_an_end):
        image = np.array([ram])
        zaps = [False, True] if ram["queue_count"] == 0 else [False]
        ends += len(zaps) == 2
        values, _, _ = planner.evaluate(image)
        place = min(int(image["rim_pos"][0]), 0xEF) if ram["well_open"] else int(ram["rim_pos"])
        lanes = range(15 if ram["well_open"] else 16)
        for lane in lanes:
            if not ram["well_open"] and (lane - place // 16) % 16 == 8:
                continue  # As far one way round as the other.
            earned = [
                slow_rollout(image, lane, fire, zap, budget, 7)
                for fire in (True, False)
                for zap in zaps
            ]
            assert values[0, lane] == pytest.approx(max(earned), abs=1e-6)
            deaths += min(earned) < 0
        if ram["well_open"]:
            assert values[0, 15] == -np.inf
    assert deaths, "the scenes should hold some danger"
    assert ends >= 3


def test_a_zap_that_ends_the_wave_is_pressed_once() -> None:
    ram = scenes(8, 260, 33)[:1]
    ram["queue_count"] = 0
    ram["zap_uses"] = 0
    ram["zap_timer"] = 0
    planner = Planner(Budget(streams=1, every=3, follows_expert=False))
    pressed = [int(planner.act(ram)[1][0]) & 2 for _ in range(3)]
    assert pressed == [2, 0, 0]
    unhurried = Planner(Budget(streams=1, follows_expert=False, wave_worth=0.0))
    assert unhurried.evaluate(ram)[0].max() < planner.evaluate(ram)[0].max()


def test_soft_targets_are_a_distribution_that_favours_the_best_lane() -> None:
    rams = scenes()
    planner = Planner(Budget(horizon=8, streams=1, follows_expert=False))
    values, spins, buttons = planner.evaluate(rams)
    chances, same_spins, same_buttons = planner.soft_targets(rams, temperature=50.0)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    assert chances.shape == (len(rams), 16)
    np.testing.assert_array_equal(chances.argmax(axis=1), values.argmax(axis=1))
    np.testing.assert_array_equal([spins, buttons], [same_spins, same_buttons])
    ratio = np.log(chances[0, 0] / chances[0, 1])
    assert ratio == pytest.approx((values[0, 0] - values[0, 1]) / 50.0)


def test_in_the_dive_the_expert_steers_and_the_target_is_its_lane() -> None:
    rams = scenes()
    rams["game_state"] = STATE_WARP
    planner, expert = Planner(SMALL), ScriptedExpert()
    chances, spins, buttons = planner.soft_targets(rams)
    np.testing.assert_array_equal([spins, buttons], expert.act(rams))
    assert (chances.max(axis=1) == 1.0).all()


def test_each_game_is_decided_alone_with_and_without_memory() -> None:
    rams = scenes()
    pending = np.random.default_rng(1).integers(-31, 32, (len(rams), 2, 2)).astype(np.int16)
    pending[:, :, 1] &= 3
    for every in (1, 3):
        budget = Budget(horizon=6, streams=1, every=every)
        together, alone = Planner(budget, seed=2), Planner(budget, seed=2)
        for _ in range(4):
            whole = np.stack(together.act(rams, pending))
            for game in (2, 0):
                row = np.array([game])
                mine = np.stack(alone.act(rams[row], pending[row], games=row))
                np.testing.assert_array_equal(whole[:, row], mine)


def test_the_image_is_only_read_and_another_seed_means_other_futures() -> None:
    rams = scenes()
    before = as_bytes(rams).copy()
    budget = Budget(horizon=20, streams=1)
    first, again, other = (Planner(budget, seed=seed).evaluate(rams)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    np.testing.assert_array_equal(as_bytes(rams), before)


def test_inputs_under_way_are_rolled_forward() -> None:
    """In a scene without chance, rolling forward by hand and by the planner must agree."""
    rams = np.zeros(1, RAM_DTYPE)
    source = new_streams([np.random.SeedSequence(3)])
    start_batch(rams, source, Switches().record())
    for _ in range(40):
        press(rams, source, 0, True)
    rams["enemy_flags"] = 0
    rams["queue_count"] = 0
    budget = Budget(horizon=6, streams=1, follows_expert=False)
    rolled = rams.copy()
    for spin in (31, -7):
        press(rolled, source, spin, True)
    assert rolled["rim_pos"] != rams["rim_pos"]
    late = Planner(budget).evaluate(rams, np.array([[[31, 1], [-7, 1]]], np.int16))
    for mine, theirs in zip(late, Planner(budget).evaluate(rolled), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("name", ["planner", "novice", "random", "expert"])
def test_teachers_go_on_from_their_state(name: str) -> None:
    rams = scenes()
    teacher, other = (
        Planner(Budget(horizon=6, streams=1, every=4), seed=5)
        if name == "planner"
        else make_teacher(name, seed=5)
        for _ in range(2)
    )
    for _ in range(6):
        teacher.act(rams)
    other.load_state_dict(teacher.state_dict())
    for _ in range(6):
        np.testing.assert_array_equal(teacher.act(rams), other.act(rams))


def test_a_plan_lasts_for_as_many_ticks_as_asked() -> None:
    rams = scenes()
    planner = Planner(Budget(horizon=6, streams=1, every=3))
    tried = [np.isfinite(planner.evaluate(rams)[0]).sum(axis=1) for _ in range(6)]
    planned = [(counts > 1).all() for counts in tried]
    assert planned == [True, False, False, True, False, False]
    planner.reset(np.arange(len(rams)) == 1)
    counts = np.isfinite(planner.evaluate(rams)[0]).sum(axis=1)
    assert (counts > 1).all()
    planner.reset()
    assert (np.isfinite(planner.evaluate(rams)[0]).sum(axis=1) > 1).all()


def test_looking_ahead_beats_the_rules() -> None:
    planner = play_games(Planner(Budget(streams=1)), games=3, max_ticks=4000, seed=3)
    expert = play_games(ScriptedExpert(), games=3, max_ticks=4000, seed=3)
    assert sum(planner.deaths.values()) == 0
    assert planner.scores.min() > expert.scores.max()


@pytest.mark.parametrize(
    ("name", "value"),
    [("lanes", 17), ("horizon", 0), ("streams", 0), ("every", 0), ("discount", 1.5)],
)
def test_budgets_out_of_range_are_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"planner {name}="):
        Budget(**{name: value})  # type: ignore[arg-type]


def test_a_temperature_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="temperature"):
        Planner(SMALL).soft_targets(scenes(), temperature=0.0)

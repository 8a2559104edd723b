"""The teachers as players: determinism, delays, strength, and what callers can get wrong."""

from __future__ import annotations

import numpy as np
import pytest
from arena import ArenaResult, play_games, press, start_batch, tick_batch
from numpy.typing import NDArray

from tempest_agent.envs.forecast.dive import CLEAR, START_SPEED, depth_reached
from tempest_agent.envs.forecast.table import TABLE_DTYPE
from tempest_agent.envs.machine.compiled import rule
from tempest_agent.envs.machine.memory import RAM_DTYPE, STATE_WARP, as_bytes
from tempest_agent.envs.machine.randomness import new_streams
from tempest_agent.envs.machine.switches import Switches
from tempest_agent.experts import (
    TEACHER_NAMES,
    Novice,
    RandomPlayer,
    ScriptedExpert,
    Teacher,
    make_teacher,
)
from tempest_agent.experts.interface import NO_INPUT
from tempest_agent.experts.scripted.dive import LONGEST_DIVE


def images(games: int = 6, ticks: int = 300, level: int = 20) -> NDArray[np.void]:
    """Games in the middle of a level, played there by the random player."""
    player = RandomPlayer(seed=3)
    rams = np.zeros(games, RAM_DTYPE)
    sources = new_streams([np.random.SeedSequence((9, game)) for game in range(games)])
    start_batch(rams, sources, Switches(start_level=level).record())
    over, scores = np.zeros(games, np.bool_), np.zeros(games, np.int64)
    for _ in range(ticks):
        spins, buttons = (part.astype(np.int16) for part in player.act(rams))
        tick_batch(rams, sources, spins, buttons, over, scores, np.zeros(5, np.int64))
    return rams


@pytest.mark.parametrize("name", TEACHER_NAMES)
def test_same_seed_same_decisions_and_the_image_is_only_read(name: str) -> None:
    rams = images()
    before = as_bytes(rams).copy()
    plays = []
    for _ in range(2):
        teacher = make_teacher(name, seed=5)
        assert isinstance(teacher, Teacher)
        assert teacher.name == name
        plays.append([np.stack(teacher.act(rams)) for _ in range(20)])
    np.testing.assert_array_equal(plays[0], plays[1])
    np.testing.assert_array_equal(as_bytes(rams), before)
    spins, buttons = make_teacher(name).act(rams)
    assert spins.dtype == np.int8
    assert buttons.dtype == np.uint8
    assert (np.abs(spins) <= 31).all()
    assert (buttons < 4).all()


@pytest.mark.parametrize("name", ["novice", "random"])
def test_reset_starts_again_from_the_seed(name: str) -> None:
    rams = images()
    teacher = make_teacher(name, seed=5)
    first = [np.stack(teacher.act(rams)) for _ in range(10)]
    teacher.reset()
    np.testing.assert_array_equal(first, [np.stack(teacher.act(rams)) for _ in range(10)])


def test_the_expert_decides_each_game_alone() -> None:
    rams = images()
    pending = np.random.default_rng(1).integers(-31, 32, (len(rams), 2, 2)).astype(np.int16)
    pending[:, :, 1] &= 3
    expert = ScriptedExpert()
    together = np.stack(expert.act(rams, pending))
    alone = [
        np.stack(expert.act(rams[game : game + 1], pending[game : game + 1]))[:, 0]
        for game in range(len(rams))
    ]
    np.testing.assert_array_equal(together.T, alone)


def test_a_novice_plays_a_game_the_same_whatever_runs_beside_it() -> None:
    rams = images()
    together, alone = Novice(0.4, seed=2), Novice(0.4, seed=2)
    for _ in range(30):
        spins, buttons = together.act(rams)
        some = np.array([4, 1])
        spins_alone, buttons_alone = alone.act(rams[some], games=some)
        np.testing.assert_array_equal(spins[some], spins_alone)
        np.testing.assert_array_equal(buttons[some], buttons_alone)


def test_resetting_one_game_lets_go_of_its_button_only() -> None:
    rams = images(games=2, ticks=0)
    novice = Novice(0.0, seed=1)
    pressed = np.array([novice.act(rams)[1] & 1 for _ in range(100)])
    assert pressed[-1].all(), "with no shot in flight it fires as soon as it looks"
    novice.reset(np.array([True, False]))
    np.testing.assert_array_equal(novice._held, [0, 1])


@pytest.mark.parametrize("name", ["expert", "novice", "planner"])
def test_each_game_may_have_a_delay_of_its_own(name: str) -> None:
    rams = images(games=4, level=9)
    pending = np.random.default_rng(1).integers(0, 4, (4, 2, 2)).astype(np.int16)
    mixed = pending.copy()
    mixed[1, 1:, 1] = mixed[2, :, 1] = NO_INPUT
    whole = np.stack(make_teacher(name, seed=5).act(rams, mixed))
    for game, delay in enumerate([2, 1, 0, 2]):
        alone, row = make_teacher(name, seed=5), slice(game, game + 1)
        own = alone.act(rams[row], pending[row, :delay], games=np.arange(4)[row])
        np.testing.assert_array_equal(np.stack(own)[:, 0], whole[:, game])


def test_with_inputs_under_way_it_decides_for_the_image_after_them() -> None:
    """In a scene without chance, rolling forward by hand and by the expert must agree."""
    rams = images(level=1, ticks=40)[:1]
    rams["enemy_flags"] = 0
    inputs = np.array([[[31, 1], [-7, 0], [20, 1]]], np.int16)
    rolled = rams.copy()
    source = new_streams([np.random.SeedSequence(77)])
    for spin, buttons in inputs[0].tolist():
        press(rolled, source, spin, buttons)
    expert = ScriptedExpert()
    assert rolled["rim_pos"] != rams["rim_pos"]
    np.testing.assert_array_equal(expert.act(rams, inputs), expert.act(rolled))


@pytest.fixture(scope="module")
def short_games() -> ArenaResult:
    return play_games(ScriptedExpert(), games=8, max_ticks=6000, seed=11)


def test_the_expert_is_strong(short_games: ArenaResult) -> None:
    assert short_games.scores.mean() > 55_000
    assert sum(short_games.deaths.values()) <= 2
    assert not short_games.finished.any()


def test_a_game_is_the_same_alone_and_among_others(short_games: ArenaResult) -> None:
    again = play_games(ScriptedExpert(), games=3, max_ticks=6000, seed=11)
    np.testing.assert_array_equal(again.scores, short_games.scores[:3])


def test_the_expert_is_as_strong_with_a_delay_that_it_is_told_of() -> None:
    delayed = play_games(ScriptedExpert(), games=8, max_ticks=6000, seed=11, delay=1)
    assert delayed.scores.mean() > 55_000
    assert sum(delayed.deaths.values()) <= 3


def test_the_dial_orders_the_players() -> None:
    levels = (0.0, 0.2, 0.5, 1.0)
    means = [
        play_games(Novice(level), games=12, max_ticks=12_000).scores.mean() for level in levels
    ]
    assert means == sorted(means)
    assert means[-1] > 5 * means[0]


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [("random", 6_000, 11_000), ("novice", 15_000, 28_000), ("novice-strong", 70_000, 115_000)],
)
def test_the_weak_players_are_as_weak_as_they_say(name: str, least: int, most: int) -> None:
    played = play_games(make_teacher(name), games=24, max_ticks=30_000, seed=4)
    assert played.finished.all()
    assert least < played.scores.mean() < most


@rule
def reach(ram: NDArray[np.void], tables: NDArray[np.void], lane: int, place: int) -> int:
    return depth_reached(ram[0], tables[0], lane, place, 0, LONGEST_DIVE)


@pytest.mark.parametrize("level", [9, 13, 20, 40])
def test_a_dive_ends_as_foreseen(level: int) -> None:
    """Standing in one lane and firing through a whole dive, for every height of spike."""
    outcomes = []
    for tip in range(0x20, 0xF0, 3):
        ram = np.zeros(1, RAM_DTYPE)
        source = new_streams([np.random.SeedSequence(tip)])
        start_batch(ram, source, Switches(start_level=level).record())
        ram["game_state"] = STATE_WARP
        ram["warp_flag"] = 0x80
        ram["warp_speed_int"], ram["warp_speed_frac"] = START_SPEED >> 8, START_SPEED & 0xFF
        ram["rim_pos"], ram["player_lane"], ram["player_lane_ccw"] = 0x58, 5, 6
        ram["queue_count"] = 0
        ram["queue_depth"] = 0
        ram["spike_depth"] = tip
        foreseen = reach(ram, np.zeros(1, TABLE_DTYPE), 5, 0x58)
        while ram["game_state"][0] == STATE_WARP and ram["player_lane_ccw"][0] < 0x80:
            deepest = int(ram["player_depth"][0])
            press(ram, source, 0, 1)
        died = ram["player_lane_ccw"][0] >= 0x80
        if died:
            deepest = int(ram["player_depth"][0])
        assert (foreseen != CLEAR) == died
        if died:
            assert foreseen == deepest
        outcomes.append(died)
    assert any(outcomes)
    assert not all(outcomes)


def test_an_unknown_teacher_is_named_with_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"'novise'.*'novice'"):
        make_teacher("novise")


@pytest.mark.parametrize("level", [-0.1, 1.5, float("nan")])
def test_a_novice_off_the_dial_is_refused(level: float) -> None:
    with pytest.raises(ValueError, match="0 to 1"):
        Novice(level)


def test_wrong_shapes_are_refused() -> None:
    rams = images(games=2, ticks=1)
    expert = ScriptedExpert()
    with pytest.raises(ValueError, match="from_bytes"):
        expert.act(as_bytes(rams))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="oldest first"):
        expert.act(rams, np.zeros((2, 2), np.int16))
    with pytest.raises(ValueError, match="2 RAM images"):
        expert.act(rams, games=np.arange(3))

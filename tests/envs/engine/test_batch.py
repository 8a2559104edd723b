"""``GameBatch`` against a slow reference that plays one game tick by tick."""

from __future__ import annotations

import multiprocessing
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tempest_agent.envs.arcade.tick import tick
from tempest_agent.envs.engine.batch import STATE_SIZE, GameBatch
from tempest_agent.envs.engine.saved_states import restore_saved, saved_states
from tempest_agent.envs.engine.settings import GameSettings
from tempest_agent.envs.features.layout import GLOBALS_START, PLAIN_FEATURES
from tempest_agent.envs.features.observe import observe
from tempest_agent.envs.game_state.controls import needs_no_input, zap_legal
from tempest_agent.envs.machine.compiled import kernel
from tempest_agent.envs.machine.inputs import set_inputs
from tempest_agent.envs.machine.memory import as_bytes

GAME_OVER = 0x10


@kernel
def press(ram: Any, spin: int, fire: bool, zap: bool) -> None:
    set_inputs(ram, spin, fire, zap)


@kernel
def idle(ram: Any) -> bool:
    return needs_no_input(ram)


@kernel
def legal(ram: Any) -> bool:
    return zap_legal(ram)


def score_digits(ram: np.void) -> int:
    return int("".join(f"{byte:02x}" for byte in ram["score_p1"][::-1]))


class SlowGame:
    """One game, with every rule of ``GameBatch`` written out in Python."""

    def __init__(self, settings: GameSettings, seed: int) -> None:
        start = GameBatch(1, settings, observe=False)
        start.reset(seeds=seed)
        self.settings = settings
        self.ram, self.stream = start.ram[0], start.streams[0]
        self.pending = [(0, 0)] * settings.input_delay
        self.score = self.ticks = self.steps = 0
        self.terminated = self.truncated = False

    def tick(self, spin: int, buttons: int) -> tuple[int, int]:
        self.pending.append((spin, buttons))
        spin, buttons = self.pending.pop(0)
        zap = bool(buttons & 2) and legal(self.ram)
        before = score_digits(self.ram)
        press(self.ram, spin, bool(buttons & 1), zap)
        tick(self.ram, self.stream)
        self.score += (score_digits(self.ram) - before) % 1_000_000
        self.ticks += 1
        return spin, (buttons & 1) | (2 if zap else 0)

    def ends(self) -> bool:
        limit = self.settings.max_ticks
        return int(self.ram["game_state"]) == GAME_OVER or (limit and self.ticks >= limit) or False

    def step(self, spin: int, buttons: int) -> dict[str, int]:
        before, executed, idle_ticks = self.score, [], 0
        self.steps += 1
        for _ in range(self.settings.frame_skip):
            executed.append(self.tick(spin, buttons))
            if self.ends() or (self.settings.skip_idle and idle(self.ram)):
                break
        while self.settings.skip_idle and idle(self.ram) and not self.ends():
            self.tick(0, 0)
            idle_ticks += 1
        over = int(self.ram["game_state"]) == GAME_OVER
        cut = self.ends() or self.steps >= (self.settings.max_steps or 10**9)
        lost = self.ram["player_lane_ccw"] >= 128 and self.ram["lives"][0] <= 1
        self.terminated = over or bool(cut and lost)
        self.truncated = bool(cut) and not self.terminated
        zapped = any(pair & 2 for _, pair in executed)
        return {
            "points": self.score - before,
            "step_idle_ticks": idle_ticks,
            "executed_spin": executed[0][0],
            "executed_buttons": (executed[0][1] & 1) | (2 if zapped else 0),
        }


def random_actions(steps: int, games: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    spin = np.repeat(random.integers(-31, 32, (-(-steps // 5), games)), 5, 0)[:steps]
    fire = random.random((steps, games)) < 0.7
    zap = random.random((steps, games)) < 0.05
    return spin.astype(np.int8), (fire + 2 * zap).astype(np.uint8)


@pytest.mark.parametrize(
    "settings",
    [
        GameSettings(),
        GameSettings(start_level=6, frame_skip=3, lives=2),
        GameSettings(start_level=17, input_delay=2, lives=2),
        GameSettings(start_level=9, frame_skip=4, input_delay=3, skip_idle=False, lives=2),
        GameSettings(max_ticks=301, frame_skip=2),
        GameSettings(max_steps=77, difficulty="hard", bonus_life=10_000),
        GameSettings(start_level=33, difficulty="easy", bonus_life="none", start_bonus=True),
    ],
)
def test_equals_the_reference(settings: GameSettings) -> None:
    games, steps = 6, 600
    batch = GameBatch(games, settings)
    batch.reset(seeds=100)
    slow = [SlowGame(settings, 100 + game) for game in range(games)]
    spin, buttons = random_actions(steps, games, 7)
    for step in range(steps):
        running = ~(batch.terminated | batch.truncated)
        points, terminated, truncated = batch.step(spin[step], buttons[step])
        for game in np.flatnonzero(running):
            expected = slow[game].step(int(spin[step, game]), int(buttons[step, game]))
            record = batch.games[game]
            assert expected == {name: int(record[name]) for name in expected}
            assert points[game] == expected["points"]
            assert record["score"] == slow[game].score
            assert record["ticks"] == slow[game].ticks
            assert (terminated[game], truncated[game]) == (
                slow[game].terminated,
                slow[game].truncated,
            )
            assert batch.ram[game].tobytes() == slow[game].ram.tobytes()
    assert (batch.terminated | batch.truncated).any() or settings.lives == 3


def test_skipping_idle_ticks_is_the_same_game_as_playing_them_at_rest() -> None:
    skipping = GameBatch(16, GameSettings(start_level=[1, 8]))
    patient = GameBatch(16, GameSettings(start_level=[1, 8], skip_idle=False))
    for batch in (skipping, patient):
        batch.reset(seeds=4)
    spin, buttons = random_actions(1500, 16, 5)
    for step in range(1500):
        total = skipping.step(spin[step], buttons[step])[0].copy()
        got = patient.step(spin[step], buttons[step])[0].astype(np.int64)
        # Only games that lag behind have idle ticks to catch up with; the others are frozen.
        lag = skipping.games["ticks"] - patient.games["ticks"]
        for game in np.flatnonzero(lag):
            state = patient.clone([int(game)])
            single = GameBatch(1, patient.settings)
            single.restore(state)
            for _ in range(lag[game]):
                got[game] += single.step(np.zeros(1, np.int8), np.zeros(1, np.uint8))[0][0]
            patient.restore(single.clone(), [int(game)])
            patient.terminated[game] = single.terminated[0]
        np.testing.assert_array_equal(total, got)
        assert as_bytes(skipping.ram).tobytes() == as_bytes(patient.ram).tobytes()
    assert skipping.games["idle_ticks"].min() > 0
    np.testing.assert_array_equal(skipping.games["ticks"], patient.games["ticks"])
    assert (skipping.games["steps"] < patient.games["steps"] + skipping.games["idle_ticks"]).any()


def test_every_step_begins_where_an_input_counts() -> None:
    batch = GameBatch(8, GameSettings(start_level=[3, 17]))
    batch.reset(seeds=1)
    spin, buttons = random_actions(2000, 8, 2)
    for step in range(2000):
        for game in np.flatnonzero(~batch.terminated):
            assert batch.ram[game]["game_state"] in (0x04, 0x20)
            assert batch.ram[game]["player_lane_ccw"] < 128
        batch.step(spin[step], buttons[step])
    assert batch.terminated.any()


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_threads_do_not_change_anything(threads: int) -> None:
    settings = GameSettings(start_level=range(1, 20), lives=2)
    one = GameBatch(13, settings, autoreset=True)
    many = GameBatch(13, settings, autoreset=True, num_threads=threads)
    for batch in (one, many):
        batch.reset(seeds=9)
    spin, buttons = random_actions(700, 13, 1)
    for step in range(700):
        for left, right in zip(
            one.step(spin[step], buttons[step]), many.step(spin[step], buttons[step]), strict=True
        ):
            np.testing.assert_array_equal(left, right)
    assert one.clone().tobytes() == many.clone().tobytes()
    np.testing.assert_array_equal(one.codes, many.codes)
    np.testing.assert_array_equal(one.last_codes, many.last_codes)
    many.close()
    many.step(spin[0], buttons[0])


def test_the_number_of_games_does_not_change_a_game() -> None:
    few, many = GameBatch(2), GameBatch(7)
    few.reset(seeds=5)
    many.reset(seeds=3)
    spin, buttons = random_actions(300, 7, 1)
    for step in range(300):
        many.step(spin[step], buttons[step])
        few.step(spin[step, 2:4], buttons[step, 2:4])
    assert few.clone().tobytes() == many.clone([2, 3]).tobytes()


def test_saved_states_come_back_exactly_at_200_random_points() -> None:
    settings = GameSettings(start_level=range(1, 40), input_delay=1)
    batch, other = GameBatch(200, settings), GameBatch(200, replace(settings, start_level=1))
    batch.reset(seeds=0)
    other.reset(seeds=77)
    random = np.random.default_rng(3)
    spin, buttons = random_actions(560, 200, 6)
    when = random.integers(0, 500, 200)
    states = np.zeros((200, STATE_SIZE), np.uint8)
    for step in range(500):
        chosen = np.flatnonzero(when == step)
        states[chosen] = batch.clone(chosen)
        batch.step(spin[step], buttons[step])
    batch.restore(states)
    np.testing.assert_array_equal(
        batch.codes[:, :GLOBALS_START], observe(batch.ram)[:, :GLOBALS_START]
    )
    for step in range(500, 560):
        batch.step(spin[step], buttons[step])
    first, codes = batch.clone(), batch.codes.copy()
    other.restore(states)
    for step in range(500, 560):
        other.step(spin[step], buttons[step])
    assert other.clone().tobytes() == first.tobytes()
    np.testing.assert_array_equal(other.codes, codes)


def test_seed_0_is_a_seed_and_seeds_matter() -> None:
    def bytes_of(seeds: Any) -> bytes:
        batch = GameBatch(3)
        batch.reset(seeds=seeds)
        return batch.clone().tobytes()

    assert bytes_of(0) == bytes_of(0) == bytes_of([0, 1, 2])
    assert bytes_of(0) != bytes_of(1)
    assert bytes_of(None) != bytes_of(None)
    assert bytes_of(np.random.SeedSequence(0)) == bytes_of(np.random.SeedSequence(0))
    assert bytes_of(np.random.SeedSequence(0)) != bytes_of(0)


def test_a_list_of_seeds_may_leave_games_out() -> None:
    batch = GameBatch(2)
    batch.reset(seeds=[4, 5])
    streams = batch.streams.copy()
    batch.reset(seeds=[4, None])
    again = GameBatch(2)
    again.reset(seeds=[4, 5])
    assert batch.ram[0].tobytes() == again.ram[0].tobytes()
    assert batch.streams[1] != streams[1]


@pytest.mark.parametrize(("seeds", "words"), [([1, 2], "one seed per game"), (-1, "at least 0")])
def test_bad_seeds_are_refused(seeds: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        GameBatch(3).reset(seeds=seeds)


def test_start_levels_are_drawn_evenly_and_by_the_seed() -> None:
    batch = GameBatch(600, GameSettings(start_level=(1, 5, 9)))
    batch.reset(seeds=2)
    levels, counts = np.unique(batch.ram["cur_wave"] + 1, return_counts=True)
    assert levels.tolist() == [1, 5, 9]
    assert counts.min() > 150
    again = GameBatch(600, GameSettings(start_level=(1, 5, 9)))
    again.reset(seeds=2)
    assert again.ram.tobytes() == batch.ram.tobytes()
    batch.reset()
    assert (again.ram["cur_wave"] != batch.ram["cur_wave"]).any()


def test_the_score_goes_on_beyond_six_digits_and_points_do_not_fall() -> None:
    batch = GameBatch(4, GameSettings(max_ticks=4000))
    batch.reset(seeds=6)
    batch.ram["score_p1"] = [0x00, 0x99, 0x99]
    spin, buttons = random_actions(400, 4, 3)
    total = np.zeros(4, np.int64)
    for step in range(400):
        points = batch.step(spin[step], buttons[step])[0]
        assert (points >= 0).all()
        total += points.astype(np.int64)
    assert (batch.games["wraps"] == 1).any()
    np.testing.assert_array_equal(batch.games["score"], 999_900 + total)
    for game in np.flatnonzero(batch.games["wraps"]):
        assert score_digits(batch.ram[game]) == batch.games["score"][game] - 1_000_000


def test_a_zap_is_put_in_only_when_it_can_work() -> None:
    batch = GameBatch(1, GameSettings(start_level=5))
    batch.reset(seeds=1)
    used = []
    for _ in range(400):
        before = batch.ram[0].copy()
        batch.step(np.zeros(1, np.int8), np.array([2], np.uint8))
        zapped = batch.games["executed_buttons"][0] == 2
        used.append(zapped)
        if zapped:
            assert before["zap_uses"] < 2
            assert before["zap_timer"] == 0
            assert before["enemy_depth"].any()
            assert before["game_state"] == 4
            assert batch.ram[0]["zap_uses"] == before["zap_uses"] + 1
        elif batch.ram[0]["cur_wave"] == before["cur_wave"]:
            assert batch.ram[0]["zap_uses"] == before["zap_uses"]
    assert sum(used) == 2
    assert not used[0]


def test_a_death_on_the_very_last_allowed_tick_is_a_termination() -> None:
    probe = GameBatch(1, GameSettings(lives=2, bonus_life="none", skip_idle=False))
    probe.reset(seeds=3)
    still = np.zeros(1, np.int8), np.zeros(1, np.uint8)
    while probe.games["deaths"].sum() < 2:
        probe.step(*still)
    last = int(probe.games["ticks"][0])
    for skip_idle in (True, False):
        for limit, ends in ((last - 1, (False, True)), (last, (True, False))):
            batch = GameBatch(
                1, GameSettings(lives=2, bonus_life="none", skip_idle=skip_idle, max_ticks=limit)
            )
            batch.reset(seeds=3)
            while not (batch.terminated[0] or batch.truncated[0]):
                batch.step(*still)
            assert (batch.terminated[0], batch.truncated[0]) == ends
            assert batch.games["ticks"][0] == limit


@pytest.mark.parametrize("level", [95, 96, 97, 98])
def test_a_level_with_too_many_nymphs_can_still_end(level: int) -> None:
    """Hard: the machine asks for 64, 65, 66 and 68 nymphs and holds 64."""
    batch = GameBatch(1, GameSettings(start_level=level, difficulty="hard"))
    batch.reset(seeds=0)
    assert batch.ram["queue_count"][0] == (batch.ram["queue_depth"] != 0).sum() == 64
    for _ in range(2000):
        # Everybody dies as soon as he is there, the player never.
        batch.ram["enemy_depth"] = 0
        batch.ram["enemies_in_well"] = 0
        batch.ram["kind_count"] = 0
        batch.ram["enemy_shot_depth"] = 0
        batch.ram["enemy_shot_count"] = 0
        batch.step(np.zeros(1, np.int8), np.zeros(1, np.uint8))
        if batch.ram["game_state"][0] == 0x20:
            break
    assert batch.ram["game_state"][0] == 0x20


def test_finished_games_stay_as_they_are_until_reset() -> None:
    batch = GameBatch(2, GameSettings(max_steps=3))
    batch.reset(seeds=0)
    action = np.zeros(2, np.int8), np.ones(2, np.uint8)
    for _ in range(3):
        batch.step(*action)
    state = batch.clone()
    points, terminated, truncated = batch.step(*action)
    assert not points.any()
    assert truncated.all()
    assert not terminated.any()
    assert batch.ram.tobytes() == np.ascontiguousarray(state[:, :2048]).tobytes()
    batch.reset(np.array([True, False]))
    assert batch.truncated.tolist() == [False, True]
    batch.step(*action)
    assert batch.games["steps"].tolist() == [1, 3]


def test_autoreset_keeps_the_end_and_begins_the_next_game() -> None:
    settings = GameSettings(lives=2, start_level=[1, 17], max_ticks=900)
    auto, manual = GameBatch(5, settings, autoreset=True), GameBatch(5, settings)
    for batch in (auto, manual):
        batch.reset(seeds=1)
    spin, buttons = random_actions(1500, 5, 8)
    ends = 0
    for step in range(1500):
        auto.step(spin[step], buttons[step])
        manual.step(spin[step], buttons[step])
        np.testing.assert_array_equal(auto.points, manual.points)
        ended = manual.terminated | manual.truncated
        np.testing.assert_array_equal(auto.terminated, manual.terminated)
        np.testing.assert_array_equal(auto.truncated, manual.truncated)
        for game in np.flatnonzero(ended):
            ends += 1
            assert auto.last_ram[game].tobytes() == manual.ram[game].tobytes()
            assert auto.last_games[game] == manual.games[game]
            np.testing.assert_array_equal(auto.last_codes[game], manual.codes[game])
        if ended.any():
            manual.reset(ended)
            manual.terminated[ended] = auto.terminated[ended]
            manual.truncated[ended] = auto.truncated[ended]
        assert auto.ram.tobytes() == manual.ram.tobytes()
        np.testing.assert_array_equal(auto.codes, manual.codes)
    assert ends > 5


def _continue(batch: GameBatch) -> bytes:
    spin, buttons = random_actions(50, batch.num_games, 2)
    for step in range(50):
        batch.step(spin[step], buttons[step])
    return batch.clone().tobytes()


def test_pickling_and_forking_keep_the_games() -> None:
    batch = GameBatch(6, num_threads=2)
    batch.reset(seeds=1)
    batch.step(np.zeros(6, np.int8), np.ones(6, np.uint8))
    copy = pickle.loads(pickle.dumps(batch))
    with multiprocessing.get_context("fork").Pool(1) as pool:
        forked = pool.apply(_continue, (batch,))
    assert _continue(copy) == forked == _continue(batch)


def _fork_target(batch: GameBatch, results: Any) -> None:
    results.put(_continue(batch))


def test_a_forked_child_makes_its_own_threads() -> None:
    context = multiprocessing.get_context("fork")
    batch = GameBatch(6, num_threads=2)
    batch.reset(seeds=1)
    batch.step(np.zeros(6, np.int8), np.ones(6, np.uint8))
    results = context.Queue()
    child = context.Process(target=_fork_target, args=(batch, results))
    child.start()
    forked = results.get(timeout=250)
    child.join(250)
    assert forked == _continue(batch)


def test_mistakes_are_named() -> None:
    batch = GameBatch(2)
    still = np.zeros(2, np.int8), np.zeros(2, np.uint8)
    with pytest.raises(RuntimeError, match=r"step\(\) before reset\(\)"):
        batch.step(*still)
    batch.reset(seeds=0)
    with pytest.raises(ValueError, match="shape"):
        batch.step(np.zeros(3, np.int8), still[1])
    with pytest.raises(TypeError, match="int8 and uint8"):
        batch.step(np.zeros(2), still[1])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"clone\(\)"):
        batch.restore(np.zeros((2, 5), np.uint8))
    with pytest.raises(ValueError, match="num_games=0"):
        GameBatch(0)
    with pytest.raises(ValueError, match="num_threads=0"):
        GameBatch(1, num_threads=0)


@hypothesis_settings(max_examples=25, deadline=None)
@given(
    level=st.integers(1, 99),
    lives=st.sampled_from([2, 3, 4, 5]),
    bonus=st.sampled_from(["none", 10_000, 20_000, 70_000]),
    difficulty=st.sampled_from(["easy", "medium", "hard"]),
    frame_skip=st.integers(1, 5),
    skip_idle=st.booleans(),
    input_delay=st.integers(0, 4),
    seed=st.integers(0, 2**31),
)
def test_what_always_holds(
    level: int,
    lives: int,
    bonus: Any,
    difficulty: str,
    frame_skip: int,
    skip_idle: bool,
    input_delay: int,
    seed: int,
) -> None:
    settings = GameSettings(
        start_level=level,
        lives=lives,
        bonus_life=bonus,
        difficulty=difficulty,
        frame_skip=frame_skip,
        skip_idle=skip_idle,
        input_delay=input_delay,
    )
    batch = GameBatch(4, settings)
    batch.reset(seeds=seed)
    assert (batch.ram["lives"][:, 0] == lives).all()
    spin, buttons = random_actions(150, 4, seed % 1000)
    score = batch.games["score"].copy()
    for step in range(150):
        batch.step(spin[step], buttons[step])
        ram = batch.ram
        assert (batch.games["score"] >= score).all()
        score = batch.games["score"].copy()
        assert (ram["player_shot_count"] == (ram["player_shot_depth"] != 0).sum(1)).all()
        assert (ram["enemy_shot_count"] == (ram["enemy_shot_depth"] != 0).sum(1)).all()
        assert (ram["explosion_count"] == (ram["boom_depth"] != 0).sum(1)).all()
        alive = ram["player_lane_ccw"] < 128
        enemies = (ram["enemy_depth"] != 0).sum(1)
        in_play = alive & (ram["game_state"] == 4)
        counted = ram["enemies_in_well"] + ram["enemies_on_rim"]  # bytes, as on the machine
        assert (counted[in_play] == enemies[in_play]).all()
        assert (ram["enemy_depth"][(ram["enemy_depth"] != 0) & alive[:, None]] >= 0x10).all()
        assert (ram["zap_uses"] <= 2).all()
        assert (ram["lives"][:, 0] <= 6).all()
        assert (batch.games["ticks"] >= batch.games["steps"]).all()
        assert (batch.codes >= -127).all()


def test_games_with_input_delays_of_their_own_are_those_of_one_delay() -> None:
    delays = [0, 2, 1]
    settings = GameSettings(start_level=range(1, 40))
    mixed = GameBatch(6, replace(settings, input_delay=delays))
    alone = [GameBatch(6, replace(settings, input_delay=delay)) for delay in delays]
    np.testing.assert_array_equal(mixed.delays, [0, 2, 1, 0, 2, 1])
    random = np.random.default_rng(2)
    for batch in (mixed, *alone):
        batch.reset(seeds=8)
    for _ in range(200):
        spin, buttons = (
            random.integers(-31, 32, 6).astype(np.int8),
            random.integers(0, 4, 6, np.uint8),
        )
        for batch in (mixed, *alone):
            batch.step(spin, buttons)
        for game in range(6):
            one = alone[game % 3]
            np.testing.assert_array_equal(mixed.codes[game], one.codes[game])
            assert mixed.games[game] == one.games[game]
    saved = saved_states(mixed)
    restore_saved(mixed, saved)
    with pytest.raises(ValueError, match="input_delay=2 and this one has input_delay=0"):
        restore_saved(mixed, np.roll(saved, -1, axis=0))


def test_the_plain_observation_is_the_beginning_of_the_whole_one() -> None:
    settings = GameSettings(start_level=range(1, 99, 9), input_delay=1)
    whole, plain = GameBatch(8, settings), GameBatch(8, settings, plain=True)
    random = np.random.default_rng(2)
    whole.reset(seeds=8)
    plain.reset(seeds=8)
    for _ in range(100):
        spin, buttons = (
            random.integers(-31, 32, 8).astype(np.int8),
            random.integers(0, 4, 8, np.uint8),
        )
        whole.step(spin, buttons)
        plain.step(spin, buttons)
        assert plain.codes.shape == (8, PLAIN_FEATURES)
        np.testing.assert_array_equal(whole.codes[:, :PLAIN_FEATURES], plain.codes)
    np.testing.assert_array_equal(plain.observations(), whole.observations()[:, :PLAIN_FEATURES])

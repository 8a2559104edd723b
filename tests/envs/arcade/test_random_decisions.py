"""The game's random bytes, and every decision that the rules take with them.

Seeds are fixed, so that nothing here depends on luck; the bounds are those of a chi-square test
at about one in ten thousand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from reference.stage import PROGRAM, Stage
from reference.tables import ROWS

from tempest_agent.envs.arcade.tick import tick
from tempest_agent.envs.machine import memory as m
from tempest_agent.envs.machine.compiled import rule
from tempest_agent.envs.machine.randomness import draw, new_streams


@rule
def fill(out: NDArray[np.uint8], stream: Any) -> None:
    for i in range(len(out)):
        out[i] = draw(stream, 0)


def stream_of(seed: int) -> Any:
    return new_streams([np.random.SeedSequence(seed)])[0]


def bytes_of(stream: Any, count: int) -> NDArray[np.uint8]:
    out = np.zeros(count, np.uint8)
    fill(out, stream)
    return out


def assert_spread(counts: NDArray[Any] | list[int], chances: list[float] | None = None) -> None:
    """Counts that fit the chances (equal ones by default) as well as random ones should."""
    observed = np.asarray(counts, np.float64).ravel()
    share = np.full(len(observed), 1 / len(observed)) if chances is None else np.array(chances)
    assert share.sum() == pytest.approx(1)
    expected = share * observed.sum()
    chi_square = ((observed - expected) ** 2 / expected).sum()
    # Wilson and Hilferty 1931: the cube root of chi-square / k is nearly normal.
    k = len(observed) - 1
    z = ((chi_square / k) ** (1 / 3) - (1 - 2 / (9 * k))) / np.sqrt(2 / (9 * k))
    assert z < 3.7, f"counts {observed.astype(int).tolist()}, expected {expected.round(1).tolist()}"


# ---- the stream ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 2, 2**32, 2**63])
def test_bytes_are_uniform(seed: int) -> None:
    assert_spread(np.bincount(bytes_of(stream_of(seed), 500_000), minlength=256))


@pytest.mark.parametrize("lag", [1, 2, 3, 5, 8])
def test_bytes_do_not_depend_on_earlier_ones(lag: int) -> None:
    values = bytes_of(stream_of(0), 500_000).astype(np.int64)
    pairs = values[:-lag] // 16 * 16 + values[lag:] // 16
    assert_spread(np.bincount(pairs, minlength=256))
    low = values[:-lag] % 16 * 16 + values[lag:] % 16
    assert_spread(np.bincount(low, minlength=256))


def test_games_have_streams_of_their_own() -> None:
    streams = new_streams(list(np.random.SeedSequence(0).spawn(64)))
    games = np.stack([bytes_of(stream, 20_000) for stream in streams])
    assert len({bytes(game[:16]) for game in games}) == 64
    for other in range(1, 64):
        assert_spread(np.bincount(games[0] ^ games[other], minlength=256))


def test_a_stream_is_reproducible_and_seed_0_works() -> None:
    for seed in (0, 1, 12345):
        first, again = bytes_of(stream_of(seed), 1000), bytes_of(stream_of(seed), 1000)
        assert bytes(first) == bytes(again)
        assert len(set(first)) > 200
    assert bytes(bytes_of(stream_of(0), 16)) != bytes(bytes_of(stream_of(1), 16))


def test_games_of_one_seed_are_equal_and_of_different_seeds_are_not() -> None:
    def image_after(seed: int) -> bytes:
        stage = Stage(level=33, seed=seed)
        stage.tick(400, fire=True)
        return bytes(stage.ram.tobytes())

    assert image_after(0) == image_after(0)
    assert image_after(0) != image_after(1)


# ---- decisions -------------------------------------------------------------------------------


def outcomes(stage: Stage, trials: int, look: Callable[[Any], Any], seed: int = 0) -> Counter[Any]:
    """What ``look`` sees after one tick from the stage's situation, many times over."""
    start = stage.ram.copy()
    ram: Any = np.zeros(1, m.RAM_DTYPE)
    stream = stream_of(seed)
    seen: Counter[Any] = Counter()
    for _ in range(trials):
        ram[0] = start
        tick(ram[0], stream)
        seen[look(ram[0])] += 1
    return seen


@pytest.mark.parametrize(("in_flight", "of_256"), [(0, 256), (1, 32), (2, 16), (3, 6)])
def test_chance_of_enemy_fire(in_flight: int, of_256: int) -> None:
    stage = Stage(65)
    stage.put_enemy(m.FLIPPER, depth=0x90, lane=12)
    stage.ram["enemy_flags"][6] = m.FLAG_MAY_FIRE
    for shot in range(in_flight):
        stage.ram["enemy_shot_depth"][shot], stage.ram["enemy_shot_lane"][shot] = 0xD0, 12
    stage.ram["enemy_shot_count"] = in_flight
    seen = outcomes(stage, 12_000, lambda ram: bool(ram["enemy_shot_count"] > in_flight))
    if of_256 == 256:
        assert seen == {True: 12_000}
    else:
        assert_spread([seen[True], seen[False]], [of_256 / 256, 1 - of_256 / 256])


def test_no_fifth_enemy_shot() -> None:
    stage = Stage(65)
    stage.put_enemy(m.FLIPPER, depth=0x90)
    stage.ram["enemy_flags"][6] = m.FLAG_MAY_FIRE
    stage.ram["enemy_shot_depth"], stage.ram["enemy_shot_lane"] = 0xD0, 12
    stage.ram["enemy_shot_count"] = 4
    assert outcomes(stage, 3000, lambda ram: int(ram["enemy_shot_count"])) == {4: 3000}


def fuseball_on_a_spoke(level: int, slot: int, depth: int) -> Stage:
    stage = Stage(level)
    stage.put_enemy(m.FUSEBALL, slot=slot, depth=depth, lane=8)
    stage.ram["enemy_kind"][slot], stage.ram["enemy_lane_ccw"][slot] = m.FUSEBALL, 0x20
    stage.ram["enemy_script_pc"][slot] = PROGRAM["FUSE"]
    stage.ram["rim_pos"] = 0x20
    return stage


def side_of(slot: int) -> Callable[[Any], str]:
    def look(ram: Any) -> str:
        if not ram["enemy_kind"][slot] & m.KIND_FLIPPING:
            return "on"
        return "lower" if ram["enemy_kind"][slot] & m.KIND_CCW else "higher"

    return look


@pytest.mark.parametrize(("level", "threshold"), [(11, 220), (22, 192), (43, 195), (65, 230)])
def test_chance_of_a_fuseballs_turn_and_its_side(level: int, threshold: int) -> None:
    """An even slot: a random side also where fuseballs hunt."""
    turn = (256 - threshold) / 256
    seen = outcomes(fuseball_on_a_spoke(level, 6, 0x6F), 8000, side_of(6))
    assert_spread([seen["on"], seen["lower"], seen["higher"]], [1 - turn, turn / 2, turn / 2])


def test_an_odd_slot_turns_towards_the_player_where_fuseballs_hunt() -> None:
    seen = outcomes(fuseball_on_a_spoke(65, 5, 0x6F), 4000, side_of(5))
    assert seen["higher"] == 0
    assert_spread([seen["on"], seen["lower"]], [230 / 256, 26 / 256])


@pytest.mark.parametrize("depth", [0x4F, 0x8F, 0xCF])
def test_a_fuseball_keeps_its_spoke_in_every_other_band(depth: int) -> None:
    seen = outcomes(fuseball_on_a_spoke(65, 6, depth), 500, side_of(6))
    assert seen == {"on": 500}


def test_prize_of_a_fuseball() -> None:
    stage = Stage()
    stage.put_enemy(m.FUSEBALL)
    stage.put_shot()
    seen = outcomes(stage, 8000, lambda ram: f"{ram['score_p1'][1]:02x}{ram['score_p1'][0]:02x}")
    assert_spread([seen["0250"], seen["0500"], seen["0750"]], [6 / 8, 1 / 8, 1 / 8])


def about_to_hatch(level: int, closed: int | None, lane: int = 3) -> Stage:
    """One of each kind alive, every kind but ``closed`` welcome, one entry about to hatch."""
    stage = Stage(level)
    for kind in range(5):
        stage.put_enemy(kind, slot=6 - kind, lane=10, depth=0x90)
    stage.ram["kind_min"] = 1
    stage.ram["kind_max"] = 5
    if closed is not None:
        stage.ram["kind_max"][closed] = 1
    stage.ram["queue_depth"][0] = 1
    stage.ram["queue_lane"][0] = lane
    return stage


def hatched(ram: Any) -> int:
    return int(ram["enemy_kind"][1]) & m.KIND_MASK


@pytest.mark.parametrize(
    ("closed", "quarters"),
    [
        (m.SPIKER, {m.PULSAR: 1, m.TANKER: 2, m.FUSEBALL: 1}),
        (m.TANKER, {m.PULSAR: 2, m.SPIKER: 1, m.FUSEBALL: 1}),
    ],
)
def test_kind_that_hatches(closed: int, quarters: dict[int, int]) -> None:
    """A quarter each for pulsar, tanker, spiker, fuseball; a closed kind's goes to the next."""
    seen = outcomes(about_to_hatch(65, closed), 6000, hatched)
    assert set(seen) == set(quarters)
    assert_spread([seen[kind] for kind in quarters], [n / 4 for n in quarters.values()])


@pytest.mark.parametrize(("tip", "kind"), [(0, m.SPIKER), (0xCC, m.SPIKER), (0xCB, m.TANKER)])
def test_a_long_spike_brings_a_tanker_and_a_short_one_a_spiker(tip: int, kind: int) -> None:
    stage = about_to_hatch(65, None)
    stage.ram["spike_depth"][3] = tip
    assert outcomes(stage, 100, hatched) == {kind: 100}


@pytest.mark.parametrize(
    ("level", "quarters"), [(3, {1: 4}), (33, {1: 3, 3: 1}), (41, {1: 3, 2: 1}),
                            (65, {1: 2, 2: 1, 3: 1})],
)  # fmt: skip
def test_cargo_of_a_tanker(level: int, quarters: dict[int, int]) -> None:
    stage = about_to_hatch(level, None)
    stage.ram["kind_min"][m.TANKER] = 2
    seen = outcomes(stage, 4000, lambda ram: int(ram["enemy_flags"][1]) & m.CARGO_MASK)
    assert set(seen) == set(quarters)
    if len(quarters) > 1:
        assert_spread([seen[cargo] for cargo in quarters], [n / 4 for n in quarters.values()])


def test_who_hatches_beyond_the_end_of_an_open_well_gets_an_even_lane() -> None:
    stage = about_to_hatch(8, None, lane=15)
    seen = outcomes(stage, 4000, lambda ram: int(ram["enemy_lane"][1]))
    assert_spread([seen[lane] for lane in range(0, 16, 2)])
    assert sum(seen[lane] for lane in range(1, 16, 2)) == 0


@pytest.mark.parametrize(("level", "lanes"), [(1, 16), (8, 15)])
def test_lane_of_a_spikers_next_climb(level: int, lanes: int) -> None:
    """Of the lanes without a spike the one visited last, from a random lane downwards."""
    stage = Stage(level)
    stage.put_enemy(m.SPIKER, depth=0xEF)
    stage.ram["enemy_script_pc"][6] = 0x00
    stage.ram["enemy_flags"][6] = m.FLAG_MOVING_DOWN
    stage.ram["spike_depth"] = 0x00
    stage.ram["spike_depth"][5] = 0x80
    seen = outcomes(stage, 8000, lambda ram: int(ram["enemy_lane"][6]))
    # The last lane visited of those without a spike is the one above the first examined; the
    # spike's lane passes its share on to the lane above it, the missing lane 15 to lane 0.
    chances = {lane: 1 / 16 for lane in range(16)}
    chances[6] += chances.pop(5)
    if lanes == 15:
        chances[0] += chances.pop(15)
    assert set(seen) == set(chances)
    assert_spread([seen[lane] for lane in chances], list(chances.values()))


def test_lanes_of_the_waiting_enemies_are_uniform() -> None:
    counts = np.zeros(16, np.int64)
    for seed in range(40):
        stage = Stage(81, seed=seed)
        stage.ram["game_state"] = m.STATE_END_WAVE
        stage.tick()
        counts += np.bincount(stage.ram["queue_lane"][: stage.ram["queue_count"]], minlength=16)
    assert counts.sum() == 40 * 44
    assert_spread(counts)


def test_level_99_draws_wave_and_well_anew_and_apart() -> None:
    row_of = {(int(row[1]), int(row[2], 16)): level for level, row in ROWS.items() if level >= 65}
    stage = Stage(99)
    stage.ram["game_state"] = m.STATE_NEW_LIFE
    stage.ram["queue_count"] = 0

    def look(ram: Any) -> tuple[int, int]:
        key = (int(ram["queue_start_count"]), int(ram["spike_start_depth"]))
        return row_of[key], int(ram["well_shape"])

    seen = outcomes(stage, 16_000, look)
    levels, shapes = np.zeros(99, np.int64), np.zeros(16, np.int64)
    together = np.zeros((2, 16), np.int64)
    for (level, shape), count in seen.items():
        levels[level] += count
        shapes[shape] += count
        together[level % 2, shape] += count
    assert levels[65:97].sum() == 16_000
    assert_spread(levels[65:97])
    assert_spread(shapes)
    assert_spread(together)

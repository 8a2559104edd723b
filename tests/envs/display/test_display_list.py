"""The display list: what is drawn where, in which colour, and that it keeps to its bounds.

``data/display_golden.json`` holds a digest of the list and palette of each scene.  Nothing in
them depends on a library's rounding, so they are equal or something has changed.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import pytest
from drawn_wells import SCENES, WELLS, empty_well, projected
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.core.runtime import _nrt_python, rtsys
from numpy.typing import NDArray
from places import DATA

from tempest_agent.envs.display.beam import BRIGHT, CAPACITY, EDGE, FAINT, NORMAL
from tempest_agent.envs.display.display_list import DisplayList, write_display_list
from tempest_agent.envs.engine.batch import GameBatch
from tempest_agent.envs.engine.settings import GameSettings
from tempest_agent.envs.machine.memory import (
    FUSEBALL,
    MODE_IN_GAME,
    STATE_HIGH_SCORE_CHECK,
    STATE_LEVEL_ENTRY,
    STATE_WARP,
    TANKER,
    as_bytes,
    from_bytes,
)

GOLDEN: dict[str, str] = json.loads((DATA / "display_golden.json").read_text(encoding="utf-8"))
LIST = DisplayList()
MOST = round(EDGE * 16)


def rows_of(ram: Any, score: int | None = None, texts: bool = True) -> NDArray[np.int64]:
    """The rows of an image's display list."""
    cells = np.frombuffer(np.asarray(ram).tobytes(), np.uint8).copy()
    return LIST.write(cells, score, texts).astype(np.int64)


def added(before: NDArray[np.int64], after: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of ``after`` that ``before`` does not have."""
    old = set(map(tuple, before.tolist()))
    return np.array([row for row in after.tolist() if tuple(row) not in old]).reshape(-1, 6)


def dots_of(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    return rows[(rows[:, 0] == rows[:, 2]) & (rows[:, 1] == rows[:, 3])]


def box_of(rows: NDArray[np.int64]) -> tuple[float, float, float, float]:
    """Left, base, right and top of rows, in screen units."""
    x, z = rows[:, [0, 2]] / 16.0, rows[:, [1, 3]] / 16.0
    return float(x.min()), float(z.min()), float(x.max()), float(z.max())


# ------------------------------------------------------------------------------- the contract


@pytest.mark.parametrize("scene", SCENES)
def test_lists_equal_the_accepted_ones(scene: str) -> None:
    rows = LIST.write(SCENES[scene]).astype("<i2")
    digest = hashlib.sha256(rows.tobytes() + LIST.colours.tobytes()).hexdigest()
    assert digest[:16] == GOLDEN[scene]


def played_images() -> NDArray[np.uint8]:
    """Images of random play on all levels."""
    batch = GameBatch(33, GameSettings(start_level=range(1, 100, 3)), observe=False)
    batch.reset(seeds=5)
    random = np.random.default_rng(1)
    images = []
    for tick in range(120):
        spin = random.integers(-31, 32, 33).astype(np.int8)
        batch.step(spin, random.integers(0, 4, 33).astype(np.uint8))
        if tick % 20 == 19:
            images.append(as_bytes(batch.ram).copy())
    return np.concatenate(images)


@pytest.fixture(scope="module")
def played() -> NDArray[np.uint8]:
    return played_images()


def assert_within_bounds(rows: NDArray[np.int64]) -> None:
    assert 0 < len(rows) < CAPACITY
    assert np.abs(rows[:, :4]).max() <= MOST
    assert rows[:, 4].min() >= 0
    assert rows[:, 4].max() <= 15
    assert set(rows[:, 5].tolist()) <= {FAINT, NORMAL, BRIGHT}


@settings(max_examples=150, deadline=None)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1), damaged=st.integers(0, 2048))
def test_any_image_keeps_to_the_bounds(
    played: NDArray[np.uint8], data: st.DataObject, seed: int, damaged: int
) -> None:
    cells = played[data.draw(st.integers(0, len(played) - 1))].copy()
    random = np.random.default_rng(seed)
    where = random.permutation(2048)[:damaged]
    cells[where] = random.integers(0, 256, damaged)
    assert_within_bounds(rows_of(cells))


@pytest.mark.parametrize("display_state", [0x00, 0x08, 0x0A, 0x0C])
def test_the_fullest_image_leaves_room(display_state: int) -> None:
    ram = empty_well()
    ram["display_state"] = display_state
    ram["enemy_kind"], ram["enemy_flags"], ram["enemy_depth"] = TANKER, 3, 0x20
    ram["enemy_shot_depth"] = ram["player_shot_depth"] = ram["spike_depth"] = 0x30
    ram["queue_depth"], ram["star_field"], ram["star_plane"] = 0x20, 0xFF, 0x40
    ram["boom_type"], ram["boom_depth"], ram["boom_seq"], ram["death_picture"] = 1, 0x80, 12, 0
    ram["lives"], ram["spike_flag"], ram["last_player"] = 6, 0x80, 1
    ram["score_p1"] = ram["score_p2"] = 0x88
    assert_within_bounds(rows_of(ram))
    ram["enemy_kind"] = FUSEBALL
    assert_within_bounds(rows_of(ram, score=2**62))


def test_writing_allocates_nothing_and_a_full_list_ends() -> None:
    arrays = [np.zeros(2048, np.uint8), np.full((9, 6), 7, np.int16), np.zeros(1, np.int64)]
    colours = np.zeros((16, 3), np.uint8)
    image = from_bytes(SCENES["circle"][None])[0]
    write_display_list(image, arrays[0], -1, True, arrays[1][:8], arrays[2], colours)
    assert arrays[2][0] == 8
    assert (arrays[1][8] == 7).all()
    full = np.zeros((CAPACITY, 6), np.int16)
    _nrt_python.memsys_enable_stats()
    try:
        before = rtsys.get_allocation_stats().mi_alloc
        for _ in range(10):
            write_display_list(image, arrays[0], -1, True, full, arrays[2], colours)
        # The four arrays that Python passes are wrapped, at each call.
        assert rtsys.get_allocation_stats().mi_alloc - before == 10 * 4
    finally:
        _nrt_python.memsys_disable_stats()


# ------------------------------------------------------------------------------- perspective


def by_integers(well: dict[str, Any], spoke: int, depth: int) -> tuple[int, int]:
    """The machine's own arithmetic: unsigned division, then the sign."""
    distance = depth - well["eye_depth"]
    x, z = well["spoke_x"][spoke] - 0x80, well["spoke_z"][spoke] - well["eye_z"]
    across, up = abs(x) * 128 // distance, abs(z) * 128 // distance
    return (across if x > 0 else -across), (up if z > 0 else -up) + well["vanish_point_z"]


@pytest.mark.parametrize("well_id", WELLS)
def test_spokes_agree_with_the_machines_arithmetic(well_id: int) -> None:
    spokes = rows_of(empty_well(well_id=well_id), texts=False)[:16, :4] / 16.0
    expected = [
        (*by_integers(WELLS[well_id], spoke, 0xF0), *by_integers(WELLS[well_id], spoke, 0x10))
        for spoke in range(16)
    ]
    # The machine cuts the fraction off, the list rounds to a sixteenth of a unit.
    assert np.abs(spokes - np.array(expected)).max() <= 1.0 + 1 / 32


def test_what_leaves_the_screen_is_cut_where_it_leaves() -> None:
    ram = empty_well()
    ram["game_state"], ram["player_depth"] = STATE_WARP, 0xA0
    ram["eye_depth_hi"], ram["eye_depth_lo"] = 0, 0x10  # far through the rim
    rows = rows_of(ram, texts=False)[:16, :4] / 16.0
    for spoke, (x0, z0, x1, z1) in enumerate(rows):
        world = float(ram["lane_x"][spoke]), float(ram["lane_z"][spoke])
        start = projected(ram, *world, 0xF0)
        end = projected(ram, *world, 0x1F)
        assert (x0, z0) == pytest.approx(start, abs=0.05)
        if max(map(abs, end)) <= EDGE:
            assert (x1, z1) == pytest.approx(end, abs=0.05)
        else:
            assert max(abs(x1), abs(z1)) == EDGE
            turn = (end[0] - start[0]) * (z1 - z0) - (end[1] - start[1]) * (x1 - x0)
            assert abs(turn) < 0.1 * np.hypot(end[0] - start[0], end[1] - start[1])


# ------------------------------------------------------------------------------- what is drawn


@pytest.mark.parametrize(("cause", "outlines", "dots"), [(8, 6, 5), (10, 0, 36)])
def test_a_claw_that_no_shot_killed_flies_apart_or_turns_to_dots(
    cause: int, outlines: int, dots: int
) -> None:
    ram = empty_well()
    ram["player_lane_ccw"], ram["boom_type"][0], ram["boom_lane"][0] = 0x81, 1, 8
    before = rows_of(ram)
    ram["death_picture"][2], ram["boom_depth"][0] = cause, 0x10
    reach = []
    for sequence in range(1, 20):
        ram["boom_seq"][0] = sequence
        new = added(before, rows_of(ram))
        assert len(dots_of(new)) == dots
        lines = new[(new[:, :2] != new[:, 2:4]).any(axis=1)]
        # An outline is closed: each line begins where the one before it ended, or a new one.
        begins = (lines[1:, :2] != lines[:-1, 2:4]).any(axis=1)
        assert int(begins.sum()) + (len(lines) > 0) == outlines
        assert set(new[:, 4].tolist()) == {1}
        left, base, right, top = box_of(new)
        reach.append((right - left, top - base))
    assert reach == sorted(reach)


def test_a_grab_draws_nothing_over_the_claw() -> None:
    ram = empty_well()
    ram["player_lane_ccw"] = 0x80
    before = rows_of(ram)
    ram["boom_type"][0], ram["boom_depth"][0], ram["boom_seq"][0] = 5, 0x10, 9
    np.testing.assert_array_equal(rows_of(ram), before)


@pytest.mark.parametrize(("wave", "colours"), [(0, {6}), (4, {6}), (5, {0, 1, 2, 3, 4, 5, 6})])
def test_stars_are_scattered_faint_and_of_one_colour_on_the_first_levels(
    wave: int, colours: set[int]
) -> None:
    ram = empty_well(wave)
    before = rows_of(ram)
    ram["star_field"], ram["star_plane"] = 0xFF, 0xF0
    stars = added(before, rows_of(ram))
    assert set(stars[:, 4].tolist()) == colours
    assert set(stars[:, 5].tolist()) == {FAINT}
    assert len(dots_of(stars)) == len(stars) > 70
    from_middle = np.hypot(stars[:, 0], stars[:, 1] - 16 * projected(ram, 0, 80, 0xF0)[1])
    assert len(np.unique(from_middle.round(-1))) > 40  # no rings


def test_a_bonus_life_makes_the_spokes_flash_while_its_timer_runs() -> None:
    ram = empty_well()
    plain = rows_of(ram)[:16, 4]
    seen = set()
    for timer in range(0x20, -1, -1):
        ram["life_flash"] = timer
        colours = rows_of(ram)[:16, 4]
        assert (colours != plain).any()
        assert 7 not in colours
        seen.add(tuple(colours.tolist()))
    assert len(seen) == 8
    ram["life_flash"] = 0xFF
    np.testing.assert_array_equal(rows_of(ram)[:16, 4], plain)


# ------------------------------------------------------------------------------- texts


def test_avoid_spikes_is_white_and_in_the_upper_half() -> None:
    ram = empty_well()
    before = rows_of(ram)
    ram["spike_flag"] = 0x80
    text = added(before, rows_of(ram))
    assert set(text[:, 4].tolist()) == {0}
    assert box_of(text) == (-288.0, 0.0, 272.0, 48.0)


def test_the_approach_names_the_level_and_says_that_the_zapper_is_charged() -> None:
    ram = empty_well(wave=11)
    before = rows_of(ram)
    ram["game_state"] = STATE_LEVEL_ENTRY
    text = added(before, rows_of(ram))
    assert set(text[:, 4].tolist()) == {7}
    level, recharge = text[text[:, 1] > 0], text[text[:, 1] < 0]
    assert box_of(level) == (-128.0, 360.0, -16.0, 384.0)
    assert box_of(recharge) == (-240.0, -383.0, 232.0, -359.0)
    row = 320.6 + 0.549 * 371.0
    assert row / 640 == pytest.approx(0.82, abs=0.005)


def test_no_game_over_stands_in_the_last_picture_and_the_score_stays() -> None:
    ram = empty_well()
    ram["game_state"], ram["lives"][0], ram["player_lane_ccw"] = STATE_HIGH_SCORE_CHECK, 0, 0x81
    ram["score_p1"] = (0x00, 0x45, 0x00)
    ram["mode_flags"], ram["player_up"] = MODE_IN_GAME, 1  # as the machine leaves them
    rows = rows_of(ram)
    text = rows[rows[:, 4] == 5]
    left, base, right, top = box_of(text[text[:, 2] < -160 * 16])
    assert (base, top) == (363.0, 387.0)
    assert (left, right) == (-400.0, -312.0)
    assert not len(text[(text[:, 1] < 300 * 16) & (text[:, 1] > -300 * 16)])


def test_in_a_game_of_two_the_player_whose_turn_it_is_has_the_large_score() -> None:
    ram = empty_well()
    ram["last_player"], ram["score_p1"], ram["score_p2"] = 1, (0x11, 0, 0), (0x22, 0, 0)
    heights = []
    for player in (0, 1):
        ram["player_up"] = player
        rows = rows_of(ram)
        green = rows[(rows[:, 4] == 5) & (rows[:, 1] >= 360 * 16) & (rows[:, 3] < 415 * 16)]
        for side in (green[green[:, 0] < -170 * 16], green[green[:, 0] > 170 * 16]):
            _, base, _, top = box_of(side)
            heights.append(top - base)
    assert heights == [48.0, 24.0, 24.0, 48.0]


def test_the_level_select_lists_five_levels_with_a_box_around_the_chosen_one() -> None:
    ram = empty_well()
    ram["display_state"], ram["pause_timer"] = 0x08, 0x09
    cells = np.frombuffer(ram.tobytes(), np.uint8).copy()
    boxes = []
    for chosen in (0, 3, 4, 9, 27, 200):
        cells[0x200] = chosen
        rows = rows_of(cells)
        box = rows[rows[:, 5] == BRIGHT]
        assert len(box) == 4
        boxes.append(box_of(box)[0])
    assert boxes == [-354.0, 103.0, 263.0, 263.0, 263.0, 263.0]
    cells[0x200], cells[0x7B], cells[0x7C] = 9, 8, 12  # where the machine's display has the list
    rows = rows_of(cells)
    assert box_of(rows[rows[:, 5] == BRIGHT])[0] == -205.0


def test_the_level_select_without_texts_keeps_its_wells() -> None:
    ram = empty_well()
    ram["display_state"] = 0x08
    assert 60 < len(rows_of(ram, texts=False)) < len(rows_of(ram)) - 200

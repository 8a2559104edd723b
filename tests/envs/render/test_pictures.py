"""The picture of a RAM image: where things stand, in which colour, and that nothing else is lit.

``data/render_scenes.npz`` holds RAM images of the arcade machine; ``data/render_golden.npz`` the
accepted pictures of some of them, shrunk to 60 x 80 so that another OpenCV's antialiasing is no
failure.
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pytest
from drawn_wells import SCENES, WELLS, Picture, empty_well, projected
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from places import DATA

from tempest_agent.envs.display.palette import GROUPS
from tempest_agent.envs.machine.memory import (
    FLIPPER,
    FUSEBALL,
    KIND_FLIPPING,
    PULSAR,
    RAM_DTYPE,
    SPIKER,
    TANKER,
    from_bytes,
)
from tempest_agent.envs.render.rasteriser import Rasteriser
from tempest_agent.envs.render.renderer import Renderer, grayscale

with np.load(DATA / "render_golden.npz") as stored:
    GOLDEN: dict[str, Picture] = {name: stored[name] for name in stored.files}
SHARP = Renderer(glow=False)
FULL = Rasteriser(480, 640)


def pixel_of(ram: Any, x: float, z: float, depth: float) -> tuple[int, int]:
    """Pixel (column, row) of a world point in the 480 x 640 picture."""
    point = np.array(projected(ram, x, z, depth)) * 16
    column, row = FULL.pixels(np.tile(point, 2)[None].astype(np.int16))[0, :2] >> 4
    return int(column), int(row)


def lane_pixel(ram: Any, lane: int, depth: float) -> tuple[int, int]:
    """Pixel in the middle of a lane."""
    x = (int(ram["lane_x"][lane]) + int(ram["lane_x"][(lane + 1) % 16])) / 2
    z = (int(ram["lane_z"][lane]) + int(ram["lane_z"][(lane + 1) % 16])) / 2
    return pixel_of(ram, x, z, depth)


def colour(ram: Any, index: int) -> NDArray[np.int64]:
    return GROUPS[min((int(ram["cur_wave"]) & 0x70) >> 4, 5)][index].astype(np.int64)


def near(picture: Picture, rgb: NDArray[np.int64], tolerance: int = 60) -> NDArray[np.bool_]:
    """Pixels close to a colour."""
    return np.asarray(np.abs(picture.astype(np.int64) - rgb).max(axis=2) <= tolerance)


def changed_box(one: Picture, other: Picture) -> tuple[int, int, int, int]:
    """Left, top, right, bottom of where two pictures differ."""
    rows, columns = np.nonzero((one != other).any(axis=2))
    assert len(rows), "the pictures are the same"
    return int(columns.min()), int(rows.min()), int(columns.max()), int(rows.max())


def assert_within(box: tuple[int, int, int, int], centre: tuple[int, int], reach: int) -> None:
    left, top, right, bottom = box
    assert centre[0] - reach <= left <= right <= centre[0] + reach, (box, centre)
    assert centre[1] - reach <= top <= bottom <= centre[1] + reach, (box, centre)


# ------------------------------------------------------------------------------- the contract


@pytest.mark.parametrize("scene", GOLDEN)
@pytest.mark.parametrize(("width", "height"), [(480, 640), (240, 320), (84, 84)])
def test_every_scene_gives_a_lit_picture_of_the_size_asked_for(
    scene: str, width: int, height: int
) -> None:
    picture = Renderer(width, height, glow=height > 84).draw(SCENES[scene])
    assert picture.shape == (height, width, 3)
    assert picture.dtype == np.uint8
    assert picture.max() > 150


def test_no_display_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    assert Renderer().draw(SCENES["circle"]).max() > 150


def test_each_call_gives_a_new_equal_picture_and_leaves_the_image_alone() -> None:
    renderer = Renderer()
    cells = SCENES["staircase"].copy()
    first = renderer.draw(cells)
    renderer.draw(SCENES["warp"])
    second = renderer.draw(cells)
    assert not np.shares_memory(first, second)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(cells, SCENES["staircase"])
    first[:] = 7
    np.testing.assert_array_equal(renderer.draw(cells), second)


def test_a_record_and_its_bytes_give_the_same_picture() -> None:
    cells = SCENES["level33"]
    batch = np.zeros(3, RAM_DTYPE)
    batch[1] = from_bytes(cells)
    expected = SHARP.draw(cells)
    for same in (batch[1], batch[1:2], np.array(batch[1]), from_bytes(cells)):
        np.testing.assert_array_equal(SHARP.draw(same), expected)


@pytest.mark.parametrize(
    "wrong", [np.zeros(3, RAM_DTYPE), np.zeros(2047, np.uint8), np.zeros(2048), np.zeros((2, 2048))]
)
def test_what_is_not_one_image_is_refused_in_one_line(wrong: NDArray[Any]) -> None:
    with pytest.raises(ValueError, match="RAM_DTYPE record or 2048") as refused:
        SHARP.draw(wrong)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("width", "height"), [(0, 640), (480, -1), (480, 100_000)])
def test_a_picture_size_out_of_range_is_refused(width: int, height: int) -> None:
    with pytest.raises(ValueError, match="side of a picture"):
        Renderer(width, height)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_any_bytes_can_be_drawn(seed: int, small: bool) -> None:
    cells = np.random.default_rng(seed).integers(0, 256, 2048, dtype=np.uint8)
    size = (84, 84) if small else (240, 320)
    picture = Renderer(*size, glow=not small).draw(cells)
    assert picture.shape == (size[1], size[0], 3)


@pytest.mark.parametrize("value", [0, 1, 0x7F, 0x80, 0xFF])
def test_uniform_bytes_can_be_drawn_and_show_a_score(value: int) -> None:
    assert SHARP.draw(np.full(2048, value, np.uint8)).any()


@pytest.mark.parametrize("scene", GOLDEN)
def test_pictures_equal_the_accepted_ones(scene: str) -> None:
    small = cv2.resize(Renderer().draw(SCENES[scene]), (60, 80), interpolation=cv2.INTER_AREA)
    difference = np.abs(small.astype(np.int64) - GOLDEN[scene])
    assert difference.mean() < 0.5
    # The bound can tell scenes apart, even two in the same well.
    for other in set(GOLDEN) - {scene}:
        assert np.abs(small.astype(np.int64) - GOLDEN[other]).mean() > 1.0


# ------------------------------------------------------------------------------- perspective


def test_the_circle_stands_where_the_machine_shows_it() -> None:
    ram = empty_well()
    blue = near(SHARP.draw(ram), colour(ram, 6))
    blue[:130] = False  # the level number has the well's colour
    rows, columns = np.nonzero(blue)
    # Measured on the machine's 480 x 640 picture of level 1.
    assert abs(columns.min() - 90) <= 1
    assert abs(columns.max() - 389) <= 1
    assert abs(rows.min() - 145) <= 1
    assert abs(rows.max() - 538) <= 1


@pytest.mark.parametrize("well_id", WELLS)
def test_each_well_has_its_spokes_rim_and_bottom(well_id: int) -> None:
    ram = empty_well(well_id=well_id)
    ram["player_lane_ccw"] = 0x81  # no claw, and no spokes in its colour
    lit = near(SHARP.draw(ram), colour(ram, 6), 130)
    lit = cv2.dilate(lit.astype(np.uint8), np.ones((3, 3), np.uint8)) > 0
    x, z = ram["lane_x"].astype(np.float64), ram["lane_z"].astype(np.float64)
    for spoke in range(16):
        for depth in (0x10, 0x20, 0x60, 0xF0):
            column, row = pixel_of(ram, x[spoke], z[spoke], depth)
            assert lit[row, column], (spoke, depth)
    closing = pixel_of(ram, (x[15] + x[0]) / 2, (z[15] + z[0]) / 2, 0x10)
    first = lane_pixel(ram, 0, 0x10)
    assert lit[first[1], first[0]]
    if well_id not in (8, 14):  # there the missing side lies over another line or none at all
        assert lit[closing[1], closing[0]] != WELLS[well_id]["open"]


def test_the_eye_follows_the_claw_through_the_dive() -> None:
    still = empty_well()
    dive = empty_well()
    dive["player_depth"] = 0x10 + 100
    depth = WELLS[0]["eye_depth"] + 100
    dive["eye_depth_hi"], dive["eye_depth_lo"] = depth >> 8 & 0xFF, depth & 0xFF
    x, z = float(still["lane_x"][0]), float(still["lane_z"][0])
    assert pixel_of(dive, x, z, 0x10 + 100) == pixel_of(still, x, z, 0x10)
    dive["game_state"] = 0x20
    assert (SHARP.draw(dive) != SHARP.draw(still)).any()


def test_a_new_well_grows_while_it_comes_near() -> None:
    sizes = []
    for eye in (-1536, -1000, -500, -100, -24):
        ram = empty_well()
        ram["player_lane_ccw"] = 0x81
        ram["eye_depth_hi"], ram["eye_depth_lo"] = eye >> 8 & 0xFF, eye & 0xFF
        blue = near(SHARP.draw(ram), colour(ram, 6), 130)
        blue[:130] = False
        rows, _ = np.nonzero(blue)
        sizes.append(int(np.ptp(rows)))
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1] / 10


# ------------------------------------------------------------------------------- colours

TUBE = [(0, (0, 0, 243)), (16, (255, 0, 0)), (32, (255, 243, 0)), (48, (0, 243, 243)),
        (80, (0, 243, 0)), (98, (0, 243, 0))]  # fmt: skip


@pytest.mark.parametrize(("wave", "rgb"), TUBE)
def test_the_tube_has_the_colour_of_its_group(wave: int, rgb: tuple[int, int, int]) -> None:
    ram = empty_well(wave)
    picture = SHARP.draw(ram)
    bottom = pixel_of(ram, float(ram["lane_x"][8]), float(ram["lane_z"][8]), 0x20)
    patch = picture[bottom[1] - 1 : bottom[1] + 2, bottom[0] - 1 : bottom[0] + 2]
    assert near(patch, np.array(rgb)).any()


@pytest.mark.parametrize("wave", [64, 79])
def test_the_tube_of_levels_65_to_80_is_invisible_but_for_the_claws_spokes(wave: int) -> None:
    ram = empty_well(wave)
    picture = SHARP.draw(ram)
    _, top = lane_pixel(ram, 4, 0x10)
    claw = near(picture, colour(ram, 1), 254)[top - 5 :]
    rest = picture[top - 5 :][~claw]
    assert claw.any()
    assert not rest.any()


def test_the_zapper_flashes_all_spokes() -> None:
    ram = empty_well()
    ram["zap_timer"] = 5
    seen = set()
    for frame in range(8):
        ram["frame_counter"] = frame
        x, z = float(ram["lane_x"][8]), float(ram["lane_z"][8])
        column, row = pixel_of(ram, x, z, 0x40)
        seen.add(tuple(SHARP.draw(ram)[row, column - 1 : column + 2].max(axis=0).tolist()))
    assert len(seen) >= 5
    ram["zap_timer"] = 0xFF  # a dive: no flash
    plain = SHARP.draw(ram)
    ram["zap_timer"] = 0
    np.testing.assert_array_equal(SHARP.draw(ram), plain)


# ------------------------------------------------------------------------------- claw


def test_the_claw_stands_outside_its_lane_and_leaves_the_picture_with_its_death() -> None:
    ram = empty_well()
    alive = SHARP.draw(ram)
    ram["player_lane_ccw"] = 0x81
    dead = SHARP.draw(ram)
    yellow = near(alive, colour(ram, 1)) & (alive != dead).any(axis=2)
    column, row = lane_pixel(ram, 0, 0x10)
    _, columns = np.nonzero(yellow)
    assert columns.max() > column + 8  # lane 0 is at the right; outward is to the right
    assert not near(dead, colour(ram, 1))[130:, 240:].any()
    ram["player_lane_ccw"] = 0x80  # grabbed: still there
    grabbed = SHARP.draw(ram)
    patch = (slice(row - 40, row + 40), slice(column - 10, column + 30))
    assert near(grabbed[patch], colour(ram, 1)).sum() > 30


def test_the_claw_has_eight_postures_in_each_lane() -> None:
    ram = empty_well()
    pictures = []
    for step in range(16):
        ram["rim_pos"] = step
        pictures.append(SHARP.draw(ram).tobytes())
    assert [pictures[2 * k] == pictures[2 * k + 1] for k in range(8)] == [True] * 8
    assert len(set(pictures)) == 8


@pytest.mark.parametrize("well_id", WELLS)
def test_the_two_spokes_beside_the_claw_have_its_colour(well_id: int) -> None:
    ram = empty_well(well_id=well_id)
    ram["player_lane"], ram["player_lane_ccw"] = 3, 4
    picture = SHARP.draw(ram)
    for spoke in (3, 4):
        x, z = float(ram["lane_x"][spoke]), float(ram["lane_z"][spoke])
        column, row = pixel_of(ram, x, z, 0x28)
        assert near(picture[row - 2 : row + 3, column - 2 : column + 3], colour(ram, 1), 90).any()


# ------------------------------------------------------------------------------- enemies


def with_enemy(ram: Any, kind: int, lane: int, second: int, depth: int, flags: int = 0) -> Any:
    ram["enemy_kind"][2], ram["enemy_flags"][2] = kind, flags
    ram["enemy_lane"][2], ram["enemy_lane_ccw"][2] = lane, second
    ram["enemy_depth"][2] = depth
    return ram


KIND_COLOURS = [
    (FLIPPER, 3), (PULSAR, 4), (TANKER, 2), (SPIKER, 5),
    *((FUSEBALL, index) for index in (1, 2, 3, 4, 5)),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "index"), KIND_COLOURS)
@pytest.mark.parametrize("depth", [0x10, 0x30, 0x80])
@pytest.mark.parametrize("wave", [0, 20, 40, 50, 70, 90])
def test_an_enemy_shows_its_colour_at_its_place_and_nowhere_else(
    kind: int, index: int, depth: int, wave: int
) -> None:
    ram = empty_well(wave)
    before = SHARP.draw(ram)
    after = SHARP.draw(with_enemy(ram, kind, 6, 7, depth))
    new = (before != after).any(axis=2)
    assert (new & near(after, colour(ram, index), 100)).any()
    centre = lane_pixel(ram, 6, depth)
    if kind == FUSEBALL:
        centre = pixel_of(ram, float(ram["lane_x"][6]), float(ram["lane_z"][6]), depth)
    scale = 40 / (depth + 24)
    if kind != PULSAR:  # which also hides the rim of its lane
        assert_within(changed_box(before, after), centre, 6 + round(50 * scale))
    ram["enemy_depth"][2] = 0
    np.testing.assert_array_equal(SHARP.draw(ram), before)


def test_a_flipping_enemy_turns_about_its_pivot_spoke() -> None:
    ram = empty_well()
    before = SHARP.draw(ram)
    pivot = pixel_of(ram, float(ram["lane_x"][6]), float(ram["lane_z"][6]), 0x20)
    boxes = set()
    for angle in range(16):
        after = SHARP.draw(with_enemy(ram, FLIPPER | KIND_FLIPPING, 6, 0x80 | angle, 0x20))
        boxes.add(changed_box(before, after))
        red = near(after, colour(ram, 3)) & (before != after).any(axis=2)
        around = red[pivot[1] - 3 : pivot[1] + 4, pivot[0] - 3 : pivot[0] + 4]
        assert around.any(), angle
        assert_within(changed_box(before, after), pivot, 75)
    assert len(boxes) == 16


@pytest.mark.parametrize("well_id", [0, 8, 13])
@pytest.mark.parametrize("angle", range(16))
def test_the_leg_of_a_flip_ends_where_its_angle_points(well_id: int, angle: int) -> None:
    ram = empty_well(well_id=well_id)
    before = SHARP.draw(ram)
    # Radii in world units: 0x2C on the circle, shorter on the wells with narrow lanes.
    radius = {0: 44.0, 8: 15.125, 13: 30.25}[well_id]
    turn = angle * np.pi / 8
    x = float(ram["lane_x"][6]) + radius * np.cos(turn)
    z = float(ram["lane_z"][6]) + radius * np.sin(turn)
    column, row = pixel_of(ram, x, z, 0x20)
    after = SHARP.draw(with_enemy(ram, FLIPPER | KIND_FLIPPING, 6, 0x80 | angle, 0x20))
    new = (before != after).any(axis=2)
    assert new[row - 3 : row + 4, column - 3 : column + 4].any()


def test_a_resting_flipper_hangs_inside_the_well() -> None:
    ram = empty_well()
    before = SHARP.draw(ram)
    after = SHARP.draw(with_enemy(ram, FLIPPER, 8, 9, 0x10))  # at the left
    left, _, right, _ = changed_box(before, after)
    column, _ = lane_pixel(ram, 8, 0x10)
    assert right - column > column - left + 5


def test_pictures_shrink_with_the_distance() -> None:
    ram = empty_well()
    before = SHARP.draw(ram)
    heights = []
    for depth in (0x10, 0x38, 0x60):  # 1, 1/2 and 1/3 of the full size
        _, top, _, bottom = changed_box(before, SHARP.draw(with_enemy(ram, TANKER, 4, 5, depth)))
        heights.append(bottom - top)
    assert heights[0] == pytest.approx(128 * 0.549, abs=4)
    assert heights[1] == pytest.approx(heights[0] / 2, abs=4)
    assert heights[2] == pytest.approx(heights[0] / 3, abs=4)


@pytest.mark.parametrize("angle", range(1, 8))
def test_a_rolling_fuseball_is_on_its_way_to_the_next_spoke(angle: int) -> None:
    ram = empty_well()
    before = SHARP.draw(ram)
    after = SHARP.draw(with_enemy(ram, FUSEBALL | KIND_FLIPPING, 6, 0x80 | angle, 0x10))
    here = np.array(pixel_of(ram, float(ram["lane_x"][6]), float(ram["lane_z"][6]), 0x10))
    there = np.array(pixel_of(ram, float(ram["lane_x"][7]), float(ram["lane_z"][7]), 0x10))
    column, row = (here + (there - here) * angle / 8).round().astype(int)
    new = (before != after).any(axis=2)
    assert new[row - 3 : row + 4, column - 3 : column + 4].any()


def test_a_pulsar_changes_colour_and_height_with_its_pulse() -> None:
    ram = with_enemy(empty_well(), PULSAR, 6, 7, 0x40)
    ram["pulse_depth"] = 0
    areas = {}
    for phase in (0xC0, 0xF8, 0x05):
        ram["pulse_phase"] = phase
        picture = SHARP.draw(ram)
        index = 0 if phase < 0x80 else 4
        hit = near(picture, colour(ram, index), 90)
        hit[:130] = False
        rows, columns = np.nonzero(hit)
        assert len(rows)
        areas[phase] = int(np.ptp(columns) + 1) * int(np.ptp(rows) + 1)
    assert areas[0xC0] < areas[0xF8] <= areas[0x05] * 1.1


def test_a_pulsar_hides_the_rim_of_its_lane_and_lights_the_spokes_when_it_can_kill() -> None:
    ram = empty_well()
    column, row = lane_pixel(ram, 6, 0x10)
    rim = (slice(row - 2, row + 3), slice(column - 2, column + 3))
    assert SHARP.draw(ram)[rim].any()
    with_enemy(ram, PULSAR, 6, 7, 0x60)
    ram["pulse_phase"], ram["pulse_depth"], ram["frame_counter"] = 5, 0x80, 1
    picture = SHARP.draw(ram)
    assert not picture[rim].any()
    x, z = float(ram["lane_x"][6]), float(ram["lane_z"][6])
    column, row = pixel_of(ram, x, z, 0x20)
    spoke = (slice(row - 2, row + 3), slice(column - 2, column + 3))
    assert near(picture[spoke], colour(ram, 0)).any()
    ram["pulse_depth"] = 0x60  # at the limit it does not kill
    assert near(SHARP.draw(ram)[spoke], colour(ram, 6)).any()


def test_a_tankers_mark_tells_its_cargo() -> None:
    pictures = {
        cargo: SHARP.draw(with_enemy(empty_well(), TANKER, 6, 7, 0x20, 0x40 | cargo))
        for cargo in (1, 2, 3)
    }
    ram = empty_well()
    centre = lane_pixel(ram, 6, 0x20)
    for cargo, indices in ((2, (4,)), (3, (6, 3, 5, 1))):
        assert_within(changed_box(pictures[1], pictures[cargo]), centre, 14)
        new = (pictures[1] != pictures[cargo]).any(axis=2)
        for index in indices:
            assert (new & near(pictures[cargo], colour(ram, index), 110)).any(), index


def test_a_kind_that_does_not_exist_is_not_drawn() -> None:
    ram = empty_well()
    before = SHARP.draw(ram)
    np.testing.assert_array_equal(SHARP.draw(with_enemy(ram, 6, 6, 7, 0x40)), before)


# ------------------------------------------------------------------------------- shots, spikes


@pytest.mark.parametrize("slot", [0, 7])
def test_a_player_shot_is_at_its_lane_and_depth(slot: int) -> None:
    ram = empty_well()
    before = SHARP.draw(ram)
    ram["player_shot_lane"][slot], ram["player_shot_depth"][slot] = 9, 0x30
    after = SHARP.draw(ram)
    assert_within(changed_box(before, after), lane_pixel(ram, 9, 0x30), 8)


@pytest.mark.parametrize(
    ("shots", "rgb"), [(5, (255, 243, 0)), (6, (0, 0, 243)), (7, (0, 0, 243)), (8, (255, 0, 0))]
)
def test_the_core_of_the_shots_warns_when_few_are_left(
    shots: int, rgb: tuple[int, int, int]
) -> None:
    ram = empty_well(wave=16)
    ram["player_shot_lane"] = 9
    ram["player_shot_depth"][:shots] = np.arange(shots) * 9 + 0x19
    column, row = lane_pixel(ram, 9, 0x19)
    core = SHARP.draw(ram)[row - 1 : row + 2, column - 1 : column + 2]
    assert near(core, np.array(rgb)).any()


def test_an_enemy_shot_has_white_strokes_around_a_core_and_whirls() -> None:
    ram = empty_well()
    before = SHARP.draw(ram)
    ram["enemy_shot_lane"][1], ram["enemy_shot_depth"][1] = 9, 0x20
    pictures = set()
    for frame in range(4):
        ram["frame_counter"] = frame
        after = SHARP.draw(ram)
        new = (before != after).any(axis=2)
        assert_within(changed_box(before, after), lane_pixel(ram, 9, 0x20), 16)
        assert (new & near(after, colour(ram, 0), 90)).any()
        assert (new & near(after, colour(ram, 3))).any()
        pictures.add(after.tobytes())
    assert len(pictures) == 4


def test_a_spike_reaches_from_the_bottom_to_its_tip() -> None:
    ram = empty_well()
    ram["spike_depth"][9] = 0x40
    picture = SHARP.draw(ram)
    for depth in (0x50, 0x90, 0xE0):
        column, row = lane_pixel(ram, 9, depth)
        assert near(picture[row - 1 : row + 2, column - 1 : column + 2], colour(ram, 5), 90).any()
    column, row = lane_pixel(ram, 9, 0x40)
    assert near(picture[row - 2 : row + 3, column - 2 : column + 3], colour(ram, 0)).any()
    column, row = lane_pixel(ram, 9, 0x30)
    assert not picture[row - 1 : row + 2, column - 1 : column + 2].any()


def test_waiting_enemies_are_dots_inside_the_bottom_and_at_most_nineteen() -> None:
    ram = empty_well()
    before = SHARP.draw(ram)
    ram["queue_lane"] = np.arange(64) % 16
    # Sixteen at the edge of the bottom, the others a quarter further in: none over another.
    ram["queue_depth"] = np.where(np.arange(64) >= 48, 1, 0x3F)
    after = SHARP.draw(ram)
    dots = near(after, colour(ram, 12), 90) & (before != after).any(axis=2)
    assert dots.sum() == 19 * 2  # a dot is two pixels high
    rows, columns = np.nonzero(dots)
    centre = pixel_of(ram, 128.0, 80.0, 0xF0)
    assert np.hypot(columns - centre[0], rows - centre[1]).max() < 45
    ram["queue_depth"] = 0xFF
    far = (before != SHARP.draw(ram)).any(axis=2)
    assert 0 < far.sum() <= 16 * 2


# ------------------------------------------------------------------------------- explosions


@pytest.mark.parametrize("kind", range(5))
def test_an_explosion_shows_at_its_place_and_ends_with_its_slot(kind: int) -> None:
    ram = empty_well()
    before = SHARP.draw(ram)
    ram["boom_type"][3], ram["boom_lane"][3], ram["boom_depth"][3] = kind, 9, 0x10
    pictures = set()
    for sequence in (1, 6, 12):
        ram["boom_seq"][3] = sequence
        after = SHARP.draw(ram)
        assert_within(changed_box(before, after), lane_pixel(ram, 9, 0x10), 135)
        pictures.add(after.tobytes())
    assert len(pictures) == 3
    ram["boom_depth"][3] = 0
    np.testing.assert_array_equal(SHARP.draw(ram), before)


def test_the_six_explosions_look_different() -> None:
    ram = empty_well()
    ram["boom_lane"][3], ram["boom_depth"][3], ram["boom_seq"][3] = 9, 0x20, 9
    pictures = set()
    for kind in range(6):
        ram["boom_type"][3] = kind
        pictures.add(SHARP.draw(ram).tobytes())
    assert len(pictures) == 6


def test_a_claw_that_was_shot_ends_as_stars_that_grow_and_then_end_small() -> None:
    ram = empty_well()
    ram["player_lane_ccw"] = 0x81
    ram["boom_type"][0], ram["boom_lane"][0] = 1, 0
    ram["death_picture"] = 0
    before = SHARP.draw(ram)
    ram["boom_depth"][0] = 0x10
    widths = []
    for sequence in range(1, 21):
        ram["boom_seq"][0] = sequence
        left, _, right, _ = changed_box(before, SHARP.draw(ram))
        widths.append(right - left)
    largest = int(np.argmax(widths))
    assert widths[: largest + 1] == sorted(widths[: largest + 1])
    assert widths[largest:] == sorted(widths[largest:], reverse=True)
    assert widths[-1] < widths[largest] / 3
    turns = set()
    for frame in range(3):
        ram["frame_counter"] = frame
        turns.add(SHARP.draw(ram).tobytes())
    assert len(turns) == 3


def test_stars_come_towards_the_eye_in_a_dive() -> None:
    ram = empty_well()
    before = SHARP.draw(ram)
    ram["star_field"] = 0xFF
    spreads = []
    for plane in (0xF0, 0x90, 0x40):
        ram["star_plane"] = 0
        ram["star_plane"][7] = plane
        left, _, right, _ = changed_box(before, SHARP.draw(ram))
        spreads.append(right - left)
    assert spreads == sorted(spreads)
    assert spreads[0] < spreads[-1] / 2


# ------------------------------------------------------------------------------- texts


def text_of(ram: Any, score: int | None = None) -> Picture:
    """The rows of the score."""
    return SHARP.draw(ram, score=score)[85:126, :180]


def test_the_score_is_that_of_the_image_unless_one_is_given() -> None:
    ram = empty_well()
    ram["score_p1"] = (0x56, 0x34, 0x12)
    np.testing.assert_array_equal(text_of(ram), text_of(ram, 123_456))
    assert (text_of(ram) != text_of(ram, 123_457)).any()


def test_a_score_beyond_six_digits_is_shown_in_full() -> None:
    ram = empty_well()
    _, six = np.nonzero(text_of(ram, 999_999).any(axis=2))
    _, eight = np.nonzero(text_of(ram, 12_345_678).any(axis=2))
    assert six.max() == eight.max()
    assert eight.min() < six.min() - 30
    assert eight.min() > 0


@pytest.mark.parametrize("lives", [1, 2, 3, 6])
def test_one_claw_is_shown_for_each_life_in_reserve(lives: int) -> None:
    ram = empty_well()
    ram["lives"][0] = lives
    row = near(SHARP.draw(ram), colour(ram, 1))[128:143, :200].any(axis=0).astype(int)
    assert int((np.diff(np.concatenate(([0], row))) == 1).sum()) == lives - 1


def test_the_level_number_changes_with_the_level() -> None:
    number = (slice(108, 126), slice(235, 270))
    pictures = {SHARP.draw(empty_well(wave))[number].tobytes() for wave in range(16)}
    assert len(pictures) == 16


def test_small_pictures_carry_no_text() -> None:
    small = Renderer(84, 84, glow=False)
    np.testing.assert_array_equal(
        small.draw(empty_well(), score=1), small.draw(empty_well(), score=888_888)
    )


# ------------------------------------------------------------------------------- glow, grey


@pytest.mark.parametrize("scene", ["circle", "warp", "death"])
def test_the_glow_only_adds_light_and_only_near_lines(scene: str) -> None:
    sharp = SHARP.draw(SCENES[scene]).astype(np.int64)
    glowing = Renderer().draw(SCENES[scene]).astype(np.int64)
    assert (glowing >= sharp).all()
    assert glowing.sum() > 1.3 * sharp.sum()
    close = cv2.dilate(sharp.max(axis=2).astype(np.uint8), np.ones((41, 41), np.uint8)) > 0
    assert not glowing[~close].any()


def test_grey_pictures_keep_every_colour_apart_and_the_blue_well_visible() -> None:
    colours = np.unique(GROUPS.reshape(-1, 3), axis=0)
    greys = grayscale(colours[None])[0].astype(int)
    assert greys[(colours.max(axis=1) > 0)].min() >= 60
    assert np.diff(np.sort(greys)).min() >= 6
    assert grayscale(SHARP.draw(SCENES["circle"])).shape == (640, 480)

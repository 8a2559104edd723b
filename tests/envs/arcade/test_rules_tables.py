"""The rules' tables, one by one, each against numbers written down here.

Each test plays whole ticks of the compiled game from a situation of its own.
"""

from __future__ import annotations

import pytest
from reference.stage import AT_START_OF_FLIP, PROGRAM, Stage

from tempest_agent.envs.machine import memory as m
from tempest_agent.envs.machine import programs

FLIP_STEPS = {
    1: "7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7", 2: "8 8 4 8 8 8 4 8 8 8 4 8 8 8 4 8",
    3: "8 4 12 4 8 4 12 4 8 4 12 4 8 4 12 4", 4: "6 7 6 9 9 6 7 6 6 7 6 9 9 6 7 6",
    5: "5 9 9 5 5 9 9 5 5 9 9 5 5 9 9 5", 6: "8 8 8 8 2 8 8 8 8 3 8 8 8 8 8 3",
    7: "6 4 5 14 5 4 6 13 5 4 5 14 5 4 5 13", 8: "- 8 8 8 8 8 8 5 5 8 8 8 8 8 8 -",
    9: "- 4 12 4 12 4 12 4 4 12 4 12 4 12 4 -", 10: "- 8 8 7 7 7 8 7 7 8 7 7 7 8 8 -",
    11: "- 8 8 8 8 8 8 8 8 8 8 8 8 8 8 -", 12: "5 5 7 16 7 5 5 7 7 7 7 6 7 7 7 7",
    13: "2 12 2 12 2 12 2 12 2 12 2 12 2 12 2 12", 14: "- 10 7 7 6 6 8 10 10 8 6 6 7 7 10 -",
    15: "- 9 9 7 8 8 4 10 5 7 8 11 5 8 8 -", 16: "8 10 10 10 10 10 10 10 8 6 6 6 6 6 6 6",
}  # fmt: skip
"""By level: sixteenths of a turn between the two lanes at each spoke; - is the end of a well."""

WARP_TICKS = [47, 45, 43, 42, 40, 39, 38, 37, 36, 35, 34, 34]
"""For the first twelve waves; 33 for the later ones, and again so from wave 64."""

WARP_DEPTHS = {
    1: "12 14 16 18 1B 1D 20 23 26 29 2C 30 33 37 3B 3F 43 47 4B 4F 54 58 5D 62 67 6C 71 77 7C 82 "
    "88 8E 94 9A A0 A6 AD B3 BA C1 C8 CF D6 DE E5 ED FF",
    13: "12 14 16 19 1D 20 24 28 2D 32 37 3C 42 48 4E 55 5C 63 6B 73 7B 84 8D 96 9F A9 B3 BE C8 D3 "
    "DF EB FF",
}

ENTRY_TICKS = [63, 63, 63, 64, 63, 63, 63, 63, 64, 63, 64, 63, 64, 64, 64, 64]
"""By level, 1 to 16."""

START_LEVELS = {
    1: 0, 3: 6, 5: 16, 7: 32, 9: 54, 11: 74, 13: 94, 15: 114, 17: 134, 20: 152, 22: 170, 24: 188,
    26: 208, 28: 226, 31: 248, 33: 266, 36: 300, 40: 340, 44: 382, 47: 415, 49: 439, 52: 472,
    56: 531, 60: 581, 63: 624, 65: 656, 73: 766, 81: 898,
}  # fmt: skip
"""Start level -> bonus in thousands."""

DEAD_VISIBLE, DEAD_HIDDEN = 0x80, 0x81


# ---- points ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "points"), [(m.FLIPPER, 150), (m.PULSAR, 200), (m.TANKER, 100), (m.SPIKER, 50)]
)
def test_points_of_a_shot_enemy(kind: int, points: int) -> None:
    stage = Stage()
    stage.put_enemy(kind)
    stage.put_shot()
    stage.tick()
    assert stage.score == points
    assert stage.ram["enemy_depth"][6] == 0
    assert stage.ram["player_shot_count"] == 0


@pytest.mark.parametrize(
    ("byte", "points", "picture"), [(0, 250, 2), (1, 500, 3), (2, 750, 4)]
    + [(byte, 250, 2) for byte in range(3, 8)] + [(0xF9, 500, 3), (0xFA, 750, 4)],
)  # fmt: skip
def test_points_of_a_shot_fuseball(byte: int, points: int, picture: int) -> None:
    stage = Stage()
    stage.put_enemy(m.FUSEBALL)
    stage.put_shot()
    assert stage.tick_with((0xA31A, byte)) == [True]
    assert stage.score == points
    assert stage.ram["boom_type"][7] == picture


@pytest.mark.parametrize(
    ("cargo", "slot", "busy_above", "points"),
    [
        (1, 6, 0, 150), (2, 6, 0, 200), (3, 6, 0, 150),  # a child takes the tanker's own slot
        (1, 5, 0, 150), (2, 5, 0, 200), (3, 5, 0, 150),  # the second one does
        (1, 4, 0, 100), (2, 4, 0, 100), (3, 3, 0, 100),  # both find slots above
        (2, 4, 1, 200), (2, 4, 2, 200), (1, 3, 1, 100),
    ],
)  # fmt: skip
def test_points_of_a_tanker_depend_on_its_childrens_slots(
    cargo: int, slot: int, busy_above: int, points: int
) -> None:
    stage = Stage()
    for other in range(busy_above):
        stage.put_enemy(m.SPIKER, slot=6 - other, lane=12)
    stage.put_enemy(m.TANKER, slot=slot, cargo=cargo)
    stage.put_shot()
    stage.tick()
    assert stage.score == points
    child = {1: m.FLIPPER, 2: m.PULSAR, 3: m.FUSEBALL}[cargo]
    assert stage.ram["kind_count"][child] == 2
    assert stage.ram["kind_count"][m.TANKER] == 0


@pytest.mark.parametrize(
    ("kind", "points"),
    [(m.FLIPPER, 150), (m.PULSAR, 200), (m.TANKER, 100), (m.SPIKER, 50), (m.FUSEBALL, 150)],
)
def test_points_of_a_zapped_enemy(kind: int, points: int) -> None:
    stage = Stage()
    stage.put_enemy(kind, depth=0xC0, cargo=1 if kind == m.TANKER else 0)
    stage.tick(zap=True)
    stage.tick(3)
    assert stage.score == points
    assert stage.ram["kind_count"].sum() == 0


def test_an_enemy_shot_pays_nothing() -> None:
    stage = Stage()
    stage.ram["enemy_shot_depth"][0], stage.ram["enemy_shot_lane"][0] = 0x60, 5
    stage.ram["enemy_shot_count"] = 1
    stage.put_shot()
    stage.tick()
    assert stage.score == 0
    assert stage.ram["enemy_shot_count"] == stage.ram["player_shot_count"] == 0
    assert stage.ram["explosion_count"] == 1


@pytest.mark.parametrize("tip", [0x40, 0x60, 0xC9, 0xE0])
def test_a_shot_cuts_a_spike_twice_for_two_points(tip: int) -> None:
    stage = Stage()
    stage.ram["spike_depth"][5] = tip
    stage.put_shot(depth=0x10)
    stage.tick(30)
    contact = 0x10 + -(-(tip - 0x10) // 9) * 9
    assert stage.ram["spike_depth"][5] == (contact + 5 if contact + 5 < 0xF0 else 0)
    assert stage.score == 2
    assert stage.ram["player_shot_count"] == 0


def test_a_spike_at_the_very_bottom_disappears_for_one_point() -> None:
    stage = Stage()
    stage.ram["spike_depth"][5] = 0xF0
    stage.put_shot(depth=0xE8)
    stage.tick()
    assert (stage.ram["spike_depth"][5], stage.score) == (0, 1)


@pytest.mark.parametrize(
    ("cargo", "program", "near_program", "flags"),
    [
        (1, 0x0B, PROGRAM["STRAIGHT"], [0x40, 0x40]),
        (2, PROGRAM["PULSAR"], PROGRAM["PULSAR"], [0x40, 0x00]),
        (3, PROGRAM["FUSE"], PROGRAM["FUSE"], [0x00, 0x00]),
    ],
)
def test_children_of_a_tanker_near_the_rim_are_simpler(
    cargo: int, program: int, near_program: int, flags: list[int]
) -> None:
    """Shot at 0x20 they are the wave's own; from 0x1F on the tanker opens by itself."""
    shot, climbed = Stage(66), Stage(66)
    for stage, fraction in ((shot, 0xF8), (climbed, 0xF7)):
        # Tankers of level 66 climb 0x05F8/256 a tick: to 0x20.00 and to 0x1F.FF.
        stage.put_enemy(m.TANKER, depth=0x25, cargo=cargo)
        stage.ram["enemy_depth_frac"][6] = fraction
    shot.put_shot(depth=0x15)
    shot.tick()
    assert shot.score > 0
    climbed.tick()
    assert climbed.score == 0
    for stage, expected, flag in ((shot, program, flags[0]), (climbed, near_program, flags[1])):
        assert stage.ram["enemies_in_well"] == 2
        # The first child has taken the tanker's slot, and moves from the next tick on.
        assert stage.ram["enemy_script_pc"][6] == expected
        assert stage.ram["enemy_flags"][6] == flag
        assert stage.ram["enemy_lane"][6] == 4
        assert stage.ram["enemy_lane"][5] == 6
    assert shot.ram["enemy_depth"][6] == 0x20
    assert climbed.ram["enemy_depth"][6] == 0x1F


# ---- bonus lives and start bonus -------------------------------------------------------------


@pytest.mark.parametrize(
    ("bonus_life", "before", "after_a_flipper"),
    [
        (10_000, 9_900, 4), (10_000, 19_900, 4), (10_000, 999_900, 4), (10_000, 9_800, 3),
        (20_000, 9_900, 3), (20_000, 19_900, 4), (20_000, 29_900, 3), (20_000, 999_900, 4),
        (30_000, 29_900, 4), (30_000, 19_900, 3), (30_000, 999_900, 3), (30_000, 989_900, 4),
        (40_000, 39_900, 4), (40_000, 79_900, 4), (40_000, 29_900, 3), (50_000, 49_900, 4),
        (50_000, 999_900, 3), (60_000, 59_900, 4), (60_000, 69_900, 3), (70_000, 69_900, 4),
        (70_000, 139_900, 4), (70_000, 149_900, 3), (0, 9_900, 3), (0, 19_900, 3),
    ],
)  # fmt: skip
def test_bonus_life_at_multiples_of_the_interval(
    bonus_life: int, before: int, after_a_flipper: int
) -> None:
    stage = Stage(bonus_life=bonus_life)
    stage.score = before
    stage.put_enemy(m.FLIPPER)
    stage.put_shot()
    stage.tick()
    assert stage.score == (before + 150) % 1_000_000
    assert stage.ram["lives"][0] == after_a_flipper


def test_a_bonus_life_flashes_for_32_ticks() -> None:
    stage = Stage(bonus_life=10_000)
    stage.score = 9_990
    stage.put_enemy(m.FLIPPER)
    stage.put_shot()
    timers = []
    for _ in range(35):
        stage.tick()
        timers.append(int(stage.ram["life_flash"]))
    # The machine's images, taken between two ticks, have 0x1F first: it has been shown once.
    assert timers == [*range(0x1F, -1, -1), 0xFF, 0xFF, 0xFF]


@pytest.mark.parametrize(("lives", "then"), [(1, 2), (5, 6), (6, 6)])
def test_never_more_than_six_lives(lives: int, then: int) -> None:
    stage = Stage(bonus_life=10_000)
    stage.score = 9_990
    stage.ram["lives"][0] = lives
    stage.put_enemy(m.FLIPPER)
    stage.put_shot()
    stage.tick()
    assert stage.ram["lives"][0] == then


def end_wave(stage: Stage) -> None:
    stage.ram["game_state"] = m.STATE_END_WAVE
    stage.tick()


@pytest.mark.parametrize(("level", "thousands"), START_LEVELS.items())
def test_start_bonus_is_paid_after_the_first_wave_once(level: int, thousands: int) -> None:
    stage = Stage(level, start_bonus=True, bonus_life=0)
    end_wave(stage)
    assert stage.score == thousands * 1000
    while stage.ram["game_state"] != m.STATE_PLAY:
        stage.tick()
    end_wave(stage)
    assert stage.score == thousands * 1000


@pytest.mark.parametrize(
    ("level", "bonus_life", "before", "lives"),
    [
        (3, 10_000, 0, 3),  # 6,000 has no ten-thousands of its own: the ordinary rule
        (3, 10_000, 4_000, 4),
        (5, 10_000, 0, 4),
        (5, 20_000, 31_000, 4),  # 47,000: four tens, though none was reached just now
        (5, 20_000, 41_000, 3),
        (7, 30_000, 0, 4),  # 32,000 is an interval by itself
        (7, 40_000, 0, 3),
        (7, 40_000, 10_000, 4),
        (81, 70_000, 0, 4),  # one life, whatever the amount
        (81, 0, 0, 3),
    ],
)
def test_bonus_life_for_the_start_bonus(
    level: int, bonus_life: int, before: int, lives: int
) -> None:
    stage = Stage(level, start_bonus=True, bonus_life=bonus_life)
    stage.score = before
    end_wave(stage)
    assert stage.score == before + 1000 * START_LEVELS[level]
    assert stage.ram["lives"][0] == lives


def test_level_select_offers_these_levels_and_five_of_them_at_first() -> None:
    for entry, level in enumerate(START_LEVELS):
        stage = Stage(bonus_life=0)
        stage.ram["game_state"] = m.STATE_NEW_GAME
        stage.ram["last_game_top_wave"] = 0 if entry < 5 else level - 1
        stage.tick()
        assert stage.ram["select_top_index"] == max(entry, 4)
        stage.ram["player_lane"] = entry
        stage.ram["buttons_latched"] = m.BUTTON_FIRE
        stage.tick()
        assert stage.ram["wave_index"][0] == level - 1


def test_level_select_chooses_by_itself_after_231_ticks() -> None:
    stage = Stage()
    stage.ram["game_state"] = m.STATE_NEW_GAME
    stage.tick(230)
    assert stage.ram["game_state"] == m.STATE_LEVEL_SELECT
    stage.tick()
    assert stage.ram["game_state"] == m.STATE_NEW_LIFE


@pytest.mark.parametrize(
    ("best_top", "rating", "last_wave", "free_play", "offered"),
    [
        (0x99, 0, 0, False, 4), (0x29, 4, 0, False, 4), (0x30, 4, 0, False, 5),
        (0x49, 4, 0, False, 5), (0x50, 4, 0, False, 6), (0x69, 4, 0, False, 6),
        (0x70, 4, 0, False, 7), (0x70, 4, 17, False, 8), (0x70, 4, 13, False, 7),
        (0, 0, 98, False, 27), (0, 0, 79, False, 26), (0, 0, 0, True, 27),
    ],
)  # fmt: skip
def test_start_levels_offered(
    best_top: int, rating: int, last_wave: int, free_play: bool, offered: int
) -> None:
    stage = Stage()
    stage.ram["game_state"] = m.STATE_NEW_GAME
    stage.ram["best_score_top"] = best_top
    stage.ram["dsw3_image"] = rating
    stage.ram["last_game_top_wave"] = last_wave
    stage.ram["dsw1_image"] = 0x40 if free_play else 0x02
    stage.tick()
    assert stage.ram["select_top_index"] == offered
    assert stage.ram["last_game_top_wave"] == 0


@pytest.mark.parametrize("button", [m.BUTTON_START_1, m.BUTTON_START_2])
def test_start_buttons_choose_in_the_last_seconds_only(button: int) -> None:
    for seconds, chosen in ((9, False), (8, False), (7, True), (1, True)):
        stage = Stage()
        stage.ram["game_state"] = m.STATE_NEW_GAME
        stage.tick()
        stage.ram["pause_timer"] = seconds
        stage.ram["buttons_latched"] = button
        stage.tick()
        assert (stage.ram["game_state"] == m.STATE_NEW_LIFE) == chosen
        assert stage.ram["buttons_latched"] == 0


@pytest.mark.parametrize(("wave", "kept"), [(0, 0), (1, 0), (2, 1), (60, 59), (98, 97)])
def test_how_far_a_game_came_is_kept_for_the_next(wave: int, kept: int) -> None:
    stage = Stage()
    stage.ram["wave_index"][0] = wave
    stage.ram["lives"][0] = 1
    stage.ram["game_state"] = m.STATE_END_LIFE
    stage.tick()
    assert stage.ram["game_state"] == m.STATE_HIGH_SCORE_CHECK
    assert stage.ram["last_game_top_wave"] == kept


@pytest.mark.parametrize(
    ("switches", "button", "running", "skipped"),
    [
        (0x40, m.BUTTON_START_1, True, True), (0x40, m.BUTTON_START_2, True, True),
        (0x40, m.BUTTON_FIRE, True, False), (0x02, m.BUTTON_START_1, True, False),
        (0x42, m.BUTTON_START_1, True, False), (0x00, m.BUTTON_START_1, True, False),
        (0x40, m.BUTTON_START_1, False, False),
    ],
)  # fmt: skip
def test_level_skip_on_free_play_with_the_demo_switch(
    switches: int, button: int, running: bool, skipped: bool
) -> None:
    stage = Stage(20)
    stage.put_enemy(m.SPIKER, depth=0xC0)
    stage.ram["dsw1_image"] = switches
    stage.ram["buttons_now"] = button
    stage.ram["mode_flags"] = 0xC0 if running else 0x80
    stage.tick_with()
    assert (stage.ram["game_state"] == m.STATE_WARP) == skipped
    assert (stage.ram["warp_flag"] == 0x80) == skipped


# ---- how long things take --------------------------------------------------------------------


@pytest.mark.parametrize("level", range(1, 17))
def test_flip_steps_of_every_spoke_in_both_directions(level: int) -> None:
    for spoke, steps in enumerate(FLIP_STEPS[level].split()):
        for ccw in (False, True) if steps != "-" else ():
            lower, higher = (spoke - 1) % 16, spoke
            stage = Stage(level)
            stage.put_enemy(m.FLIPPER, lane=lower if ccw else higher, depth=0x80)
            stage.ram["enemy_kind"][6] |= m.KIND_CCW * ccw
            stage.ram["enemy_script_pc"][6] = AT_START_OF_FLIP
            stage.tick()
            ticks = 0
            while stage.ram["enemy_kind"][6] & m.KIND_FLIPPING:
                assert stage.ram["enemy_lane"][6] == spoke
                stage.tick()
                ticks += 1
            assert ticks == int(steps)
            assert stage.ram["enemy_lane"][6] == (higher if ccw else lower)
            assert stage.ram["enemy_lane_ccw"][6] == ((higher if ccw else lower) + 1) % 16


@pytest.mark.parametrize("start", range(1, 100, 9))
def test_warp_takes_as_long_as_its_table_says(start: int) -> None:
    for level in range(start, min(start + 9, 100)):
        wave = level - 1
        expected = (WARP_TICKS * 6)[wave % 64] if wave % 64 < 12 else 33
        stage = Stage(level)
        stage.ram["queue_count"] = 0
        stage.ram["queue_depth"] = 0
        stage.tick()
        assert stage.ram["game_state"] == m.STATE_WARP
        depths = []
        while stage.ram["game_state"] == m.STATE_WARP:
            stage.tick()
            depths.append(f"{stage.ram['player_depth']:02X}")
        assert stage.ram["game_state"] == m.STATE_END_WAVE
        assert len(depths) == expected
        if level in WARP_DEPTHS:
            assert " ".join(depths) == WARP_DEPTHS[level]


@pytest.mark.parametrize(("level", "warned"), [(1, True), (7, True), (8, False), (40, False)])
def test_spikes_are_warned_of_on_the_first_seven_levels(level: int, warned: bool) -> None:
    stage = Stage(level)
    stage.ram["queue_count"] = 0
    stage.ram["queue_depth"] = 0
    stage.ram["spike_depth"][[2, 9]] = 0xA0
    stage.tick()
    assert stage.ram["spike_flag"] == (0x80 if warned else 2)
    assert stage.ram["game_state"] == (m.STATE_PAUSE if warned else m.STATE_WARP)
    if warned:
        stage.tick(29)
        assert stage.ram["game_state"] == m.STATE_PAUSE
        stage.tick()
        assert stage.ram["game_state"] == m.STATE_WARP


@pytest.mark.parametrize("level", range(1, 17))
def test_entry_takes_63_or_64_ticks(level: int) -> None:
    stage = Stage(16 if level == 1 else level - 1)
    end_wave(stage)
    ticks = 0
    while stage.ram["game_state"] == m.STATE_LEVEL_ENTRY:
        stage.tick()
        ticks += 1
    assert ticks == ENTRY_TICKS[level - 1]
    assert stage.ram["game_state"] == m.STATE_PLAY


@pytest.mark.parametrize(("kind", "ticks"), [(0, 6), (1, 21), (2, 11), (3, 11), (4, 11), (5, 6)])
def test_explosion_lifetimes(kind: int, ticks: int) -> None:
    stage = Stage()
    stage.ram["boom_type"][3], stage.ram["boom_depth"][3] = kind, 0x80
    stage.ram["explosion_count"] = 1
    stage.tick(ticks - 1)
    assert stage.ram["explosion_count"] == 1
    stage.tick()
    assert (stage.ram["explosion_count"], stage.ram["boom_depth"][3]) == (0, 0)


@pytest.mark.parametrize(
    ("level", "first", "period", "on"),
    [
        (1, [3, 7, 11, 15, 11, 7, 3, -1, -5], 40, 7),
        (49, [5, 11, 17, 11, 5, -1, -7], 28, 5),
        (65, [7, 15, 7, -1, -9], 20, 3),
    ],
)
def test_pulse_cycles(level: int, first: list[int], period: int, on: int) -> None:
    stage = Stage(level)
    assert stage.ram["pulse_phase"] == 0xFF
    phases = []
    for _ in range(3 * period):
        stage.tick()
        phase = int(stage.ram["pulse_phase"])
        phases.append(phase - 256 if phase >= 128 else phase)
    assert phases[: len(first)] == first
    assert phases[:period] == phases[period : 2 * period] == phases[2 * period :]
    assert sum(phase >= 0 for phase in phases[:period]) == on


@pytest.mark.parametrize(
    ("lives", "grabbed", "until_end_of_life"),
    [(3, False, 34), (3, True, 19), (1, False, 59), (1, True, 44)],
)
def test_death_takes_this_long(lives: int, grabbed: bool, until_end_of_life: int) -> None:
    stage = Stage()
    stage.ram["lives"][0] = lives
    lane = int(stage.ram["rim_pos"]) >> 4
    if grabbed:
        stage.put_enemy(m.FLIPPER, lane=lane, depth=0x10)
        stage.ram["enemy_script_pc"][6] = PROGRAM["RIM"]
        stage.ram["enemies_in_well"], stage.ram["enemies_on_rim"] = 0, 1
    else:
        stage.ram["enemy_shot_lane"][0], stage.ram["enemy_shot_depth"][0] = lane, 0x11
        stage.ram["enemy_shot_count"] = 1
    stage.tick()
    assert stage.ram["player_lane_ccw"] == (DEAD_VISIBLE if grabbed else DEAD_HIDDEN)
    stage.tick(until_end_of_life - 1)
    assert stage.ram["game_state"] == m.STATE_PLAY
    stage.tick()
    assert stage.ram["game_state"] == m.STATE_END_LIFE
    assert stage.ram["queue_count"] == (2 if grabbed else 1)
    if lives == 1:
        stage.tick()
        assert stage.ram["game_state"] == m.STATE_HIGH_SCORE_CHECK
    else:
        stage.tick(23)
        assert stage.ram["game_state"] == m.STATE_PAUSE
        stage.tick()
        assert stage.ram["game_state"] == m.STATE_PLAY
        assert stage.ram["lives"][0] == lives - 1


@pytest.mark.parametrize(
    ("kind", "depth", "phase", "dead"),
    [
        (m.PULSAR, 0x60, 3, True), (m.PULSAR, 0x60, 0xFB, False), (m.PULSAR, 0x60, 0, True),
        (m.PULSAR, 0xA1, 3, True), (m.PULSAR, 0xA2, 3, False), (m.PULSAR, 0xA4, 3, False),
        (m.FUSEBALL, 0x10, 0xFF, True), (m.FUSEBALL, 0x11, 0xFF, False),
    ],
)  # fmt: skip
def test_what_pulsars_and_fuseballs_do_to_the_players_lane(
    kind: int, depth: int, phase: int, dead: bool
) -> None:
    stage = Stage()
    lane = int(stage.ram["rim_pos"]) >> 4
    stage.put_enemy(kind, lane=lane, depth=depth)
    if kind == m.PULSAR:
        stage.ram["enemy_script_pc"][6] = PROGRAM["PULSAR"]
        stage.ram["pulsar_flip_delay"] = 20
    stage.ram["pulse_phase"] = phase
    stage.tick()
    assert bool(stage.ram["player_lane_ccw"] & 0x80) == dead
    assert stage.ram["explosion_count"] == dead


def test_a_shot_reaches_the_bottom_in_24_ticks() -> None:
    stage = Stage()
    stage.tick(fire=True)
    depths = [int(stage.ram["player_shot_depth"][7])]
    while stage.ram["player_shot_count"]:
        stage.tick()
        depths.append(int(stage.ram["player_shot_depth"][7]))
    assert depths == [*range(0x19, 0xF0, 9), 0]
    assert len(depths) == 25


def test_eight_shots_in_eight_ticks_and_no_ninth() -> None:
    stage = Stage()
    for held in range(1, 9):
        stage.tick(fire=True)
        assert stage.ram["player_shot_count"] == held
    assert list(stage.ram["player_shot_depth"]) == [0x19 + 9 * slot for slot in range(8)]
    stage.tick(fire=True)
    assert stage.ram["player_shot_count"] == 8


# ---- superzapper -----------------------------------------------------------------------------


def kills_per_tick(stage: Stage, ticks: int) -> list[int]:
    """Ticks after the press in which an enemy disappears, every dead one replaced at once."""
    killed = []
    for after in range(1, ticks):
        stage.tick()
        for slot in range(7):
            if stage.ram["enemy_depth"][slot] == 0:
                killed.append(after)
                stage.put_enemy(m.SPIKER, slot=slot, depth=0xB0)
                stage.ram["enemies_in_well"] = 7
    return killed


def test_superzapper_timetable() -> None:
    stage = Stage()
    for slot in range(7):
        stage.put_enemy(m.SPIKER, slot=slot, depth=0xB0)
    stage.tick(zap=True)
    assert (stage.ram["zap_uses"], stage.ram["zap_timer"]) == (1, 1)
    assert kills_per_tick(stage, 19) == [3, 5, 7, 9, 11, 13, 15, 17]
    assert stage.ram["zap_timer"] == 0
    stage.tick(zap=True)
    assert (stage.ram["zap_uses"], stage.ram["zap_timer"]) == (2, 1)
    assert kills_per_tick(stage, 19) == [3]
    stage.tick(zap=True)
    assert (stage.ram["zap_uses"], stage.ram["zap_timer"]) == (2, 0)
    assert not stage.ram["buttons_latched"] & m.BUTTON_ZAP


def test_superzapper_takes_the_highest_slot_first_and_stops_when_nobody_is_left() -> None:
    stage = Stage()
    for slot in (0, 2, 5):
        stage.put_enemy(m.SPIKER, slot=slot, depth=0xB0)
    stage.tick(zap=True)
    left = []
    for _ in range(9):
        stage.tick()
        left.append([slot for slot in range(7) if stage.ram["enemy_depth"][slot]])
    two, one, none = [0, 2], [0], list[int]()
    assert left == [[0, 2, 5], [0, 2, 5], two, two, one, one, none, none, none]
    assert stage.ram["zap_timer"] == 0


def test_a_press_while_it_runs_waits_for_its_end() -> None:
    stage = Stage()
    stage.tick(zap=True)
    stage.put_enemy(m.SPIKER, slot=0, depth=0xC0)
    stage.put_enemy(m.SPIKER, slot=1, depth=0xC0)
    stage.tick(2, zap=True)
    assert stage.ram["zap_uses"] == 1
    while stage.ram["zap_uses"] == 1:
        stage.tick()
    assert stage.ram["zap_timer"] == 1


def test_waiting_enemies_stand_still_while_it_runs() -> None:
    stage = Stage()
    stage.put_enemy(m.SPIKER, depth=0xC0)
    stage.tick(zap=True)
    before = int(stage.ram["queue_depth"][0])
    stage.tick(2)
    assert stage.ram["queue_depth"][0] == before


# ---- programs --------------------------------------------------------------------------------


def test_program_addresses() -> None:
    starts = {
        "P_SPIKER": 0x00, "P_STRAIGHT": 0x07, "P_STEP8_FLIP": 0x0B, "P_SPIRAL": 0x19,
        "P_SPIRAL_ALTERNATE": 0x24, "P_RIM": 0x42, "P_SPIKE_RIDER": 0x53, "P_FUSE": 0x61,
        "P_FUSE_ROLL": 0x67, "P_PULSAR": 0x72, "P_AVOIDER": 0x87,
    }  # fmt: skip
    assert {name: getattr(programs, name) for name in starts} == starts
    assert len(programs.CODE) == 0x98


def test_a_rim_walker_stands_four_ticks_and_then_flips() -> None:
    """Lane by lane: four grab tests, one tick that starts the flip, 7 steps two at a time."""
    stage = Stage()
    stage.put_enemy(m.FLIPPER, lane=3, depth=0x10)
    stage.ram["enemy_script_pc"][6] = PROGRAM["RIM"]
    flipping = []
    for _ in range(16):
        stage.tick()
        flipping.append(bool(stage.ram["enemy_kind"][6] & m.KIND_FLIPPING))
    lane_time = [False] * 4 + [True] * 4
    assert flipping == lane_time * 2
    assert stage.ram["enemy_lane"][6] == 2


def fuseball_on_a_spoke(level: int, spoke: int, depth: int) -> Stage:
    """A fuseball about to climb one step along its spoke."""
    stage = Stage(level)
    stage.put_enemy(m.FUSEBALL, lane=spoke, depth=depth)
    stage.ram["enemy_kind"][6], stage.ram["enemy_lane_ccw"][6] = m.FUSEBALL, 0x20
    stage.ram["enemy_script_pc"][6] = PROGRAM["FUSE"]
    stage.ram["fuse_chase"] = 0
    return stage


@pytest.mark.parametrize(("level", "turns"), [(11, True), (17, True), (18, False), (40, False)])
def test_fuseballs_turn_before_the_rim_on_the_first_17_levels(level: int, turns: bool) -> None:
    stage = fuseball_on_a_spoke(level, 7, 0x1F)
    assert stage.tick_with((0x9F8F, 0)) == [turns]
    assert bool(stage.ram["enemy_kind"][6] & m.KIND_FLIPPING) == turns


def test_fuseballs_of_the_first_levels_may_go_on_at_0x20() -> None:
    for fraction, address in ((0, 0x9F66), (0xFF, 0x9F8F)):
        stage = fuseball_on_a_spoke(11, 7, 0x20)
        speed = 2 * 672
        start = (0x20 << 8) + speed - (1 if fraction else 0)
        stage.ram["enemy_depth"][6], stage.ram["enemy_depth_frac"][6] = start >> 8, start & 0xFF
        assert stage.tick_with((address, 0)) == [True]
        assert stage.ram["enemy_depth"][6] == (0x1F if fraction else 0x20)


@pytest.mark.parametrize("higher", [True, False])
@pytest.mark.parametrize(
    ("level", "spoke", "to_higher", "to_lower"),
    [(8, 0, 0, 0), (8, 15, 14, 14), (8, 7, 7, 6), (12, 0, 0, 15), (12, 15, 15, 14)],
)
def test_fuseballs_turn_back_at_the_ends_of_open_wells(
    level: int, spoke: int, to_higher: int, to_lower: int, higher: bool
) -> None:
    """The lane being crossed: the one above the spoke or the one below it.

    Level 8 is open, level 12 closed.
    """
    stage = fuseball_on_a_spoke(level, spoke, 0x11)
    stage.ram["enemy_depth"][6] = 0x10
    assert stage.tick_with((0x9F8F, 0x00 if higher else 0x40)) == [True]
    assert stage.ram["enemy_lane"][6] == (to_higher if higher else to_lower)


def test_a_fuseball_rolls_across_a_lane_in_27_ticks() -> None:
    stage = Stage(33)
    stage.put_enemy(m.FUSEBALL, lane=5, depth=0x87)
    ram = stage.ram
    ram["enemy_kind"][6], ram["enemy_lane_ccw"][6] = m.FUSEBALL, 6
    ram["enemy_script_pc"][6] = PROGRAM["FUSE"]
    ram["enemy_flags"][6] = m.FLAG_MOVING_DOWN
    ram["player_lane"] = 9
    ram["rim_pos"] = 0x90
    stage.tick()
    assert ram["enemy_kind"][6] & m.KIND_FLIPPING
    steps = []
    for after in range(1, 28):
        before = int(ram["enemy_lane_ccw"][6])
        stage.tick()
        if ram["enemy_lane_ccw"][6] != before:
            steps.append(after)
    assert steps == [3, 7, 11, 15, 19, 23, 27]
    assert ram["enemy_lane"][6] in (5, 6)

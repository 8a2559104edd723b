"""The observation against a slow reference that looks at one image byte by byte."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import ROOT
from stored_images import recorded_images

from tempest_agent.envs.engine.batch import GameBatch
from tempest_agent.envs.engine.settings import GameSettings
from tempest_agent.envs.features import layout as layout
from tempest_agent.envs.features.floats import as_floats
from tempest_agent.envs.features.layout import FEATURES, LANE_FEATURES, NUM_FEATURES, describe
from tempest_agent.envs.features.observe import observe
from tempest_agent.envs.machine.memory import RAM_DTYPE, RAM_SIZE, from_bytes

KINDS = ["flipper", "pulsar", "tanker", "spiker", "fuseball"]
PROGRAMS = {7: "straight", 11: "step8_flip", 25: "spiral", 36: "spiral_alternate",
            83: "spike_rider", 135: "avoider"}  # fmt: skip


def near(depth: int) -> int:
    return 127 if depth <= 16 else max(1, (240 - depth) * 120 // 223)


def soon(ticks: int, horizon: int) -> int:
    if ticks <= 0:
        return 127
    return 1 if ticks >= horizon else max(1, 254 // (ticks + 2))


def close(distance: int) -> int:
    if distance <= 0:
        return 127
    return 1 if distance >= 32 else 127 - 126 * distance // 32


def share(value: int, top: int) -> int:
    return min(127, value * 127 // top)


def signed(byte: int) -> int:
    return byte - 256 if byte > 127 else byte


class Reference:
    """Name -> code, computed by trial where the product uses formulas."""

    def __init__(self, ram: np.void) -> None:
        self.ram = {name: np.array(ram[name]).astype(int) for name in RAM_DTYPE.names or ()}
        self.codes: dict[str, int] = {}
        self.open = self.byte("well_open") != 0
        for lane in range(16):
            self.lane(lane)
        self.general()

    def byte(self, name: str, index: int | None = None) -> int:
        cell = self.ram[name]
        return int(cell) if index is None else int(cell[index])

    def flag(self, name: str, condition: bool) -> None:
        self.codes[name] = 127 if condition else 0

    # -- by trial ---------------------------------------------------------------------------

    def speed(self, high: int, low: int) -> int:
        return 65536 - (high * 256 + low)

    def climb_ticks(self, slot: int, kind: int) -> int:
        speed = self.speed(self.byte("speed_int", kind), self.byte("speed_frac", kind))
        position = self.byte("enemy_depth", slot) * 256 + self.byte("enemy_depth_frac", slot)
        ticks = 1
        position -= speed
        while position // 256 > 16:
            position -= speed
            ticks += 1
        return ticks

    def shot_ticks(self, slot: int) -> int:
        speed = self.speed(self.byte("enemy_shot_speed_int"), self.byte("enemy_shot_speed_frac"))
        position = self.byte("enemy_shot_depth", slot) * 256 + self.byte("enemy_shot_frac", slot)
        ticks = 1
        position -= speed
        while position // 256 >= self.byte("player_depth") and ticks < 999:
            position -= speed
            ticks += 1
        return ticks

    def pulse_ticks(self) -> int:
        phase, step = signed(self.byte("pulse_phase")), signed(self.byte("pulse_step"))
        ticks = 0
        while phase < 0 and ticks < 255:
            phase += step
            ticks += 1
            if phase >= 15 or phase < -63:
                step = -step
        return ticks

    def reach_ticks(self, slot: int) -> int:
        """Moves after which a pulsar that goes on in its direction is within reach."""
        potency = self.byte("pulse_depth")
        position = self.byte("enemy_depth", slot) * 256 + self.byte("enemy_depth_frac", slot)
        down = bool(self.byte("enemy_flags", slot) & 128)
        kind = 1 if down or position // 256 < potency else 0
        speed = self.speed(self.byte("speed_int", kind), self.byte("speed_frac", kind))
        for move in range(1, 34):
            position += speed if down else -speed
            if position // 256 < potency:
                return move
            if down:
                break
        return 34

    def strike(self, reach: int) -> None:
        """Kills in the first tick from number ``reach`` on (1 is the next) with the pulse on."""
        if reach > 32:
            return
        phase, step = signed(self.byte("pulse_phase")), signed(self.byte("pulse_step"))
        tick = 1
        while tick <= 32 and (phase < 0 or tick < reach):
            phase += step
            tick += 1
            if phase >= 15 or phase < -63:
                step = -step
        self.keep_max("pulsar_strike", soon(tick - 1, 32))

    def flip_ticks(self, slot: int) -> int:
        pivot = self.byte("enemy_lane", slot)
        up = bool(self.byte("enemy_kind", slot) & 64)
        angles = self.ram["lane_angle"]
        end = angles[pivot] if up else (angles[(pivot - 1) % 16] + 8) % 16
        angle = self.byte("enemy_lane_ccw", slot) % 16
        steps = 0
        while True:
            angle = (angle + (-1 if up else 1)) % 16
            steps += 1
            if angle == end:
                break
        if self.walks(slot):
            steps = -(-steps // self.byte("rim_flip_steps"))
        return steps

    def roll_ticks(self, slot: int) -> int:
        up = not self.byte("enemy_kind", slot) & 64
        step = self.byte("enemy_lane_ccw", slot) % 16
        wait = 4 if self.byte("enemy_script_pc", slot) == 0x67 else self.byte("enemy_loop", slot)
        ticks = 0
        while True:
            ticks += wait
            wait = 4
            step += 1 if up else -1
            if step % 8 == 0:
                return ticks

    def walks(self, slot: int) -> bool:
        return 0x42 <= self.byte("enemy_script_pc", slot) < 0x53

    # -- lanes ------------------------------------------------------------------------------

    def enemies(self) -> list[tuple[int, int, bool, bool]]:
        """Slot, kind, rotation bit and whether it flips, from slot 6 down."""
        return [
            (slot, kind & 7, bool(kind & 64), bool(kind & 128))
            for slot in range(6, -1, -1)
            if self.byte("enemy_depth", slot)
            for kind in [self.byte("enemy_kind", slot)]
        ]

    def lane(self, lane: int) -> None:
        offset = (lane - self.byte("player_lane")) % 16
        self.prefix = f"lane+{offset}."
        exists = not (self.open and lane == 15)
        self.put("exists", exists)
        if exists:
            self.fixed(lane)
            self.nymphs(lane)
        self.standing(lane)
        self.moving(lane)
        self.shots(lane)

    def put(self, name: str, value: bool | int) -> None:
        self.codes[self.prefix + name] = value if type(value) is int else 127 * bool(value)

    def fixed(self, lane: int) -> None:
        tip = self.byte("spike_depth", lane)
        if tip:
            self.put("spike", True)
            self.put("spike_nearness", near(tip))
            margin = 4 * (tip - self.byte("player_depth"))
            self.put("spike_margin", int(np.clip(margin, -127, 127)))
        if not (self.open and lane == 14):
            angles = self.ram["lane_angle"]
            steps = int(angles[lane] + 8 - angles[(lane + 1) % 16]) % 16 or 16
            self.put("flip_steps", share(steps, 16))

    def nymphs(self, lane: int) -> None:
        timers = [
            self.byte("queue_depth", i)
            for i in range(64)
            if 0 < self.byte("queue_depth", i) < 64 and self.byte("queue_lane", i) == lane
        ]
        if timers:
            self.put("nymph", True)
            self.put("nymph_hatch", soon(min(timers) - 1, 64))

    def standing(self, lane: int) -> None:
        here = [
            (self.byte("enemy_depth", slot), -slot, kind)
            for slot, kind, _, flips in self.enemies()
            if not flips and not self.walks(slot) and self.byte("enemy_lane", slot) == lane
        ]
        if not here:
            return
        depth, slot, _ = min(here, key=lambda enemy: (-near(enemy[0]), enemy[1]))
        self.put("nearest_fine", close(depth - 16))
        self.put("descending", bool(self.byte("enemy_flags", -slot) & 128))
        self.put("crowd", min(127, 42 * (len(here) - 1)))
        climbing = [
            self.climb_ticks(-slot, kind)
            for _, slot, kind in here
            if not self.byte("enemy_flags", -slot) & 128
        ]
        if climbing:
            self.put("arrival", soon(min(climbing) - 1, 64))
        for number, kind in enumerate(KINDS):
            of_kind = [enemy for enemy in here if enemy[2] == number]
            if of_kind:
                self.put(kind, True)
                self.put(f"{kind}_nearness", near(min(of_kind)[0]))
        tankers = [enemy for enemy in here if enemy[2] == 2]
        if tankers:
            nearest = min(tankers, key=lambda enemy: (-near(enemy[0]), enemy[1]))
            cargo = self.byte("enemy_flags", -nearest[1]) & 3
            if cargo:
                self.put("cargo_" + ["flippers", "pulsars", "fuseballs"][cargo - 1], True)
        for _, slot, kind in here:
            if kind == 1:
                reach = self.reach_ticks(-slot)
                if reach == 1:
                    self.put("pulsar_reach", True)
                self.strike(reach)
        timers = [
            self.byte("enemy_fire_timer", -slot)
            for depth, slot, _ in here
            if self.byte("enemy_flags", -slot) & 64 and depth >= 48
        ]
        if timers:
            self.put("aiming", soon(min(timers), 16))

    def moving(self, lane: int) -> None:
        rolls: list[int] = []
        for slot, kind, bit, flips in self.enemies():
            base = self.byte("enemy_lane", slot)
            depth = self.byte("enemy_depth", slot)
            if flips and kind == 4:
                if base == lane:
                    rolls.append(near(depth))
                    name = "roll_down" if bit else "roll_up"
                    self.put(name, True)
                    self.keep_max(f"{name}_ticks", soon(self.roll_ticks(slot) - 1, 32))
            elif flips:
                start, target = ((base - 1) % 16, base) if bit else (base, (base - 1) % 16)
                if start == lane:
                    self.put("leaving_up" if bit else "leaving_down", True)
                if target == lane:
                    self.arriving("flip_up" if bit else "flip_down", slot, depth)
                    if kind == 1:
                        self.put("flip_pulsar", True)
                        self.strike(max(self.flip_ticks(slot), self.reach_ticks(slot)))
            elif self.walks(slot) and base == lane:
                name = "walker_up" if bit else "walker_down"
                self.put(name, True)
                self.keep_max(f"{name}_ticks", soon(self.byte("enemy_loop", slot) - 1, 4))
        if rolls:
            self.put("roll_nearness", max(rolls))

    def keep_max(self, name: str, value: int) -> None:
        self.put(name, max(value, self.codes.get(self.prefix + name, 0)))

    def arriving(self, name: str, slot: int, depth: int) -> None:
        if near(depth) > self.codes.get(f"{self.prefix}{name}_nearness", 0):
            self.put(f"{name}_nearness", near(depth))
            self.put(f"{name}_ticks", soon(self.flip_ticks(slot) - 1, 16))
        self.put(name, True)

    def shots(self, lane: int) -> None:
        own = [
            self.byte("player_shot_depth", slot)
            for slot in range(8)
            if self.byte("player_shot_depth", slot) and self.byte("player_shot_lane", slot) == lane
        ]
        if own:
            self.put("own_shot", True)
            self.put("own_shot_nearest", near(min(own)))
            self.put("own_shot_farthest", near(max(own)))
        theirs = [
            slot
            for slot in range(4)
            if self.byte("enemy_shot_depth", slot) and self.byte("enemy_shot_lane", slot) == lane
        ]
        if theirs:
            self.put("enemy_shot", True)
            self.put("enemy_shots_more", len(theirs) > 1)
            depths = [self.byte("enemy_shot_depth", slot) for slot in theirs]
            self.put("enemy_shot_nearness", near(min(depths)))
            ticks = min(self.shot_ticks(slot) for slot in theirs)
            self.put("enemy_shot_arrival", soon(ticks - 1, 32))

    # -- the whole game ---------------------------------------------------------------------

    def general(self) -> None:
        self.player()
        self.level()
        self.clocks()
        self.crowd()

    def player(self) -> None:
        byte, codes, flag = self.byte, self.codes, self.flag
        alive = byte("player_lane_ccw") < 128
        state, lane = byte("game_state"), min(byte("player_lane"), 14)
        lives = byte("lives", byte("player_up"))
        flag("alive", alive)
        flag("playing", state == 4)
        flag("warping", state == 32)
        flag("last_life", lives <= 1)
        codes["position"] = (2 * (byte("rim_pos") % 16) - 15) * 8
        flag("well_open", self.open)
        codes["low_edge"] = 127 - 9 * lane if self.open else 0
        codes["high_edge"] = 1 + 9 * lane if self.open else 0
        codes["depth"] = share(max(0, byte("player_depth") - 16), 224)
        speed = byte("warp_speed_int") * 256 + byte("warp_speed_frac")
        codes["warp_speed"] = share(speed, 24 * 256) if state == 32 else 0
        codes["shots"] = share(byte("player_shot_count"), 8)
        codes["shots_free"] = share(8 - byte("player_shot_count"), 8)
        uses, timer = byte("zap_uses"), byte("zap_timer")
        flag("zap_first", uses == 0)
        flag("zap_second", uses == 1)
        anybody = any(self.ram["enemy_depth"])
        flag("zap_legal", state == 4 and alive and anybody and uses < 2 and timer == 0)
        running = 0 < timer < 32
        flag("zap_running", running)
        codes["zap_timer"] = share(timer, 19) if running else 0
        codes["lives"] = share(max(0, lives - 1), 5)

    def level(self) -> None:
        byte, codes = self.byte, self.codes
        level = byte("cur_wave") + 1
        codes.update(level=share(level, 99), level_16=share(level, 16), level_48=share(level, 48))
        for start, program in PROGRAMS.items():
            self.flag(f"program_{program}", byte("flipper_script") == start)
        for name, kind in (("flipper_speed", 0), ("spiker_speed", 3)):
            speed = self.speed(byte("speed_int", kind), byte("speed_frac", kind))
            codes[name] = share(speed % 65536, 2048)
        speed = self.speed(byte("enemy_shot_speed_int"), byte("enemy_shot_speed_frac"))
        codes["enemy_shot_speed"] = share(speed % 65536, 2048)
        codes["rim_flip_steps"] = share(byte("rim_flip_steps"), 3)
        codes["fire_delay"] = share(byte("enemy_fire_delay"), 80)
        shots, slots = byte("enemy_shot_count"), (byte("enemy_shot_top_slot") + 1) % 256
        codes["enemy_shots"] = share(shots, 4)
        codes["enemy_shot_slots"] = share(slots, 4)
        chance = [256, 32, 16, 6, 1][shots] / 256 if shots < slots else 0
        codes["fire_chance"] = int(np.ceil(chance * 127))
        codes["flipper_hit_range"] = share(byte("hit_range", 0), 12)
        codes["spiker_hit_range"] = share(byte("hit_range", 3), 12)
        codes["shot_hit_range"] = share(byte("shot_shot_range"), 12)

    def clocks(self) -> None:
        byte, codes, flag = self.byte, self.codes, self.flag
        phase, step = signed(byte("pulse_phase")), signed(byte("pulse_step"))
        flag("pulse_on", phase >= 0)
        flag("pulse_rising", step > 0)
        codes["pulse_phase"] = int(np.clip(phase * 127 // 72, -127, 127))
        codes["pulse_step"] = share(abs(step), 8)
        codes["pulse_wait"] = soon(self.pulse_ticks(), 40)
        codes["pulse_reach"] = share(max(0, byte("pulse_depth") - 16), 224)
        codes["pulsar_move"] = share(byte("pulsar_flip_delay"), 64)
        flag("pulsars_fire", byte("pulsar_fire") != 0)
        flag("fuse_chase_rim", bool(byte("fuse_chase") & 128))
        flag("fuse_chase_well", bool(byte("fuse_chase") & 64))
        codes["fuse_roll_chance"] = share(256 - byte("fuse_move_threshold"), 128)

    def crowd(self) -> None:
        byte, codes, flag = self.byte, self.codes, self.flag
        enemies = self.enemies()
        queue = byte("queue_count")
        codes["queue_16"], codes["queue_64"] = share(queue, 16), share(queue, 64)
        flag("queue_empty", queue == 0)
        for number, kind in enumerate(KINDS):
            codes[f"{kind}s"] = 18 * sum(enemy[1] == number for enemy in enemies)
        codes["enemies"] = share(len(enemies), 7)
        flag("nobody", not enemies)
        codes["walkers"] = share(sum(self.walks(enemy[0]) for enemy in enemies), 4)
        codes["explosions"] = share(byte("explosion_count"), 8)
        lanes = 15 if self.open else 16
        codes["spikes"] = share(sum(self.ram["spike_depth"][:lanes] != 0), 16)


def assert_equal_to_reference(ram: np.ndarray) -> None:
    plain = FEATURES[: layout.PLAIN_FEATURES]
    for image, codes in zip(ram, observe(ram), strict=True):
        expected = Reference(image).codes
        got = {feature.name: int(codes[feature.index]) for feature in plain}
        wrong = {
            name: (expected.get(name, 0), code)
            for name, code in got.items()
            if code != expected.get(name, 0)
        }
        assert not wrong, wrong
        assert set(expected) <= set(got)


def test_equals_the_reference_on_recorded_images() -> None:
    assert_equal_to_reference(recorded_images())


@pytest.mark.parametrize("levels", [range(1, 9), range(9, 33), range(33, 100)])
def test_equals_the_reference_in_simulated_games(levels: range) -> None:
    batch = GameBatch(24, GameSettings(start_level=levels, difficulty="hard", skip_idle=False))
    batch.reset(seeds=3)
    random = np.random.default_rng(4)
    for step in range(240):
        buttons = random.integers(0, 2, 24) + 2 * (random.random(24) < 0.01)
        batch.step(random.integers(-31, 32, 24).astype(np.int8), buttons.astype(np.uint8))
        if step % 60 == 59:
            np.testing.assert_array_equal(observe(batch.ram), batch.codes)
            assert_equal_to_reference(batch.ram)


def test_recorded_images_use_nearly_every_feature() -> None:
    used = (observe(recorded_images()) != 0).any(0)
    lanes = used[: layout.GLOBALS_START].reshape(16, LANE_FEATURES).any(0)
    assert lanes.all()
    ahead = used[layout.FORECAST_START :].reshape(16, layout.FORECAST_FEATURES).any(0)
    # No pulsar of these images moves down.
    assert np.flatnonzero(~ahead).tolist() == [layout.PULSAR_DOWN]
    silent = [
        f.name for f in FEATURES[layout.GLOBALS_START : layout.FORECAST_START] if not used[f.index]
    ]
    assert [name for name in silent if not name.startswith(("pending", "input_delay"))] == []


def test_pending_inputs_are_shown_in_the_order_of_their_effect() -> None:
    batch = GameBatch(1, GameSettings(input_delay=3))
    batch.reset(seeds=1)
    spins, buttons = [31, -31, 10], [1, 2, 3]
    for spin, pair in zip(spins, buttons, strict=True):
        batch.step(np.array([spin], np.int8), np.array([pair], np.uint8))
    shown = describe(batch.codes[0])
    assert shown["input_delay"] == np.float32(95 / 127)
    for tick, (spin, pair) in enumerate(zip(spins, buttons, strict=True), 1):
        assert shown[f"pending_{tick}"] == 1
        assert shown.get(f"pending_{tick}_spin", 0) == np.float32(spin * 127 // 31 / 127)
        assert shown.get(f"pending_{tick}_fire", 0) == (pair & 1)
        assert shown.get(f"pending_{tick}_zap", 0) == pair >> 1
    assert "pending_4" not in shown


@settings(max_examples=30, deadline=None)
@given(st.binary(min_size=RAM_SIZE, max_size=RAM_SIZE))
def test_any_bytes_give_codes_within_range(data: bytes) -> None:
    codes = observe(from_bytes(np.frombuffer(data, np.uint8)[None]))
    assert codes.min() >= -127
    lows = np.array([feature.low for feature in FEATURES])
    assert (codes[0] >= lows * 127).all()


def test_the_player_is_always_in_lane_block_0_whatever_the_lane() -> None:
    """Turning everything in a closed well of equal lanes by some lanes changes nothing."""
    batch = GameBatch(1, GameSettings(start_level=1))
    batch.reset(seeds=5)
    for _ in range(200):
        batch.step(np.zeros(1, np.int8), np.ones(1, np.uint8))
    turned = np.repeat(batch.ram, 16)
    for by, image in enumerate(turned):
        image["rim_pos"] = (int(image["rim_pos"]) + 16 * by) % 256
        for name in ("player_lane", "player_lane_ccw", "enemy_lane", "player_shot_lane",
                      "enemy_shot_lane", "queue_lane"):  # fmt: skip
            image[name] = (image[name].astype(int) + by) % 16
        image["lane_angle"] = np.roll(image["lane_angle"], by)
        image["spike_depth"] = np.roll(image["spike_depth"], by)
    codes = observe(turned)
    assert (codes == codes[0]).all()


def test_floats_are_codes_over_127_exactly_and_come_back() -> None:
    codes = np.arange(-127, 128, dtype=np.int8)
    floats = as_floats(codes)
    assert floats.dtype == np.float32
    assert floats.tolist() == [np.float32(int(code)) / np.float32(127) for code in codes]
    assert floats.min() == -1
    assert floats.max() == 1
    np.testing.assert_array_equal(np.rint(floats * 127).astype(np.int8), codes)


def test_the_table_is_complete_and_names_are_unique() -> None:
    assert [feature.index for feature in FEATURES] == list(range(NUM_FEATURES))
    assert len({feature.name for feature in FEATURES}) == NUM_FEATURES
    assert layout.GLOBALS_START + layout.GLOBAL_FEATURES == layout.PLAIN_FEATURES
    assert layout.PLAIN_FEATURES + 16 * layout.FORECAST_FEATURES == NUM_FEATURES


@pytest.mark.parametrize(
    ("index", "name"),
    [(layout.EXISTS, "exists"), (layout.KIND + 2, "pulsar"), (layout.FLIP_UP, "flip_up"),
     (layout.FLIP_DOWN, "flip_down"), (layout.WALKER_UP, "walker_up"), (layout.CARGO + 2,
     "cargo_fuseballs"), (layout.ENEMY_SHOT, "enemy_shot"), (layout.SPIKE, "spike"),
     (layout.NYMPH, "nymph"), (layout.FLIP_STEPS, "flip_steps")],
)  # fmt: skip
def test_indices_agree_with_the_table(index: int, name: str) -> None:
    assert layout.FEATURES[index].name == f"lane+0.{name}"


@pytest.mark.parametrize(
    ("index", "name"),
    [(0, "deadly_0"), (15, "deadly_15"), (layout.ROLL_UP_CLIMBS, "roll_up_climbs"),
     (layout.ROLL_DOWN_CLIMBS, "roll_down_climbs"), (layout.PULSAR_DOWN, "pulsar_down"),
     (layout.FLIP_TICKS, "next_flip"), (layout.FLIP_SIDE, "next_flip_side"),
     (layout.FLIPS_LEFT, "flips_left")],
)  # fmt: skip
def test_indices_of_the_forecast_agree_with_the_table(index: int, name: str) -> None:
    assert layout.FEATURES[layout.FORECAST_START + index].name == f"lane+0.{name}"


def test_the_page_of_the_documentation_is_current() -> None:
    page = ROOT / "docs" / "features.md"
    assert page.read_text() == layout.markdown(), (
        "run: python -m tempest_agent.envs.features.layout > docs/features.md"
    )


def test_describe_tells_codes_and_floats_alike_and_refuses_a_batch() -> None:
    codes = observe(recorded_images()[:2])
    assert describe(codes[0]) == describe(as_floats(codes[0]))
    plain = describe(codes[0, : layout.PLAIN_FEATURES])
    assert plain.items() < describe(codes[0]).items()
    with pytest.raises(ValueError, match="not a batch"):
        describe(codes)


@pytest.mark.parametrize("wrong", [np.zeros((3, RAM_SIZE), np.uint8), np.zeros((1, 1), RAM_DTYPE)])
def test_observe_refuses_other_arrays(wrong: Any) -> None:
    with pytest.raises(TypeError, match="from_bytes"):
        observe(wrong)

"""The observation's deadly bits against what then happens, and against the expert's own table."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from arena import start_batch, tick_batch
from numpy.typing import NDArray
from stored_images import recorded_images

from tempest_agent.envs.engine.batch import GameBatch
from tempest_agent.envs.engine.settings import GameSettings
from tempest_agent.envs.features.layout import FORECAST_FEATURES, FORECAST_START
from tempest_agent.envs.features.observe import observe
from tempest_agent.envs.forecast.table import HORIZON
from tempest_agent.envs.machine.memory import (
    FUSEBALL,
    KIND_FLIPPING,
    LANES,
    PULSAR,
    RAM_DTYPE,
    RIM_DEPTH,
    STATE_PLAY,
    STATE_WARP,
    TANKER,
)
from tempest_agent.envs.machine.randomness import new_streams
from tempest_agent.envs.machine.switches import Switches
from tempest_agent.experts.random_player import RandomPlayer
from tempest_agent.experts.scripted.decision import LETHAL
from tempest_agent.experts.scripted.expert import ScriptedExpert

LEVELS = (1, 5, 9, 12, 17, 20, 28, 33, 40, 60, 81, 97)
TICKS = 500
GRAB, PULSE, FUSE, SHOT = range(4)
WAITING = 0x46
PULSAR_MOVED = (0x76, 0x7D)
FUSE_TESTED = (0x64, 0x6B)


def deadly_lanes(before: NDArray[np.void], after: NDArray[np.void]) -> NDArray[np.bool_]:
    """Reference: the lanes in which each tick killed, shape ``(ticks, 4 causes, 16)``.

    Read off the images before and after: which program steps with a kill test an enemy ended its
    tick behind, and which shots had to pass the rim.
    """
    deadly = np.zeros((len(before), 4, 16), np.bool_)

    def note(cause: int, when: NDArray[np.bool_], lanes: NDArray[np.uint8]) -> None:
        deadly[when, cause, lanes[when] & 15] = True

    speed = before["enemy_shot_speed_int"] * 256.0 + before["enemy_shot_speed_frac"] - 65536.0
    pulse_on = before["pulse_phase"] < 0x80
    for slot in range(4):
        depth = before["enemy_shot_depth"][:, slot] * 256.0 + before["enemy_shot_frac"][:, slot]
        arrives = (depth >= 256.0) & (depth + speed < RIM_DEPTH * 256.0)
        note(SHOT, arrives, before["enemy_shot_lane"][:, slot])
    for slot in range(7):
        depth, kind, address, lane = (
            after[name][:, slot]
            for name in ("enemy_depth", "enemy_kind", "enemy_script_pc", "enemy_lane")
        )
        resting = (kind & KIND_FLIPPING) == 0
        note(GRAB, (depth > 0) & resting & (address == WAITING), lane)
        potent = (depth > 0) & resting & pulse_on & (depth < after["pulse_depth"])
        note(PULSE, potent & (kind & 7 == PULSAR) & np.isin(address, PULSAR_MOVED), lane)
        touches = (kind & 7 == FUSEBALL) & (depth == RIM_DEPTH)
        note(FUSE, touches & np.isin(address, FUSE_TESTED), lane)
    return deadly


@pytest.fixture(scope="module")
def foresight() -> dict[str, NDArray[np.int64]]:
    """How often a lane was (not) foreseen ``k`` ticks ahead, by cause; and false alarms."""
    missed = np.zeros((4, HORIZON), np.int64)
    seen = np.zeros((4, HORIZON), np.int64)
    alarms = np.zeros((2, HORIZON), np.int64)
    for level in LEVELS:
        images = record(level)
        table = deadly_bits(images[:TICKS])
        playing = (images["game_state"] == STATE_PLAY) & (images["player_lane_ccw"] < 0x80)
        deadly = deadly_lanes(images[:-1], images[1:])
        for ahead in range(HORIZON):
            count = TICKS - ahead
            valid = np.all([playing[j : j + count] for j in range(ahead + 1)], axis=0)
            marked = table[:count, ahead][valid]
            came = deadly[ahead:][valid]
            missed[:, ahead] += (came & ~marked[:, None]).sum((0, 2))
            seen[:, ahead] += (came & marked[:, None]).sum((0, 2))
            alarms[0, ahead] += (marked & ~came.any(1)).sum()
            alarms[1, ahead] += marked.sum()
    return {"missed": missed, "seen": seen, "alarms": alarms}


def deadly_bits(
    images: NDArray[np.void], codes: NDArray[np.int8] | None = None
) -> NDArray[np.bool_]:
    """The bits of each image, ``(N, 16 ticks, 16 lanes)``, by the lanes' own numbers.

    ``codes``: its observation; the one without inputs under way if left out.
    """
    codes = observe(images) if codes is None else codes
    blocks = codes[:, FORECAST_START:].reshape(len(images), LANES, FORECAST_FEATURES)
    around = (np.arange(LANES) - images["player_lane"][:, None]) & 15
    own = np.take_along_axis(blocks[:, :, :HORIZON], around[:, :, None], axis=1)
    return (own > 0).transpose(0, 2, 1)


@functools.cache
def record(level: int) -> NDArray[np.void]:
    """``TICKS`` ticks of a random player, from the first play tick of ``level``."""
    player = RandomPlayer(seed=level)
    ram = np.zeros(1, RAM_DTYPE)
    source = new_streams([np.random.SeedSequence(level)])
    start_batch(ram, source, Switches(start_level=level, lives=5).record())
    images = np.zeros(TICKS + 1, RAM_DTYPE)
    over, score, deaths = np.zeros(1, np.bool_), np.zeros(1, np.int64), np.zeros(5, np.int64)
    images[0] = ram[0]
    for tick in range(TICKS):
        spins, buttons = player.act(ram)
        tick_batch(
            ram, source, spins.astype(np.int16), buttons.astype(np.int16), over, score, deaths
        )
        images[tick + 1] = ram[0]
    return images


def share_missed(foresight: dict[str, NDArray[np.int64]], cause: int, ahead: int) -> float:
    missed, seen = foresight["missed"][cause, ahead], foresight["seen"][cause, ahead]
    assert missed + seen >= 20, "too few cases to tell"
    return float(missed / (missed + seen))


def test_enemy_shots_are_foreseen_as_soon_as_they_are_fired(
    foresight: dict[str, NDArray[np.int64]],
) -> None:
    assert [share_missed(foresight, SHOT, ahead) for ahead in range(4)] == [0, 0, 0, 0]


@pytest.mark.parametrize(("ahead", "allowed"), [(0, 0.01), (1, 0.01), (2, 0.02)])
def test_grabs_are_foreseen(
    foresight: dict[str, NDArray[np.int64]], ahead: int, allowed: float
) -> None:
    assert share_missed(foresight, GRAB, ahead) <= allowed


@pytest.mark.parametrize(("ahead", "allowed"), [(0, 0.0), (1, 0.02), (4, 0.05), (8, 0.1)])
def test_pulses_are_foreseen(
    foresight: dict[str, NDArray[np.int64]], ahead: int, allowed: float
) -> None:
    assert share_missed(foresight, PULSE, ahead) <= allowed


@pytest.mark.parametrize(("ahead", "allowed"), [(0, 0.0), (1, 0.01), (4, 0.03), (12, 0.1)])
def test_fuseballs_are_foreseen(
    foresight: dict[str, NDArray[np.int64]], ahead: int, allowed: float
) -> None:
    assert share_missed(foresight, FUSE, ahead) <= allowed


def test_few_lanes_are_called_deadly_that_are_not(
    foresight: dict[str, NDArray[np.int64]],
) -> None:
    false_alarms, alarms = foresight["alarms"][:, 0]
    assert alarms > 500
    assert false_alarms / alarms < 0.1


def test_who_is_put_into_a_lane_dies_there_in_the_next_tick_as_foreseen() -> None:
    """A copy of the game for each lane, played for one tick with the claw in it."""
    outcome = np.zeros((2, 2), np.int64)
    for level in LEVELS:
        images = record(level)[:TICKS:8]
        images = images[(images["game_state"] == STATE_PLAY) & (images["player_lane_ccw"] < 0x80)]
        bits = deadly_bits(images)[:, 0]
        for image, foreseen in zip(images, bits, strict=True):
            lanes = np.arange(LANES - 1 if image["well_open"] else LANES)
            copies = np.repeat(image[None], len(lanes))
            copies["rim_pos"] = 16 * lanes + 8
            sources = new_streams([np.random.SeedSequence((level, lane)) for lane in lanes])
            still = np.zeros(len(lanes), np.int16)
            over, score = np.zeros(len(lanes), np.bool_), np.zeros(len(lanes), np.int64)
            tick_batch(copies, sources, still, still, over, score, np.zeros(5, np.int64))
            died = copies["player_lane_ccw"] >= 0x80
            np.add.at(outcome, (died.astype(int), foreseen[lanes].astype(int)), 1)
            assert not foreseen[len(lanes) :].any()
    (_, false_alarms), (missed, right) = outcome
    assert right > 80
    assert missed == 0
    assert false_alarms <= 0.1 * right


def test_the_bits_are_the_lethal_costs_of_the_expert() -> None:
    expert, stored = ScriptedExpert(), recorded_images()
    bits = deadly_bits(stored)
    for image, foreseen in zip(stored, bits, strict=True):
        costs = expert.explain(image[None])[0]["danger"]
        np.testing.assert_array_equal(
            costs[:, : 15 if image["well_open"] else 16] >= LETHAL,
            foreseen[:, : 15 if image["well_open"] else 16],
        )
    assert bits.any(axis=(1, 2)).mean() > 0.3


DELAY = 2


def test_under_a_delay_the_table_of_play_starts_as_many_ticks_later() -> None:
    batch = GameBatch(32, GameSettings(start_level=range(1, 99, 3), input_delay=DELAY))
    batch.reset(seeds=2)
    random = np.random.default_rng(3)
    compared = 0
    for _ in range(250):
        batch.step(
            random.integers(-31, 32, 32).astype(np.int8), random.integers(0, 2, 32, np.uint8)
        )
        # Pulsars aim at where the claw will be, which without a delay is where it is.
        kinds = batch.ram["enemy_kind"] & 7
        sure = ((kinds != PULSAR) & (kinds != TANKER) | (batch.ram["enemy_depth"] == 0)).all(1)
        sure &= batch.ram["game_state"] == STATE_PLAY
        later = deadly_bits(batch.ram, batch.codes)[sure, : HORIZON - DELAY]
        np.testing.assert_array_equal(later, deadly_bits(batch.ram)[sure, DELAY:])
        compared += later.sum()
    assert compared > 1000


def test_under_a_delay_the_table_of_a_dive_is_the_one_that_will_be() -> None:
    images = recorded_images()
    images = np.repeat(images[images["game_state"] == STATE_WARP], 8)
    count = len(images)
    batch = GameBatch(count, GameSettings(input_delay=DELAY, skip_idle=False))
    batch.reset(seeds=1)
    random, nothing = np.random.default_rng(5), np.zeros(count, np.uint8)
    batch.ram[:] = images
    batch.ram["spike_depth"] = random.integers(0x28, 0xF0, (count, LANES))
    # One shot's hits in other lanes free a place for the next, which no forecast of a lane knows.
    batch.ram["player_shot_depth"], batch.ram["player_shot_count"] = 0, 0
    for _ in range(DELAY):
        batch.step(random.integers(-31, 32, count).astype(np.int8), nothing)
    foreseen = deadly_bits(batch.ram, batch.codes)
    for _ in range(DELAY):
        batch.step(np.zeros(count, np.int8), nothing)
    dives = (batch.ram["game_state"] == STATE_WARP) & (batch.ram["player_lane_ccw"] < 0x80)
    np.testing.assert_array_equal(foreseen[dives], deadly_bits(batch.ram)[dives])
    assert foreseen[dives].any(axis=(1, 2)).sum() > 20

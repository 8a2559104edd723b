"""The compiled rules against a plain restatement of them, where no recording has ever been.

``reference.machine`` was written apart from the simulator.  It is first held against the
recordings itself; then both play from random legal states with the same random bytes, and every
cell of the contract and every random read is compared in every tick.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from places import DATA
from reference import cells as c
from reference import scenarios
from reference.compare import Pair
from reference.machine import Machine

from tempest_agent.envs.machine import memory
from tempest_agent.envs.recordings.recording import NOT_READ, Recording, load_recording

RECORDINGS = [
    path
    for path in sorted((DATA / "recordings").glob("*.npz"))
    if not path.stem.endswith(("_waves", "_switches"))  # there the recorder wrote into RAM
]

Controls = Callable[[bytearray, random.Random], None]


def still(image: bytearray, rng: random.Random) -> None:
    """Nobody at the controls."""
    image[c.SPIN] = image[c.HELD] = image[c.LATCHED] = 0


def careless(image: bytearray, rng: random.Random) -> None:
    """Seldom fires."""
    scenarios.controls(image, rng, 0.1)


def eager(image: bytearray, rng: random.Random) -> None:
    """Holds fire nearly always."""
    scenarios.controls(image, rng, 0.9)


def choosing(image: bytearray, rng: random.Random) -> None:
    """Turns the knob at the level select, and now and then presses something."""
    image[c.SPIN] = rng.choice((0, 0, rng.randrange(256)))
    image[c.HELD] = 0
    if rng.random() < 0.008:
        image[c.LATCHED] |= rng.choice((0x08, 0x10, 0x20, 0x40))


def reference_tick(recording: Recording, at: int) -> bytearray:
    """The reference's image after one recorded tick, the recorded controls and bytes put in."""
    image = bytearray(recording.ram[at].tobytes())
    for cell, seen in ((c.SPIN, recording.spin), (c.LATCHED, recording.latched),
                       (c.HELD, recording.held)):  # fmt: skip
        if seen[at] != NOT_READ:
            image[cell] = int(seen[at]) & 0xFF
    first, end = int(recording.random_offset[at]), int(recording.random_offset[at + 1])
    reads = iter(range(first, end))

    def draw(address: int) -> int:
        i = next(reads)
        assert recording.random_address[i] == address
        return int(recording.random_value[i])

    Machine(image, draw).tick()
    assert list(reads) == []
    return image


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_the_reference_reproduces_recorded_ticks(path: Path) -> None:
    """Every fourth tick of play and every tick of the short states.

    The level select is left out: there the display moves the cursor too.
    """
    recording = load_recording(path)
    state = recording.ram[:, 0]
    often = np.isin(state, (0x04, 0x0A, 0x18))
    wanted = recording.in_game & ~np.isin(state, (0x00, 0x16))
    wanted &= ~often | (np.arange(len(state)) % 4 == 0)
    wanted[-1] = False
    assert wanted.sum() > 300
    for at in np.flatnonzero(wanted):
        image = np.frombuffer(bytes(reference_tick(recording, int(at))), np.uint8)
        after = recording.ram[at + 1]
        cells = memory.CONTRACT_ADDRESSES
        wrong = [memory.name_of(int(a)) for a in cells[image[cells] != after[cells]]]
        assert wrong == [], f"tick {at}"


@pytest.fixture(scope="module")
def pair() -> Pair:
    return Pair()


def play_from(pair: Pair, rng: random.Random, ticks: int, controls: Controls) -> None:
    """A new life, turned into a random state of play, carried on for some ticks."""
    image = scenarios.new_life(rng)
    assert pair.run(image, rng, 1, still) == []
    image[c.GAME_STATE] = 4
    scenarios.scramble(image, rng)
    assert pair.run(image, rng, ticks, controls) == []


@pytest.mark.parametrize("controls", [still, careless, eager])
@pytest.mark.parametrize("block", range(5))
def test_play_from_random_states(pair: Pair, block: int, controls: Controls) -> None:
    for game in range(70):
        play_from(pair, random.Random(f"play {block} {game}"), 25, controls)


@pytest.mark.parametrize("block", range(5))
def test_lives_and_waves_from_random_states(pair: Pair, block: int) -> None:
    """Long enough for a death and the next life, or a dive and the next wave."""
    for game in range(16):
        play_from(pair, random.Random(f"long {block} {game}"), 130, careless)


def test_the_random_states_reach_the_rare_rules() -> None:
    """What the recordings show never or hardly ever happens here, and both machines agree."""
    pair = Pair()
    for game in range(300):
        play_from(pair, random.Random(f"rare {game}"), 40, still if game % 2 else eager)
    for event in (
        "pulsar turns up at the potency depth", "pulsar sent up by the empty queue",
        "pulsar bounces", "pulsar walks the rim", "pulsar erased at the rim",
        "fuseball hunts at the rim", "spiker becomes tanker", "tanker without cargo",
        "all explosions busy", "superzapper while dead", "count below zero", "score wraps",
        "bonus life",
    ):  # fmt: skip
        assert pair.events[event] > 0, event


@pytest.mark.parametrize("wave", range(99))
def test_dive_after_every_wave(pair: Pair, wave: int) -> None:
    """Random spikes in random lanes, down to the next wave's first ticks or a death."""
    rng = random.Random(f"dive {wave}")
    image = scenarios.new_life(rng, wave)
    assert pair.run(image, rng, 1, still) == []
    image[c.GAME_STATE] = 4
    scenarios.scramble(image, rng)
    scenarios.start_dive(image, rng)
    assert pair.run(image, rng, 75, careless) == []


@pytest.mark.parametrize("difficulty", [0, 1, 2, 3])
def test_first_ticks_of_every_level(pair: Pair, difficulty: int) -> None:
    """Set-up, the pause before play, and the first of it, for all 99 levels."""
    for wave in range(difficulty % 2, 99, 2):
        rng = random.Random(f"level {difficulty} {wave}")
        image = scenarios.new_life(rng, wave, difficulty)
        assert pair.run(image, rng, 2, still) == []
        image[c.PAUSE_TIMER] = 1
        image[c.PAUSE_MASK] = 0
        assert pair.run(image, rng, 6, eager) == []


@pytest.mark.parametrize("wave", [95, 96, 97])
def test_more_than_64_waiting_on_hard(pair: Pair, wave: int) -> None:
    """The count is larger than the number of entries, and stays so."""
    rng = random.Random(wave)
    image = scenarios.new_life(rng, wave, difficulty=2)
    surplus = image[c.QUEUE_COUNT] - 64
    assert surplus == {95: 1, 96: 2, 97: 4}[wave]
    assert pair.run(image, rng, 2, still) == []
    assert sum(image[c.QUEUE_TIMER + i] != 0 for i in range(64)) == 64
    image[c.PAUSE_TIMER] = 1
    image[c.PAUSE_MASK] = 0
    assert pair.run(image, rng, 150, eager) == []
    # Everybody has hatched and gone: the wave goes on all the same.
    image[c.GAME_STATE], image[c.PLAYER_CCW] = 4, (image[c.PLAYER_LANE] + 1) % 16
    for address in (*range(c.QUEUE_TIMER, c.QUEUE_TIMER + 64), *range(c.DEPTH, c.DEPTH + 7),
                    *range(c.SHOT_DEPTH, c.SHOT_DEPTH + 12), *range(c.BOOM_DEPTH, c.BOOM_DEPTH + 8),
                    c.PLAYER_SHOTS, c.ENEMY_SHOTS, c.BOOM_COUNT, c.WARP_FLAG):  # fmt: skip
        image[address] = 0
    image[c.QUEUE_COUNT] = surplus
    assert pair.run(image, rng, 40, still) == []
    assert image[c.GAME_STATE] == 4


@pytest.mark.parametrize("block", range(4))
def test_new_games_and_level_select(pair: Pair, block: int) -> None:
    """Any switches, any earlier game, the knob and the buttons, to the choice or the time-out."""
    for game in range(8):
        rng = random.Random(f"select {block} {game}")
        image = scenarios.new_game(rng)
        controls = still if game == 0 else choosing
        assert pair.run(image, rng, 240, controls) == []
        assert image[c.WAVE_INDEX] != 0xFF or image[c.GAME_STATE] == 0x16


def test_start_bonus_with_every_interval(pair: Pair) -> None:
    """The end of a wave with each choice pending, near each boundary of the bonus lives."""
    for index in range(28):
        for interval in range(8):
            rng = random.Random(f"bonus {index} {interval}")
            image = scenarios.new_life(rng, rng.randrange(98))
            image[c.BONUS_INTERVAL], image[c.START_BONUS] = interval, index
            image[c.GAME_STATE] = 0x0E
            assert pair.run(image, rng, 1, still) == []

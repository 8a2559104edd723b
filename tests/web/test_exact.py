"""The compiled module plays the games of the environment, byte for byte."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from in_node import DECISION, decisions_of, states_of, ticked_on_tape
from numpy.typing import NDArray
from places import DATA

from tempest_agent.envs.engine.batch import GameBatch
from tempest_agent.envs.engine.settings import GameSettings
from tempest_agent.envs.machine import memory as m
from tempest_agent.envs.machine.randomness import TAPE_DTYPE
from tempest_agent.envs.recordings.recording import NOT_READ, Recording, load_recording
from tempest_agent.evaluation.players import find_player
from tempest_agent.web.network_file import network_bytes

RECORDINGS = sorted((DATA / "recordings").glob("*.npz"))


def controlled(recording: Recording) -> NDArray[np.uint8]:
    """The recorded images with each tick's controls in them."""
    images = recording.ram.copy()
    for name, read in (
        ("spinner_accum", recording.spin),
        ("buttons_latched", recording.latched),
        ("buttons_now", recording.held),
    ):
        column = m.RAM_DTYPE.fields[name][1]  # type: ignore[index]
        given = read != NOT_READ
        images[given, column] = read[given] & 0xFF
    return images


def tapes_of(recording: Recording) -> NDArray[np.void]:
    """The random bytes of each tick."""
    tapes = np.zeros(len(recording.ram), TAPE_DTYPE)
    for tick, tape in enumerate(tapes):
        start, end = recording.random_offset[tick : tick + 2]
        tape["length"] = end - start
        tape["value"][: end - start] = recording.random_value[start:end]
        tape["address"][: end - start] = recording.random_address[start:end]
    return tapes


def simulated(recording: Recording) -> NDArray[np.bool_]:
    """Ticks between two images that neither the display nor the recorder has written into."""
    wanted = recording.in_game.copy()
    wanted[-1] = False
    state = recording.ram[:, 0]
    select = np.isin(state, (m.STATE_NEW_GAME, m.STATE_LEVEL_SELECT))
    wanted &= ~select
    if recording.lives_poke or recording.clear_every:
        into_play = np.append(state[1:] == m.STATE_PLAY, False)
        wanted &= ~into_play
    return wanted


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_every_recorded_tick_of_the_real_machine(path) -> None:  # type: ignore[no-untyped-def]
    recording = load_recording(path)
    wanted = np.flatnonzero(simulated(recording))
    images, tapes = ticked_on_tape(controlled(recording)[wanted], tapes_of(recording)[wanted])
    assert (tapes["wrong"] == 0).all()
    assert (tapes["position"] == tapes["length"]).all()
    contract = m.CONTRACT_ADDRESSES
    assert np.array_equal(images[:, contract], recording.ram[wanted + 1][:, contract])


@pytest.mark.parametrize(
    ("settings", "seed"),
    [
        (GameSettings(skip_idle=False), 0),
        (GameSettings(start_level=33, lives=5, start_bonus=True, skip_idle=False), 2**32 + 7),
        (GameSettings(start_level=81, difficulty="hard", bonus_life=10_000, skip_idle=False), 1),
        (GameSettings(start_level=99, difficulty="easy", bonus_life="none", skip_idle=False), 2),
    ],
)
def test_a_game_is_the_environments_in_every_byte(settings: GameSettings, seed: int) -> None:
    ticks = 600
    chance = np.random.default_rng(seed)
    inputs = np.stack(
        [chance.integers(-31, 32, ticks), chance.integers(0, 4, ticks)], axis=1
    ).astype(np.int8)
    batch = GameBatch(1, settings, observe=False)
    batch.reset(seeds=seed)
    expected = [batch.clone()[0]]
    for spin, buttons in inputs:
        batch.step(np.array([spin]), np.array([buttons], np.uint8))
        expected.append(batch.clone()[0])
    assert np.array_equal(states_of(settings, seed, inputs), expected)


@pytest.mark.parametrize(("name", "level"), [("expert", 1), ("expert", 65), ("champion", 33)])
def test_a_player_decides_as_it_does_in_python(name: str, level: int) -> None:
    ticks, seed = 500, 3
    settings = GameSettings(start_level=level, max_ticks=ticks)
    choice = find_player(name)
    batch = GameBatch(1, settings)
    batch.reset(seeds=seed)
    player = choice.make(np.zeros(1, np.int64), 0)
    expected = []
    while not (batch.terminated[0] or batch.truncated[0]):
        spins, buttons = player.act(batch)
        digest = hashlib.sha256(m.as_bytes(batch.ram)[0].tobytes()).digest()[: DECISION - 2]
        expected.append([int(spins[0]) & 0xFF, int(buttons[0]), *digest])
        batch.step(spins, buttons)
    plays = name if choice.policy is None else network_bytes(choice.policy.network, name)
    assert np.array_equal(decisions_of(settings, seed, plays, ticks), expected)

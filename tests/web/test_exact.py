"""The compiled module plays the games of the environment, byte for byte."""

from __future__ import annotations

import numpy as np
import pytest
from in_node import decisions_of, states_of, ticked_on_tape
from many_in_node import decided, played, plays_in_node, random_inputs
from numpy.typing import NDArray
from places import DATA

from tempest_agent.envs.engine.settings import GameSettings
from tempest_agent.envs.machine import memory as m
from tempest_agent.envs.machine.randomness import TAPE_DTYPE
from tempest_agent.envs.recordings.recording import NOT_READ, Recording, load_recording

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
    inputs = random_inputs(seed, 600)
    assert np.array_equal(states_of(settings, seed, inputs), played(settings, seed, inputs))


@pytest.mark.parametrize(("name", "level"), [("expert", 1), ("expert", 65), ("champion", 33)])
def test_a_player_decides_as_it_does_in_python(name: str, level: int) -> None:
    ticks, seed = 500, 3
    got = decisions_of(GameSettings(start_level=level), seed, plays_in_node(name), ticks)
    assert np.array_equal(got, decided(name, level, seed, ticks))

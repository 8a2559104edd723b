"""Wrong bytes in states, recordings and images: refused in one line, or harmless."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz_states import RECORDINGS, fuzz
from places import SUPPORT

from tempest_agent.envs.api.tempest_env import TempestEnv
from tempest_agent.envs.api.vector_env import TempestVectorEnv
from tempest_agent.envs.arcade.playable import find_misfit
from tempest_agent.envs.engine.batch import GameBatch
from tempest_agent.envs.engine.game_step import GAME_DTYPE, LOST, NOT_STARTED, TERMINATED
from tempest_agent.envs.engine.settings import GameSettings
from tempest_agent.envs.engine.state_check import STATE_SIZE, STREAM_END
from tempest_agent.envs.machine import memory as m
from tempest_agent.envs.recordings.recording import RecordingError, load_recording
from tempest_agent.experts import Novice, Planner, ScriptedExpert

HEAD = len(b"TEMPEST2") + 1
"""Where the RAM image begins in what ``clone_state()`` returns."""

LIMITS = {
    0x00: 0x0A, 0x3D: 1, 0x102: 27, 0x127: 27, 0x11A: 3, 0x11C: 6, 0x149: 3, 0x14A: 3, 0x14C: 3,
    0x3AA: 2, 0x3AB: 68,
}  # fmt: skip
"""Greatest value of cells that lead to a table, whatever lives in the well."""

IN_WELL = {
    0x283: (0x2DF, 4), 0x289: (0x2E5, 0xC4), 0x2B9: (0x2DF, 15), 0x291: (0x2DF, 0x97),
    0x2AD: (0x2D3, 15), 0x2B4: (0x2DA, 15), 0x302: (0x30A, 5), 0x203: (0x243, 15),
    0x242: (0x282, 15),
}  # fmt: skip
"""Cell -> the depth of what it belongs to, and its greatest value while that is not 0."""


@cache
def state_in_play() -> bytes:
    env = TempestEnv(start_level=20)
    env.reset(seed=3)
    env.action_space.seed(3)
    for _ in range(200):
        env.step(env.action_space.sample())
    return env.clone_state()


def changed(cells: dict[int, int], state: bytes | None = None) -> bytes:
    """``state``, or a game in play, with other bytes at addresses of its RAM image."""
    image = bytearray(state or state_in_play())
    for address, value in cells.items():
        image[HEAD + address] = value
    return bytes(image)


@pytest.mark.parametrize("address", LIMITS)
def test_a_cell_that_leads_out_of_a_table_is_refused_by_name(address: int) -> None:
    env, vector = TempestEnv(), TempestVectorEnv(2)
    env.reset(seed=0)
    vector.reset(seed=0)
    before, rows = env.clone_state(), vector.clone_states()
    env.restore_state(changed({address: LIMITS[address]}))
    env.restore_state(before)
    for value in (LIMITS[address] + 1, 0x57, 0xFF):
        bad = changed({address: value})
        words = (
            rf"game 0 is damaged: RAM cell 0x{address:03X} \({m.name_of(address)[:8]}.* {value},"
        )
        with pytest.raises(ValueError, match=words) as raised:
            env.restore_state(bad)
        assert "\n" not in str(raised.value)
        assert env.clone_state() == before
        second = np.stack([rows[0], np.frombuffer(bad, np.uint8)[HEAD - 1 :]])
        with pytest.raises(ValueError, match="game 1 is damaged"):
            vector.restore_states(second)
        assert (vector.clone_states() == rows).all()


@pytest.mark.parametrize("address", IN_WELL)
def test_what_lives_in_the_well_is_looked_at_and_empty_slots_are_not(address: int) -> None:
    depth, greatest = IN_WELL[address]
    env = TempestEnv()
    for value in range(greatest, 256, 13):
        env.restore_state(changed({address: value, depth: 0}))
    if not 0x291 <= address < 0x298:
        env.restore_state(changed({address: greatest, depth: 0x60}))
    with pytest.raises(ValueError, match=f"0x{address:03X}"):
        env.restore_state(changed({address: greatest + 1, depth: 0x60}))


def test_a_program_counter_stands_at_a_step_of_a_program() -> None:
    env = TempestEnv()
    taken = []
    for value in range(256):
        try:
            env.restore_state(changed({0x291: value, 0x2DF: 0x60}))
        except ValueError:
            continue
        taken.append(value)
    operands = {0x03, 0x06, 0x0A, 0x0C, 0x10, 0x43, 0x47, 0x4B, 0x60, 0x95, 0x97}
    assert {0x00, 0x07, 0x0D, 0x42, 0x46, 0x61, 0x6B, 0x72, 0x76, 0x7D} <= set(taken)
    assert not operands & set(taken)
    assert max(taken) < 0x98


@pytest.mark.parametrize(
    ("name", "value"),
    [("status", 5), ("last_death", 5), ("step_death", -2), ("deaths", -1), ("wraps", -1),
     ("wraps", 2**31 - 1), ("score", -5), ("score", 2**63 - 1), ("ticks", -1), ("steps", 2**63 - 1),
     ("pending_spin", -32), ("pending_spin", 127), ("executed_spin", 32), ("executed_buttons", 4)],
)  # fmt: skip
def test_a_record_that_no_game_has_is_refused(name: str, value: int) -> None:
    batch = GameBatch(2)
    batch.reset(seeds=0)
    states = batch.clone()
    record = states[1:, STREAM_END:].copy().view(GAME_DTYPE)
    record[name] = value
    states[1, STREAM_END:] = record.view(np.uint8)
    with pytest.raises(ValueError, match=f"game 1 is damaged: {name} is {value}, but"):
        batch.restore(states)


def test_an_input_delay_that_does_not_exist_is_damage() -> None:
    delay = HEAD - 1
    with pytest.raises(ValueError, match="damaged: it is from input_delay=87"):
        TempestEnv().restore_state(state_in_play()[:delay] + b"\x57" + state_in_play()[HEAD:])


def test_a_random_stream_that_stands_still_is_refused() -> None:
    batch, other = GameBatch(1), GameBatch(1)
    batch.reset(seeds=0)
    states = batch.clone()
    states[0, m.RAM_SIZE : STREAM_END] = 0
    with pytest.raises(ValueError, match="random stream is 0"):
        batch.restore(states)
    # That of a game that was never reset is 0, and gets its seed with the first reset.
    other.restore(GameBatch(1).clone())
    other.reset()
    assert other.streams["state"][0] != 0


@pytest.mark.parametrize(
    "made",
    [list, bytes, lambda states: None, lambda states: states[:, :-1], lambda states: states[0],
     lambda states: states.astype(np.int8), lambda states: states.astype(object)],
)  # fmt: skip
def test_what_is_no_array_of_states_is_refused(made: Callable[[Any], Any]) -> None:
    batch, vector = GameBatch(1), TempestVectorEnv(1)
    batch.reset(seeds=0)
    with pytest.raises(ValueError, match="as clone"):
        batch.restore(made(batch.clone()))
    with pytest.raises(ValueError, match="as clone"):
        vector.restore_states(made(vector.clone_states()))


def test_kinds_of_arrays_are_taken_for_what_they_hold() -> None:
    batch = GameBatch(2)
    batch.reset(seeds=0)
    states = batch.clone()
    for kind in (np.asmatrix(states), np.ma.masked_array(states, mask=True), states[::-1][::-1]):
        batch.reset(seeds=1)
        batch.restore(kind)
        assert (batch.clone() == states).all()


@pytest.mark.parametrize("status", [TERMINATED, LOST, NOT_STARTED])
def test_the_last_image_of_a_game_that_is_over_may_be_anything(status: int) -> None:
    states = np.frombuffer(changed({0x14A: 0x57}), np.uint8)[None, HEAD:].copy()
    states[0, -1] = status
    batch = GameBatch(1)
    batch.restore(states)
    assert (batch.clone() == states).all()


@pytest.mark.parametrize("difficulty", ["easy", "medium", "hard"])
def test_no_game_of_any_level_is_refused(difficulty: str) -> None:
    settings = GameSettings(start_level=range(1, 100), difficulty=difficulty, skip_idle=False)
    batch = GameBatch(297, settings, autoreset=True)
    batch.reset(seeds=4)
    expert = ScriptedExpert()
    everywhere = np.ones(297, np.bool_)
    for _ in range(300):
        batch.step(*expert.act(batch.ram))
        assert find_misfit(batch.ram, everywhere) is None
    batch.restore(batch.clone())


def recorded() -> dict[str, Any]:
    with np.load(RECORDINGS[0]) as data:
        return {key: data[key] for key in data.files}


def refused(arrays: dict[str, Any], folder: Path, match: str) -> None:
    np.savez(folder / "changed.npz", **arrays)
    with pytest.raises(RecordingError, match=match) as raised:
        load_recording(folder / "changed.npz")
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize(("address", "value"), [(0x14A, 87), (0x3AA, 3), (0x11A, 4)])
def test_a_recording_with_an_image_of_no_game_is_refused(
    address: int, value: int, tmp_path: Path
) -> None:
    arrays = recorded()
    tick = int(np.flatnonzero(arrays["ram"][:, 0] == m.STATE_PLAY)[100])
    arrays["ram"][tick, address] = value
    refused(arrays, tmp_path, rf"changed\.npz: at tick {tick} RAM cell 0x{address:03X} .* {value},")


@pytest.mark.parametrize("name", ["level_override", "lives_poke", "clear_every"])
@pytest.mark.parametrize(
    "value", [1_000_000, -1, 99 * 10**4000, True, 1.5, "3", [1], {}, float("nan"), 2**63]
)
def test_numbers_of_meta_are_looked_at(name: str, value: Any, tmp_path: Path) -> None:
    if (name, value) == ("clear_every", 1_000_000):
        return
    arrays = recorded()
    arrays["meta"] = np.array(json.dumps({name: value}))
    refused(arrays, tmp_path, rf"changed\.npz: 'meta' says {name}=|not JSON")


@pytest.mark.parametrize("meta", ["", "[1]", "5", "null", "[" * 20_000, "9" * 5000, "{"])
def test_meta_is_an_object(meta: str, tmp_path: Path) -> None:
    refused({**recorded(), "meta": np.array(meta)}, tmp_path, "'meta' is not")


@pytest.mark.parametrize(
    ("name", "kind", "value"),
    [("seen_spin", np.int16, -129), ("seen_held", np.int64, 2**40),
     ("seen_latched", np.int16, -998), ("random_value", np.int16, 256),
     ("random_value", np.int64, -1), ("random_pc", np.int32, -7),
     ("io_addr", np.int64, 2**17), ("io_value", np.int16, 999)],
)  # fmt: skip
def test_entries_of_arrays_are_looked_at(
    name: str, kind: type[np.generic], value: int, tmp_path: Path
) -> None:
    arrays = recorded()
    arrays[name] = arrays[name].astype(kind)
    arrays[name][5] = value
    refused(arrays, tmp_path, rf"changed\.npz: array '{name}' holds {value}, but goes from")


def test_whole_numbers_of_any_size_are_the_same_recording(tmp_path: Path) -> None:
    arrays = recorded()
    arrays = {
        key: value.astype(np.int64) if value.dtype.kind in "iu" and key != "ram" else value
        for key, value in arrays.items()
    }
    np.savez(tmp_path / "wide.npz", **arrays)
    wide, own = load_recording(tmp_path / "wide.npz"), load_recording(RECORDINGS[0])
    for key in ("spin", "latched", "held", "cursor", "random_value", "random_address"):
        found, wanted = getattr(wide, key), getattr(own, key)
        assert (found.dtype, found.tobytes()) == (wanted.dtype, wanted.tobytes())


def test_offsets_that_overflow_are_refused(tmp_path: Path) -> None:
    arrays = recorded()
    arrays["random_offsets"] = arrays["random_offsets"].astype(np.int64)
    arrays["random_offsets"][5:7] = 2**63 - 1, -(2**63)
    refused(arrays, tmp_path, "does not divide")


def test_what_teachers_remember_is_looked_at() -> None:
    planner, novice = Planner(), Novice(0.5)
    games = np.arange(3)
    images = np.zeros(3, m.RAM_DTYPE)
    for player in (planner, novice):
        player.act(images, None, games)
        player.load_state_dict(player.state_dict())
        with pytest.raises(ValueError, match="from 0 on"):
            player.act(images, None, np.array([0, -1, 2]))
        with pytest.raises(ValueError, match="RAM_DTYPE"):
            player.act(np.zeros(3, "V2048"))
    held = planner.state_dict()
    for wrong in (
        {"lane": held["lane"] + 16},
        {"lane": held["lane"][:2]},
        {"fire": held["fire"] - 1},
    ):
        with pytest.raises(ValueError, match="planner's state"):
            planner.load_state_dict({**held, **wrong})
    kept = novice.state_dict()
    for wrong in ({"held": kept["held"][:1]}, {"held": kept["held"] + 2}, {"streams": np.zeros(3)}):
        with pytest.raises(ValueError, match="novice's state"):
            novice.load_state_dict({**kept, **wrong})


def test_damage_of_all_kinds_is_refused_in_a_line_or_played() -> None:
    report = fuzz(256, seed=1)
    assert report.failures == []
    assert report.counts["images read"] == report.counts["damaged states"] == 256
    assert 64 < report.counts["states played"] < 256
    assert 0 < report.counts["recordings compared"] < report.counts["damaged recordings"]


def test_no_index_leaves_an_array() -> None:
    """Compiled code looks at no index; the same code as plain Python does."""
    program = SUPPORT / "uncompiled.py"
    done = subprocess.run([sys.executable, program, "160"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    played = int(done.stdout.split()[0])
    assert 80 < played < 160


def test_code_with_bounds_checks_is_kept_apart() -> None:
    code = (
        "from pathlib import Path; from tempest_agent.envs.machine import compiled; "
        "print(compiled._digest(frozenset({Path(compiled.__file__).parent})))"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True,
            env={**os.environ, "NUMBA_BOUNDSCHECK": checked},
        ).stdout
        for checked in ("0", "1")
    }  # fmt: skip
    assert len(digests) == 2


def test_a_state_is_as_long_as_it_says() -> None:
    assert len(state_in_play()) == HEAD + STATE_SIZE

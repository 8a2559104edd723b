"""The simulator against recordings of the real machine, byte for byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from places import DATA

from tempest_agent.envs.machine import memory as m
from tempest_agent.envs.recordings.recording import RecordingError, load_recording
from tempest_agent.envs.recordings.verify import verify_files, verify_recording

RECORDINGS = sorted((DATA / "recordings").glob("*.npz"))


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_every_recorded_tick_is_reproduced(path: Path) -> None:
    result = verify_recording(load_recording(path))
    assert result["first_mismatches"] == []
    assert result["exact_ticks"] == result["ticks"] > 1000
    assert sum(state["ticks"] for state in result["by_state"].values()) == result["ticks"]


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_free_run_lasts_to_the_end_of_each_game(path: Path) -> None:
    result = verify_recording(load_recording(path))
    assert [run["first_difference"] for run in result["free_run"]] == [None] * len(
        result["free_run"]
    )
    assert sum(run["ticks"] for run in result["free_run"]) == result["ticks"]


def test_the_recordings_reach_every_covered_state() -> None:
    total = verify_files(RECORDINGS)
    assert total["exact_fraction"] == 1.0
    assert set(total["by_state"]) == {
        "new_game", "level_select", "new_life", "new_life_2", "pause", "play", "end_life",
        "warp", "end_wave", "level_entry",
    }  # fmt: skip


@pytest.mark.parametrize("address", [0x40, 0x200, 0x2DF, 0x3AC])
def test_one_wrong_byte_is_found(address: int, tmp_path: Path) -> None:
    with np.load(RECORDINGS[0]) as data:
        arrays: dict[str, Any] = {key: data[key] for key in data.files}
    tick = int(np.flatnonzero(arrays["ram"][:, 0] == m.STATE_PLAY)[100])
    arrays["ram"][tick + 1, address] ^= 0x01
    np.savez(tmp_path / "changed.npz", **arrays)
    result = verify_files([tmp_path / "changed.npz"])
    first = result["first_mismatches"][0]
    assert (first["tick"], first["address"], first["state"]) == (tick, address, "play")
    assert first["got"] ^ 0x01 == first["expected"]
    assert first["name"].split("[")[0] == m.name_of(address).split("[")[0]
    assert result["free_run"][0]["first_difference"] == tick


@pytest.mark.parametrize("change", ["missing", "extra", "other address"])
def test_random_reads_must_agree_in_number_and_place(change: str, tmp_path: Path) -> None:
    with np.load(RECORDINGS[0]) as data:
        arrays: dict[str, Any] = {key: data[key] for key in data.files}
    offsets = arrays["random_offsets"].astype(np.int64)
    play = arrays["ram"][:, 0] == m.STATE_PLAY
    fire = 0xA2CC
    tick = next(
        t
        for t in np.flatnonzero(play)
        if set(arrays["random_pc"][offsets[t] : offsets[t + 1]].tolist()) == {fire}
    )
    at = int(offsets[tick])
    if change == "other address":
        arrays["random_pc"][at] = 0x9F66
    elif change == "missing":
        arrays["random_pc"][at] = 0xC705
    else:
        for key in ("random_pc", "random_value"):
            arrays[key] = np.insert(arrays[key], at, arrays[key][at])
        arrays["random_offsets"] = offsets + (np.arange(len(offsets)) > tick)
    np.savez(tmp_path / "changed.npz", **arrays)
    result = verify_files([tmp_path / "changed.npz"])
    assert result["exact_ticks"] < result["ticks"]
    assert result["first_mismatches"][0]["tick"] == tick


@pytest.mark.parametrize("cut", ["half", "empty", "deeper", "floats"])
@pytest.mark.parametrize(
    "key",
    ["seen_spin", "random_value", "random_pc", "random_offsets", "io_addr", "io_pc", "io_value",
     "io_write", "io_offsets"],
)  # fmt: skip
def test_arrays_that_do_not_fit_are_refused(key: str, cut: str, tmp_path: Path) -> None:
    select = next(path for path in RECORDINGS if path.stem.startswith("level30"))
    with np.load(select) as data:
        arrays: dict[str, Any] = {name: data[name] for name in data.files}
    array = arrays[key]
    arrays[key] = {
        "half": array[: len(array) // 2],
        "empty": array[:0],
        "deeper": array[:, None],
        "floats": array.astype(np.float32),
    }[cut]
    np.savez(tmp_path / "changed.npz", **arrays)
    with pytest.raises(RecordingError, match=r"changed\.npz: array"):
        load_recording(tmp_path / "changed.npz")


def test_offsets_out_of_order_are_refused(tmp_path: Path) -> None:
    with np.load(RECORDINGS[0]) as data:
        arrays: dict[str, Any] = {name: data[name] for name in data.files}
    arrays["random_offsets"][100] = 10**6
    np.savez(tmp_path / "changed.npz", **arrays)
    with pytest.raises(RecordingError, match="does not divide"):
        load_recording(tmp_path / "changed.npz")


def test_files_that_are_no_recordings_are_refused(tmp_path: Path) -> None:
    text = tmp_path / "text.npz"
    text.write_text("not a zip")
    other = tmp_path / "other.npz"
    np.savez(other, ram=np.zeros((4, 2048), np.uint8))
    whole = RECORDINGS[0].read_bytes()
    half = tmp_path / "half.npz"
    half.write_bytes(whole[: len(whole) // 2])
    for path in (text, other, half, tmp_path / "absent.npz"):
        with pytest.raises(RecordingError, match=path.name):
            load_recording(path)

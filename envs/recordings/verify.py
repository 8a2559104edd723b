"""Recordings of the real machine against the simulator: tick by tick, and free-running.

Tick by tick, each recorded image is advanced by one tick and compared with the next recorded
one.  Free-running, the simulator starts from a game's first image and is given only controls
and random bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.arcade.level_select import choose_level, move_cursor
from tempest_agent.envs.arcade.player import player_alive
from tempest_agent.envs.arcade.tick import tick
from tempest_agent.envs.machine import memory as m
from tempest_agent.envs.machine.compiled import int64, kernel, rule
from tempest_agent.envs.machine.memory import Ram
from tempest_agent.envs.machine.randomness import TAPE_DTYPE

from .recording import NOT_READ, Recording, load_recording

WELL_SHAPE_CELL = 0x112
"""On the level-select screen the display writes into this cell."""

FIRST_MISMATCHES = 20


@rule
def _apply_controls(ram: Ram, spin: int, latched: int, held: int) -> None:
    if spin != NOT_READ:
        ram.spinner_accum = spin & 0xFF
    if latched != NOT_READ:
        ram.buttons_latched = latched
    if held != NOT_READ:
        ram.buttons_now = held


@rule
def _load_tape(
    tape: Any,
    value: NDArray[np.uint8],
    address: NDArray[np.uint16],
    first: int,
    end: int,
) -> None:
    tape.length = end - first
    tape.position = 0
    tape.wrong = 0
    for i in range(end - first):
        tape.value[i] = value[first + i]
        tape.address[i] = address[first + i]


@rule
def _after_tick(ram: Ram, tape: Any, state_before: int, cursor: int, override: int) -> None:
    """Repeat what display and recorder did to the machine in a level-select tick."""
    if state_before != m.STATE_LEVEL_SELECT and state_before != m.STATE_NEW_GAME:
        return
    if ram.game_state == m.STATE_LEVEL_SELECT:
        if cursor != NOT_READ:
            ram.spinner_accum = cursor & 0xFF
            move_cursor(ram)
    elif override >= 0:
        choose_level(ram, tape, override, int64(ram.start_bonus_index[0]))


@rule
def _recorder_pokes(ram: Ram, play_ticks: int, lives_poke: int, clear_every: int) -> None:
    """Repeat the recorder's writes at the start of a play tick, before the image was taken."""
    if ram.game_state != m.STATE_PLAY:
        return
    if lives_poke > ram.lives[0]:
        ram.lives[0] = lives_poke
    if clear_every > 0 and play_ticks % clear_every == clear_every - 1 and player_alive(ram):
        ram.enemies_in_well = 0
        ram.enemies_on_rim = 0
        ram.queue_count = 0
        for kind in range(5):
            ram.kind_count[kind] = 0
        for i in range(m.QUEUE_SLOTS):
            ram.queue_depth[i] = 0
        for slot in range(m.ENEMY_SLOTS):
            ram.enemy_depth[slot] = 0


@kernel
def _compare_ticks(
    images: NDArray[np.void],
    recorded: NDArray[np.uint8],
    work: NDArray[np.void],
    work_bytes: NDArray[np.uint8],
    tape: NDArray[np.void],
    controls: NDArray[np.int16],
    value: NDArray[np.uint8],
    address: NDArray[np.uint16],
    offset: NDArray[np.int64],
    play_ticks: NDArray[np.int64],
    pokes: NDArray[np.int64],
    addresses: NDArray[np.int64],
    wanted: NDArray[np.bool_],
    free: bool,
    found: NDArray[np.int64],
) -> int:
    """Compare every wanted tick; ``found[t]`` is the first differing address, -1 exact.

    -2 stands for a difference in the random reads alone.  With ``free`` the simulator continues
    from its own image and the comparison ends at the first difference.
    Returns the number of ticks compared.
    """
    ram = work[0]
    compared = 0
    for t in range(len(images) - 1):
        if not wanted[t]:
            if free and compared > 0:
                break
            continue
        if not free or compared == 0:
            work_bytes[:] = recorded[t]
        _apply_controls(ram, controls[t, 0], controls[t, 1], controls[t, 2])
        _load_tape(tape[0], value, address, offset[t], offset[t + 1])
        state = int64(ram.game_state)
        tick(ram, tape[0])
        _after_tick(ram, tape[0], state, controls[t, 3], pokes[0])
        _recorder_pokes(ram, play_ticks[t + 1], pokes[1], pokes[2])
        compared += 1
        found[t] = -1
        if tape[0].wrong != 0 or tape[0].position != tape[0].length:
            found[t] = -2
        in_select = m.STATE_LEVEL_SELECT in (state, int64(ram.game_state))
        for a in addresses:
            if work_bytes[a] != recorded[t + 1, a] and not (in_select and a == WELL_SHAPE_CELL):
                found[t] = a
                break
        if free and found[t] != -1:
            break
    return compared


def _run(
    recording: Recording, wanted: NDArray[np.bool_], free: bool
) -> tuple[int, NDArray[np.int64], NDArray[np.uint8]]:
    """Return compared ticks, ``found`` (see ``_compare_ticks``) and the simulator's last image."""
    work = np.zeros(1, m.RAM_DTYPE)
    work_bytes = m.as_bytes(work)[0]
    found = np.full(len(recording.ram), -1, np.int64)
    is_play = (recording.ram[:, 0x00] == m.STATE_PLAY) & ((recording.ram[:, 0x05] & 0xC0) == 0xC0)
    played_before = np.concatenate([[0], np.cumsum(is_play)])[:-1]
    compared = _compare_ticks(
        m.from_bytes(recording.ram),
        recording.ram,
        work,
        work_bytes,
        np.zeros(1, TAPE_DTYPE),
        np.stack(
            [recording.spin, recording.latched, recording.held, recording.cursor], axis=1
        ).astype(np.int16),
        recording.random_value,
        recording.random_address,
        recording.random_offset,
        played_before,
        np.array([recording.level_override, recording.lives_poke, recording.clear_every]),
        m.CONTRACT_ADDRESSES,
        wanted,
        free,
        found,
    )
    return compared, found, work_bytes


def _games(recording: Recording) -> list[tuple[int, int]]:
    """Return the first and one-past-last covered tick of each game in the recording."""
    covered = np.concatenate([[False], recording.in_game[:-1], [False]])
    edges = np.flatnonzero(covered[1:] != covered[:-1])
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _mismatch(recording: Recording, tick_: int, address: int) -> dict[str, Any]:
    wanted = np.zeros(len(recording.ram), np.bool_)
    wanted[tick_] = True
    _, _, image = _run(recording, wanted, free=False)
    after = recording.ram[tick_ + 1]
    return {
        "file": recording.name,
        "tick": tick_,
        "state": m.STATE_NAMES.get(int(recording.ram[tick_, 0]), "unknown"),
        "address": address if address >= 0 else None,
        "name": m.name_of(address) if address >= 0 else "random reads",
        "expected": int(after[address]) if address >= 0 else None,
        "got": int(image[address]) if address >= 0 else None,
    }


def verify_recording(recording: Recording) -> dict[str, Any]:
    """Compare one recording; return the keys of ``verify_files``."""
    wanted = recording.in_game
    wanted[-1] = False
    _, found, _ = _run(recording, wanted, free=False)
    exact = wanted & (found == -1)
    by_state: dict[str, dict[str, int]] = {}
    for state in np.unique(recording.ram[wanted, 0x00]):
        of_state = recording.ram[:, 0x00] == state
        by_state[m.STATE_NAMES[int(state)]] = {
            "ticks": int((wanted & of_state).sum()),
            "exact": int((exact & of_state).sum()),
        }
    wrong = np.flatnonzero(wanted & (found != -1))[:FIRST_MISMATCHES]
    free_run = []
    for first, end in _games(recording):
        game = np.zeros(len(recording.ram), np.bool_)
        game[first:end] = True
        compared, free_found, _ = _run(recording, game, free=True)
        differing = np.flatnonzero(free_found != -1)
        free_run.append(
            {
                "file": recording.name,
                "ticks": compared,
                "first_difference": int(differing[0]) if len(differing) else None,
            }
        )
    return {
        "ticks": int(wanted.sum()),
        "exact_ticks": int(exact.sum()),
        "ticks_not_covered": int(len(recording.ram) - 1 - wanted.sum()),
        "by_state": by_state,
        "first_mismatches": [_mismatch(recording, int(t), int(found[t])) for t in wrong],
        "free_run": free_run,
    }


def verify_files(paths: Sequence[str | Path]) -> dict[str, Any]:
    """Compare recordings with the simulator.

    Returns ``ticks``, ``exact_ticks``, ``exact_fraction`` (over ticks in states that the rules
    cover), ``ticks_not_covered``, ``by_state``, ``first_mismatches`` and ``free_run``.
    Raises ``RecordingError`` for a file that is no recording.
    """
    total: dict[str, Any] = {
        "ticks": 0, "exact_ticks": 0, "exact_fraction": None, "ticks_not_covered": 0,
        "by_state": {}, "first_mismatches": [], "free_run": [],
    }  # fmt: skip
    for path in paths:
        part = verify_recording(load_recording(path))
        for key in ("ticks", "exact_ticks", "ticks_not_covered"):
            total[key] += part[key]
        for state, counts in part["by_state"].items():
            sums = total["by_state"].setdefault(state, {"ticks": 0, "exact": 0})
            sums["ticks"] += counts["ticks"]
            sums["exact"] += counts["exact"]
        room = FIRST_MISMATCHES - len(total["first_mismatches"])
        total["first_mismatches"] += part["first_mismatches"][:room]
        total["free_run"] += part["free_run"]
    if total["ticks"]:
        total["exact_fraction"] = total["exact_ticks"] / total["ticks"]
    return total

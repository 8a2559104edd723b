"""Recordings of the real machine against the simulator: tick by tick, and free-running.

A recording holds the machine's RAM at the start of every tick, what the game read from its
controls, and every random byte it drew.  Tick by tick, each recorded image is carried on by one
tick and compared with the next recorded one.  Free-running, the simulator starts from a game's
first image and gets nothing but controls and random bytes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import memory as m
from .compiled import int64, kernel, rule
from .level_select import choose_level, move_cursor
from .memory import Ram
from .player import player_alive
from .randomness import TAPE_DTYPE, TAPE_SIZE
from .tick import tick

NOT_READ = -999
"""Marks a control that the game did not read in a tick."""

_NOT_PLAY = np.array(
    [0xC705, *range(0xCDA2, 0xCDAE), *range(0xAE20, 0xAE34), *range(0xA66C, 0xA69D)], np.uint16
)
"""Addresses of random reads that belong to the display, to checks or to the firework."""

CURSOR_READ = 0xADCF
SPINNER_CELL = 0x50
WELL_SHAPE_CELL = 0x112
"""On the level-select screen the display writes into this cell."""

FIRST_MISMATCHES = 20

_COVERED = np.zeros(256, np.bool_)
_COVERED[
    [
        m.STATE_NEW_GAME,
        m.STATE_NEW_LIFE,
        m.STATE_PLAY,
        m.STATE_END_LIFE,
        m.STATE_PAUSE,
        m.STATE_END_WAVE,
        m.STATE_LEVEL_SELECT,
        m.STATE_LEVEL_ENTRY,
        m.STATE_NEW_LIFE_2,
        m.STATE_WARP,
    ]
] = True


class RecordingError(ValueError):
    """A file that is no recording this project can read."""


@dataclass(frozen=True)
class Recording:
    """One recording, its random bytes reduced to those that play reads."""

    name: str
    ram: NDArray[np.uint8]
    spin: NDArray[np.int16]
    latched: NDArray[np.int16]
    held: NDArray[np.int16]
    cursor: NDArray[np.int16]
    """Second read of the knob in a level-select tick, by the display; -999: none."""
    random_value: NDArray[np.uint8]
    random_address: NDArray[np.uint16]
    random_offset: NDArray[np.int64]
    level_override: int
    lives_poke: int
    clear_every: int

    @property
    def in_game(self) -> NDArray[np.bool_]:
        """Ticks of a running game, in states that the rules cover."""
        running = (self.ram[:, 0x05] & 0xC0) == 0xC0
        covered: NDArray[np.bool_] = running & _COVERED[self.ram[:, 0x00]]
        return covered


def load_recording(path: str | Path) -> Recording:
    """Read a recording; raises ``RecordingError`` with the file's name where it is none."""
    path = Path(path)
    try:
        with np.load(path, allow_pickle=False) as data:
            arrays = {key: data[key] for key in data.files}
    except (OSError, ValueError, EOFError) as error:
        raise RecordingError(f"{path}: not a readable recording (.npz): {error}") from error
    except Exception as error:  # zipfile and zlib raise their own families
        raise RecordingError(f"{path}: damaged recording: {error}") from error
    needed = {"meta", "ram", "seen_spin", "seen_latched", "seen_held", "random_value",
              "random_pc", "random_offsets", "io_addr", "io_pc", "io_value", "io_write",
              "io_offsets"}  # fmt: skip
    missing = sorted(needed - set(arrays))
    if missing:
        raise RecordingError(f"{path}: not a recording of the machine: no array {missing[0]!r}")
    ram = arrays["ram"]
    if ram.dtype != np.uint8 or ram.ndim != 2 or ram.shape[1] != m.RAM_SIZE or len(ram) < 2:
        raise RecordingError(f"{path}: array 'ram' must be uint8 of shape (ticks, 2048)")
    meta = _check_arrays(path, arrays)
    value, address, offset = _play_reads(arrays)
    if np.diff(offset).max(initial=0) > TAPE_SIZE:
        raise RecordingError(f"{path}: a tick reads more than {TAPE_SIZE} random bytes")
    override = meta.get("level_override")
    return Recording(
        name=path.name,
        ram=np.ascontiguousarray(ram),
        spin=arrays["seen_spin"],
        latched=arrays["seen_latched"],
        held=arrays["seen_held"],
        cursor=_cursor_reads(arrays, len(ram)),
        random_value=value,
        random_address=address,
        random_offset=offset,
        level_override=-1 if override is None else int(override),
        lives_poke=int(meta.get("lives_poke") or 0),
        clear_every=int(meta.get("clear_every") or 0),
    )


_EVENTS = {
    "random_offsets": ("random_value", "random_pc"),
    "io_offsets": ("io_addr", "io_pc", "io_value", "io_write"),
}
"""Arrays with an entry per event, by the array that says where each tick's events begin."""


def _check_arrays(path: Path, arrays: dict[str, Any]) -> dict[str, Any]:
    """Refuse arrays that do not fit each other; returns what ``meta`` says."""
    ticks = len(arrays["ram"])
    shapes = dict.fromkeys(("seen_spin", "seen_latched", "seen_held"), ticks)
    for offsets, events in _EVENTS.items():
        shapes[offsets] = ticks + 1
        shapes.update(dict.fromkeys(events, arrays[events[0]].size))
    for key, size in shapes.items():
        array = arrays[key]
        if array.shape != (size,) or array.dtype.kind not in "iub":
            raise RecordingError(
                f"{path}: array {key!r} is {array.dtype} of shape {array.shape}, "
                f"but {size} whole numbers are needed; the file may be cut off"
            )
    for offsets, events in _EVENTS.items():
        starts = arrays[offsets].astype(np.int64)
        in_order = (np.diff(starts) >= 0).all()
        if starts[0] != 0 or not in_order or starts[-1] != arrays[events[0]].size:
            raise RecordingError(f"{path}: array {offsets!r} does not divide {events[0]!r}")
    try:
        meta = json.loads(str(arrays["meta"]))
    except json.JSONDecodeError as error:
        raise RecordingError(f"{path}: array 'meta' is not JSON: {error}") from error
    numbers = ("level_override", "lives_poke", "clear_every")
    if not isinstance(meta, dict) or not all(
        isinstance(meta.get(key) or 0, int) for key in numbers
    ):
        raise RecordingError(f"{path}: array 'meta' must be an object with numbers in {numbers}")
    return meta


def _play_reads(
    arrays: dict[str, Any],
) -> tuple[NDArray[np.uint8], NDArray[np.uint16], NDArray[np.int64]]:
    keep = ~np.isin(arrays["random_pc"], _NOT_PLAY)
    kept_before = np.concatenate([[0], np.cumsum(keep)])
    offset = kept_before[arrays["random_offsets"].astype(np.int64)]
    return arrays["random_value"][keep], arrays["random_pc"][keep], offset


def _cursor_reads(arrays: dict[str, Any], ticks: int) -> NDArray[np.int16]:
    reads = np.flatnonzero(
        (arrays["io_addr"] == SPINNER_CELL)
        & (arrays["io_pc"] == CURSOR_READ)
        & (arrays["io_write"] == 0)
    )
    of_tick = np.searchsorted(arrays["io_offsets"].astype(np.int64), reads, side="right") - 1
    cursor = np.full(ticks, NOT_READ, np.int16)
    for before, at, tick_before, tick_at in zip(
        reads[:-1], reads[1:], of_tick[:-1], of_tick[1:], strict=True
    ):
        if tick_before == tick_at and before < at:
            cursor[tick_at] = arrays["io_value"][at]
    return cursor


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
    """What the display and the recorder did to the machine in a level-select tick."""
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
    """Writes of the recorder at the start of a play tick, before the image was taken."""
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

    -2 stands for a difference in the random reads alone.  With ``free`` the simulator goes on
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
    """Compared ticks, ``found`` (see ``_compare_ticks``) and the simulator's last image."""
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
    """First and one-past-last covered tick of each game in the recording."""
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
    """Compare one recording; the same keys as ``verify_files``."""
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

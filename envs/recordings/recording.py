"""Recordings of the real machine: what is in such a file, and whether it fits together.

A recording holds the machine's RAM at the start of every tick, what the game read from its
controls, and every random byte it drew.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.arcade.playable import IS_PLAYED, find_misfit
from tempest_agent.envs.arcade.score import LIVES_MAX
from tempest_agent.envs.archives import UNREADABLE, read_arrays
from tempest_agent.envs.machine import memory as m
from tempest_agent.envs.machine.randomness import TAPE_SIZE
from tempest_agent.envs.machine.tables import LEVELS_WITH_OWN_WAVE
from tempest_agent.envs.messages import shown
from tempest_agent.envs.plain_json import parse_json

NOT_READ = -999
"""Marks a control that the game did not read in a tick."""

MOST_TICKS = 100_000
"""Ticks of one recording, an hour of play."""

_EVENT_BYTES = 512 * MOST_TICKS
_LARGEST = {
    "meta": 100_000,
    "ram": MOST_TICKS * m.RAM_SIZE,
    **dict.fromkeys(("seen_spin", "seen_latched", "seen_held"), 8 * MOST_TICKS),
    **dict.fromkeys(("random_offsets", "io_offsets"), 8 * (MOST_TICKS + 1)),
    **dict.fromkeys(("random_value", "random_pc"), _EVENT_BYTES),
    **dict.fromkeys(("io_addr", "io_pc", "io_value", "io_write"), _EVENT_BYTES),
}
"""The arrays that are read, and the bytes that each may take: for events a hundred times what
machines send."""

_NOT_PLAY = np.array(
    [0xC705, *range(0xCDA2, 0xCDAE), *range(0xAE20, 0xAE34), *range(0xA66C, 0xA69D)], np.uint16
)
"""Addresses of random reads that belong to the display, to checks or to the firework."""

CURSOR_READ = 0xADCF
SPINNER_CELL = 0x50

_META_LIMITS = {
    "level_override": (0, LEVELS_WITH_OWN_WAVE),
    "lives_poke": (0, LIVES_MAX),
    "clear_every": (0, 2**31),
}
"""Least and greatest value of the numbers in ``meta`` that are used; null stands for none."""

_CONTROL = (-0x80, 0xFF)
_BYTE = (0, 0xFF)
_ADDRESS = (0, 0xFFFF)
_VALUE_LIMITS: dict[str, tuple[int, int]] = {
    "seen_spin": _CONTROL,
    "seen_latched": _CONTROL,
    "seen_held": _CONTROL,
    "random_value": _BYTE,
    "random_pc": _ADDRESS,
    "io_addr": _ADDRESS,
    "io_pc": _ADDRESS,
    "io_value": _BYTE,
    "io_write": _BYTE,
}
"""Least and greatest value of an array's entries, besides ``NOT_READ`` for the controls."""


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
        covered: NDArray[np.bool_] = running & IS_PLAYED[self.ram[:, 0x00]]
        return covered


def load_recording(path: str | Path) -> Recording:
    """Read a recording; raises ``RecordingError`` with the file's name where it is none."""
    path = Path(path)
    try:
        arrays = read_arrays(path, _LARGEST, 2 * _LARGEST["ram"])
    except (*UNREADABLE, MemoryError) as error:
        why = str(error) or type(error).__name__
        raise RecordingError(f"{path}: not a readable recording (.npz): {why}") from error
    missing = sorted(set(_LARGEST) - set(arrays))
    if missing:
        raise RecordingError(
            f"{path}: not a recording of the machine: no array {shown(missing[0])}"
        )
    ram = arrays["ram"]
    if arrays["meta"].shape != () or arrays["meta"].dtype.kind != "U":
        raise RecordingError(f"{path}: array 'meta' must be one text")
    if ram.dtype != np.uint8 or ram.ndim != 2 or ram.shape[1] != m.RAM_SIZE or len(ram) < 2:
        raise RecordingError(f"{path}: array 'ram' must be uint8 of shape (ticks, 2048)")
    meta = _check_arrays(path, arrays)
    value, address, offset = _play_reads(arrays)
    if np.diff(offset).max(initial=0) > TAPE_SIZE:
        raise RecordingError(f"{path}: a tick reads more than {TAPE_SIZE} random bytes")
    recording = Recording(
        name=path.name,
        ram=np.ascontiguousarray(ram),
        spin=arrays["seen_spin"].astype(np.int16),
        latched=arrays["seen_latched"].astype(np.int16),
        held=arrays["seen_held"].astype(np.int16),
        cursor=_cursor_reads(arrays, len(ram)),
        random_value=value,
        random_address=address,
        random_offset=offset,
        level_override=-1 if meta["level_override"] is None else meta["level_override"],
        lives_poke=meta["lives_poke"] or 0,
        clear_every=meta["clear_every"] or 0,
    )
    misfit = find_misfit(m.from_bytes(recording.ram), recording.in_game)
    if misfit is not None:
        tick, cell = misfit
        raise RecordingError(f"{path}: at tick {tick} {cell}, which it is in no game")
    return recording


_EVENTS = {
    "random_offsets": ("random_value", "random_pc"),
    "io_offsets": ("io_addr", "io_pc", "io_value", "io_write"),
}
"""Arrays with an entry per event, by the array of the start of each tick's events."""


def _check_arrays(path: Path, arrays: dict[str, Any]) -> dict[str, Any]:
    """Refuse arrays that do not fit each other; return what ``meta`` says."""
    ticks = len(arrays["ram"])
    shapes = dict.fromkeys(("seen_spin", "seen_latched", "seen_held"), ticks)
    for offsets, events in _EVENTS.items():
        shapes[offsets] = ticks + 1
        shapes.update(dict.fromkeys(events, arrays[events[0]].size))
    for key, size in shapes.items():
        array = arrays[key]
        if array.shape != (size,) or array.dtype.kind not in "iub":
            raise RecordingError(
                f"{path}: array {shown(key)} is {array.dtype} of shape {array.shape}, "
                f"but {size} whole numbers are needed; the file may be cut off"
            )
    for key, (low, high) in _VALUE_LIMITS.items():
        array = arrays[key]
        wrong = array[(array < low) | (array > high)]
        if key.startswith("seen"):
            wrong = wrong[wrong != NOT_READ]
        if len(wrong):
            raise RecordingError(
                f"{path}: array {shown(key)} holds {wrong[0]}, but goes from {low} to {high} only"
            )
    for offsets, events in _EVENTS.items():
        starts = arrays[offsets].astype(np.int64)
        in_order = (starts[1:] >= starts[:-1]).all()
        if starts[0] != 0 or not in_order or starts[-1] != arrays[events[0]].size:
            raise RecordingError(
                f"{path}: array {shown(offsets)} does not divide {shown(events[0])}"
            )
    return _check_meta(path, arrays["meta"])


def _check_meta(path: Path, array: NDArray[Any]) -> dict[str, int | None]:
    """Return what ``meta`` says of the recorder's own writes."""
    try:
        meta = parse_json(str(array))
    except ValueError as error:
        raise RecordingError(f"{path}: array 'meta' is not JSON: {error}") from error
    if not isinstance(meta, dict):
        raise RecordingError(f"{path}: array 'meta' is not a JSON object")
    for key, (low, high) in _META_LIMITS.items():
        value = meta.setdefault(key)
        whole = isinstance(value, int) and not isinstance(value, bool)
        if value is not None and not (whole and low <= value <= high):
            raise RecordingError(
                f"{path}: 'meta' says {key}={shown(value)}: null or a whole number from {low} "
                f"to {high} is needed"
            )
    return meta


def _play_reads(
    arrays: dict[str, Any],
) -> tuple[NDArray[np.uint8], NDArray[np.uint16], NDArray[np.int64]]:
    keep = ~np.isin(arrays["random_pc"], _NOT_PLAY)
    kept_before = np.concatenate([[0], np.cumsum(keep)])
    offset = kept_before[arrays["random_offsets"].astype(np.int64)]
    value, address = arrays["random_value"][keep], arrays["random_pc"][keep]
    return value.astype(np.uint8), address.astype(np.uint16), offset


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

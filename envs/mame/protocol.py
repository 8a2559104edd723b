"""The bridge's language: what MAME sends at every tick, and the commands it takes.

Out of MAME come messages ``"TPST" kind length payload`` (length u32, little endian):

* ``H``: protocol number (u16) and MAME's version as text, once, first of all;
* ``T``: the start of a game tick: number of the tick (u32), CPU cycles since power-on (u64),
  state of the random stream (u64, 0 when the machine draws its own bytes), number of log entries
  (u32), the RAM (2,048 bytes), the entries (``ENTRY_DTYPE``);
* ``E``: a text, and MAME ends.

Into MAME go commands ``letter length payload`` (length u16).  It obeys them in order until one of
the two that let it continue to its next tick: ``go`` (with controls for this tick) or ``carry_on``.
"""

from __future__ import annotations

import struct
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.machine.memory import BUTTON_FIRE, BUTTON_ZAP, RAM_SIZE
from tempest_agent.envs.messages import printable, shown

PROTOCOL = 1
MAGIC = b"TPST"
_HEAD = struct.Struct("<4scI")
_TICK = struct.Struct("<IQQI")
MESSAGE_MAX = 1 << 22
"""More bytes than any message has: a longer one is nonsense."""
_VERSION_MAX = 60

TICK_CELL = 0x53
BUTTONS = BUTTON_FIRE | BUTTON_ZAP
"""The bits of cells 0x4C, 0x4D and 0x4E that ``go`` sets or clears."""
RANDOM_CYCLE = 2**17 - 1
"""Clock cycles after which a POKEY's random register repeats itself."""

ENTRY_DTYPE = np.dtype(
    [
        ("kind", "S1"),
        ("address", "<u2"),
        ("pc", "<u2"),
        ("value", "u1"),
        ("written", "u1"),
        ("cycle", "<u4"),
    ]
)
"""One access of the program: ``R`` a random register, ``I`` in the interrupt handler, ``A`` any
other; ``cycle`` counts from the start of the tick."""


class ProtocolError(ValueError):
    """Bytes that are no message of the bridge."""


@dataclass(frozen=True)
class Hello:
    """The bridge's first message."""

    protocol: int
    version: str


@dataclass(frozen=True, eq=False)
class Frame:
    """The machine at the start of a game tick; ``log`` is that of the tick before."""

    tick: int
    cycle: int
    stream: int
    ram: NDArray[np.uint8]
    log: NDArray[np.void]


@dataclass(frozen=True)
class Trouble:
    """The bridge gave up; ``text`` says why."""

    text: str


Message: TypeAlias = Hello | Frame | Trouble

T = TypeVar("T")
Dialogue: TypeAlias = Generator[bytes, Frame, T]
"""A conversation with one machine: yields commands, receives the tick that they lead to."""


def parse(buffer: bytearray) -> Message | None:
    """Take the first message off ``buffer``; ``None`` while it is incomplete.

    Raises ``ProtocolError`` as soon as the bytes cannot be a message.
    """
    if not MAGIC.startswith(bytes(buffer[:4])) and not buffer.startswith(MAGIC):
        raise ProtocolError(
            f"it sent {shown(bytes(buffer[:16]))}, which is no message of the bridge"
        )
    if len(buffer) < _HEAD.size:
        return None
    _, kind, length = _HEAD.unpack_from(buffer)
    if length > MESSAGE_MAX:
        raise ProtocolError(f"it announced a message of {length:,} bytes")
    if len(buffer) < _HEAD.size + length:
        return None
    payload = bytes(buffer[_HEAD.size : _HEAD.size + length])
    del buffer[: _HEAD.size + length]
    if kind == b"T":
        return _frame(payload)
    if kind == b"H" and length >= 2:
        version = printable(payload[2:].decode("ascii", "replace"), _VERSION_MAX)
        return Hello(int.from_bytes(payload[:2], "little"), version)
    if kind == b"E":
        return Trouble(payload.decode("utf-8", "replace"))
    raise ProtocolError(f"it sent a message of the unknown kind {shown(kind)}")


def _frame(payload: bytes) -> Frame:
    if len(payload) < _TICK.size + RAM_SIZE:
        raise ProtocolError(f"it sent a tick of {len(payload)} bytes")
    tick, cycle, stream, entries = _TICK.unpack_from(payload)
    if len(payload) != _TICK.size + RAM_SIZE + entries * ENTRY_DTYPE.itemsize:
        raise ProtocolError(f"it sent a tick of {len(payload)} bytes with {entries} entries")
    ram = np.frombuffer(payload, np.uint8, RAM_SIZE, _TICK.size).copy()
    # The image is taken while the store of 0 that starts the tick is under way.
    ram[TICK_CELL] = 0
    log = np.frombuffer(payload, ENTRY_DTYPE, entries, _TICK.size + RAM_SIZE)
    return Frame(tick, cycle, stream, ram, log)


def _command(letter: bytes, payload: bytes = b"") -> bytes:
    return letter + len(payload).to_bytes(2, "little") + payload


def split(commands: bytes) -> list[tuple[bytes, bytes]]:
    """Return the letters and payloads of ``commands``, in their order."""
    found: list[tuple[bytes, bytes]] = []
    at = 0
    while at < len(commands):
        end = at + 3 + int.from_bytes(commands[at + 1 : at + 3], "little")
        found.append((commands[at : at + 1], commands[at + 3 : end]))
        at = end
    return found


def go(spin: int = 0, fire: bool = False, zap: bool = False) -> bytes:
    """Continue with these controls in this very tick, as ``inputs.set_inputs`` puts them."""
    held = BUTTON_FIRE * fire | BUTTON_ZAP * zap
    return _command(b"G", bytes([spin & 0xFF, held, BUTTON_ZAP * zap]))


def carry_on() -> bytes:
    """Continue, with the controls left alone."""
    return _command(b"C")


def write(cells: Iterable[tuple[int, int]]) -> bytes:
    """Write bytes into RAM: pairs of address and value."""
    return _command(b"W", b"".join(struct.pack("<HB", *cell) for cell in cells))


def save_state() -> bytes:
    """Save the machine's state soon after this tick's start."""
    return _command(b"S")


def load_state() -> bytes:
    """Go back to the saved state; the next tick is the first one after it."""
    return _command(b"L")


def set_switch(port: str, field: str, value: int) -> bytes:
    """Turn an operator's switch; takes effect within a video frame."""
    return _command(b"D", f"{port}\n{field}\n{value}".encode())


def set_moment(place: int) -> bytes:
    """Put the POKEYs' random registers at a place (below ``RANDOM_CYCLE``) of their cycle."""
    return _command(b"M", struct.pack("<I", place))


def use_stream(state: int) -> bytes:
    """Draw play's random bytes from the simulator's generator; 0: from the machine's POKEYs."""
    return _command(b"X", struct.pack("<Q", state))


def keep_log(on: bool) -> bytes:
    """Log what the program reads and writes."""
    return _command(b"R", bytes([on]))


def run_free(frames: int) -> bytes:
    """Run so many video frames without a tick's exchange."""
    return _command(b"F", struct.pack("<I", frames))


def leave() -> bytes:
    """End MAME."""
    return _command(b"Q")

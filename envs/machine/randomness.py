"""Where the game's random bytes come from: a stream of its own, or a recording's tape.

The machine reads two free-running shift registers whose values depend on the exact CPU cycle.
Play uses independent uniform bytes instead, from one xorshift64* generator a game.  A comparison
with the real machine replays the bytes that were recorded, and checks that the rules ask for them
at the same places in the program.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numba import from_dtype
from numba.extending import overload
from numpy.typing import NDArray

STREAM_DTYPE = np.dtype([("state", "<u8")])
"""A generator: 64 bits of state, never 0."""

Source: TypeAlias = Any
"""A record of STREAM_DTYPE or TAPE_DTYPE inside compiled code."""

TAPE_SIZE = 128
TAPE_DTYPE = np.dtype(
    [
        ("length", "<i4"),
        ("position", "<i4"),
        ("wrong", "<i4"),
        ("value", "u1", (TAPE_SIZE,)),
        ("address", "<u2", (TAPE_SIZE,)),
    ]
)
"""Recorded bytes of one tick: ``wrong`` counts reads past the end or at another address."""


def draw(source: Source, address: int) -> int:
    """Return the next byte of ``source``, 0-255; ``address`` names the reading instruction."""
    raise TypeError("draw() exists only inside compiled code")


@overload(draw, jit_options={"error_model": "numpy", "nogil": True})
def _draw(source, address):  # type: ignore[no-untyped-def]
    if source == from_dtype(STREAM_DTYPE):

        def from_stream(source, address):  # type: ignore[no-untyped-def]
            # xorshift64* (Vigna 2016, "An experimental exploration of Marsaglia's xorshift
            # generators, scrambled"); the top byte is the best mixed one.
            x = source.state
            x ^= x >> np.uint64(12)
            x ^= x << np.uint64(25)
            x ^= x >> np.uint64(27)
            source.state = x
            return np.int64((x * np.uint64(0x2545F4914F6CDD1D)) >> np.uint64(56))

        return from_stream
    if source == from_dtype(TAPE_DTYPE):

        def from_tape(source, address):  # type: ignore[no-untyped-def]
            at = source.position
            source.position = at + 1
            if at >= source.length:
                source.wrong += 1
                return np.int64(0)
            if source.address[at] != address:
                source.wrong += 1
            return np.int64(source.value[at])

        return from_tape
    return None


def new_streams(seeds: list[np.random.SeedSequence]) -> NDArray[np.void]:
    """Return one independent stream per seed sequence, shape ``(len(seeds),)``."""
    streams = np.zeros(len(seeds), STREAM_DTYPE)
    for stream, seed in zip(streams, seeds, strict=True):
        stream["state"] = seed.generate_state(1, np.uint64)[0] | np.uint64(1)
    return streams

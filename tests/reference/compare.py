"""The compiled simulator beside the plain reference: the same image, the same random bytes."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

from tempest_agent.envs.arcade import memory
from tempest_agent.envs.arcade.randomness import TAPE_DTYPE
from tempest_agent.envs.arcade.tick import tick

from .machine import Machine

COMPARED = sorted({*(int(a) for a in memory.CONTRACT_ADDRESSES), 0x4E, 0x50, 0x605})


class Pair:
    """Both machines on one image; ``tick`` carries both on and tells where they differ."""

    def __init__(self) -> None:
        self._ram = np.zeros(1, memory.RAM_DTYPE)
        self._bytes = memory.as_bytes(self._ram)[0]
        self._tape = np.zeros(1, TAPE_DTYPE)

    def tick(self, image: bytearray, rng: random.Random) -> list[str]:
        """Carry ``image`` on by one tick of the reference; differences of the simulator."""
        self._bytes[:] = np.frombuffer(image, np.uint8)
        reads: list[tuple[int, int]] = []

        def draw(address: int) -> int:
            value = rng.randrange(256)
            reads.append((address, value))
            return value

        Machine(image, draw).tick()
        tape = self._tape[0]
        tape["length"], tape["position"], tape["wrong"] = len(reads), 0, 0
        for i, (address, value) in enumerate(reads):
            tape["address"][i], tape["value"][i] = address, value
        tick(self._ram[0], tape)
        found = [
            f"{memory.name_of(a)}: rules {image[a]:#04x}, simulator {int(self._bytes[a]):#04x}"
            for a in COMPARED
            if image[a] != self._bytes[a]
        ]
        if tape["wrong"] or tape["position"] != len(reads):
            asked = [hex(address) for address, _ in reads]
            found.append(f"random reads: {tape['position']} of {asked}, {tape['wrong']} wrong")
        return found


def run(
    pair: Pair,
    image: bytearray,
    rng: random.Random,
    ticks: int,
    before: Callable[[bytearray], None],
) -> tuple[int, list[str]]:
    """Up to ``ticks`` ticks, ``before`` each; how many ran, and the first differences."""
    for done in range(ticks):
        if image[0] in (0x10, 0x14):
            return done, []
        before(image)
        start = bytes(image)
        found = pair.tick(image, rng)
        if found:
            return done, [f"tick {done}, state {start[0]:#04x}, wave {start[0x9F]}", *found[:6]]
    return ticks, []

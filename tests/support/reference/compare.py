"""The compiled simulator beside the plain reference: the same image, the same random bytes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from tempest_agent.envs.arcade.tick import tick
from tempest_agent.envs.machine import memory
from tempest_agent.envs.machine.randomness import TAPE_DTYPE

from . import cells as c
from .machine import Machine
from .programs import LABELS

COMPARED = np.unique(
    [*memory.CONTRACT_ADDRESSES, c.LATCHED, c.SPIN, c.SECOND_TIMER, c.LAST_TOP_WAVE, c.SELECT_TOP]
)
"""The contract, and what a game of these rules reads besides."""


class Pair:
    """Both machines on one image; counts the rare things that happened on the way."""

    def __init__(self) -> None:
        self._ram = np.zeros(1, memory.RAM_DTYPE)
        self._bytes = memory.as_bytes(self._ram)[0]
        self._tape = np.zeros(1, TAPE_DTYPE)
        self.ticks: Counter[int] = Counter()
        self.events: Counter[str] = Counter()

    def tick(self, image: bytearray, rng: random.Random) -> list[str]:
        """Carry ``image`` on by one tick of the reference; how the simulator differs."""
        before = bytes(image)
        self._bytes[:] = np.frombuffer(before, np.uint8)
        reads: list[tuple[int, int]] = []

        def draw(address: int) -> int:
            value = rng.randrange(256)
            reads.append((address, value))
            return value

        Machine(image, draw).tick()
        tape: Any = self._tape[0]
        tape["length"], tape["position"], tape["wrong"] = len(reads), 0, 0
        for i, (address, value) in enumerate(reads):
            tape["address"][i], tape["value"][i] = address, value
        tick(self._ram[0], tape)
        self.ticks[before[c.GAME_STATE]] += 1
        self._note(before, image, [address for address, _ in reads])
        expected = np.frombuffer(bytes(image), np.uint8)[COMPARED]
        found = [
            f"{memory.name_of(int(a))}: rules {image[a]:#04x}, simulator {self._bytes[a]:#04x}"
            for a in COMPARED[expected != self._bytes[COMPARED]]
        ]
        if tape["wrong"] or tape["position"] != len(reads):
            asked = [hex(address) for address, _ in reads]
            found.append(f"random reads: {tape['position']} of {asked}, {tape['wrong']} wrong")
        return found

    def run(
        self,
        image: bytearray,
        rng: random.Random,
        ticks: int,
        controls: Callable[[bytearray, random.Random], None],
    ) -> list[str]:
        """Up to ``ticks`` ticks, to the end of the game; the first differences."""
        for done in range(ticks):
            if image[c.GAME_STATE] == 0x10:
                break
            controls(image, rng)
            state, wave = image[c.GAME_STATE], image[c.CUR_WAVE]
            found = self.tick(image, rng)
            if found:
                return [f"tick {done}, state {state:#04x}, wave {wave}", *found[:6]]
        return []

    def _note(self, before: bytes, after: bytearray, reads: list[int]) -> None:
        if before[c.GAME_STATE] == 2:
            if before[c.QUEUE_COUNT] > 64:
                self.events["queue above 64"] += 1
            if before[c.QUEUE_COUNT] == 0:
                self.events["life with an empty queue"] += 1
        if before[c.GAME_STATE] != 4:
            return
        if 0x9A61 in reads and reads[reads.index(0x9A61) :].count(0x9ABB):
            self.events["random tanker attempt"] += 1
        if reads[-2:] == [0x9ABB, 0x9A61] or reads.count(0x9ABB) >= 2:
            self.events["tanker without cargo"] += 1
        if before[c.BOOM_COUNT] == 8:
            self.events["all explosions busy"] += 1
        if before[c.PLAYER_CCW] & 0x80 and 2 < after[c.ZAP_TIMER] < 0x20:
            self.events["superzapper while dead"] += 1
        if after[c.RIM_COUNT] > 7 or any(after[c.KIND_COUNT + t] > 7 for t in range(5)):
            self.events["count below zero"] += 1
        if after[c.SCORE + 2] < before[c.SCORE + 2]:
            self.events["score wraps"] += 1
        if after[c.LIVES] > before[c.LIVES]:
            self.events["bonus life"] += 1
        for slot in range(7):
            if before[c.DEPTH + slot] and after[c.DEPTH + slot]:
                self._note_enemy(before, after, slot)

    def _note_enemy(self, before: bytes, after: bytearray, slot: int) -> None:
        kind, kind_after = before[c.KIND + slot] & 7, after[c.KIND + slot] & 7
        turned = (before[c.FLAGS + slot] ^ after[c.FLAGS + slot]) & 0x80
        arrived = before[c.DEPTH + slot] > 0x10 and after[c.DEPTH + slot] == 0x10
        if kind == c.PULSAR and turned:
            event = "pulsar bounces" if arrived else "pulsar turns up at the potency depth"
            if before[c.QUEUE_COUNT] == 0 and not arrived:
                event = "pulsar sent up by the empty queue"
            self.events[event] += 1
        if kind == c.PULSAR and arrived and LABELS["RIM"] <= after[c.PC + slot] < 0x53:
            erased = kind_after == c.FLIPPER
            self.events["pulsar erased at the rim" if erased else "pulsar walks the rim"] += 1
        at_rim_alone = after[c.DEPTH + slot] == 0x10 and before[c.QUEUE_COUNT] == 0
        if kind == c.FUSEBALL and at_rim_alone and turned and after[c.KIND + slot] & 0x80:
            self.events["fuseball hunts at the rim"] += 1
        if kind == c.SPIKER and kind_after == c.TANKER:
            self.events["spiker becomes tanker"] += 1

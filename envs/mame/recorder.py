"""Recordings of the real machine, in the form that ``recordings/recording.py`` reads.

A recording holds, for every tick, the RAM at its start, what the game read from its controls, and
every byte it read from the POKEYs' random registers.  Each game is in it from the tick of its
first life, right after the level was chosen, to its high-score check.
"""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.engine.settings import GameSettings
from tempest_agent.envs.machine import memory as m
from tempest_agent.envs.recordings.recording import NOT_READ

from . import protocol
from .connection import MameMachine
from .game_start import GAME_STATE, switches
from .mame_batch import MameBatch
from .mame_options import MameOptions
from .protocol import ENTRY_DTYPE, Frame

FORMAT = 1
KNOB, SAMPLE, HELD, LATCHED = 0x50, 0x4C, 0x4D, 0x4E
FIRE_READ = 0xA270
"""Where the game reads whether fire is held."""

RANDOM_REGISTERS = {0x60CA: 0, 0x60DA: 1}
POT_1, POT_2, COINS = 0x60C8, 0x60D8, 0x0C00


class Recorder:
    """Listener that keeps ``ticks`` ticks of a machine's games."""

    def __init__(self, ticks: int) -> None:
        self.ticks = ticks
        self.images: list[NDArray[np.uint8]] = []
        self.cycles: list[int] = []
        self.controls: list[tuple[int, int]] = []
        self.poked: list[bool] = []
        self.logs: list[NDArray[np.void]] = []
        self._recording = False
        self._log_is_due = False
        self._state_before = -1

    @property
    def complete(self) -> bool:
        """Whether all ticks are there; the last one's log comes with the tick behind it."""
        return len(self.logs) >= self.ticks

    def hear(self, frame: Frame, commands: bytes) -> None:
        """Take a tick, and the commands that the machine is given at it."""
        if self._log_is_due:
            self.logs.append(frame.log)
            self._log_is_due = False
        state = int(frame.ram[GAME_STATE])
        if state == m.STATE_NEW_LIFE and self._state_before == m.STATE_LEVEL_SELECT:
            self._recording = True
        self._state_before = state
        if not self._recording or len(self.images) >= self.ticks:
            return
        image = frame.ram.copy()
        spin, buttons, poked = _obey(image, commands)
        self.images.append(image)
        self.cycles.append(frame.cycle)
        self.controls.append((spin, buttons))
        self.poked.append(poked)
        self._log_is_due = True
        self._recording = state != m.STATE_HIGH_SCORE_CHECK

    def arrays(self, meta: dict[str, Any]) -> dict[str, NDArray[Any]]:
        """Return the arrays of the recording; ``meta`` goes into it as JSON."""
        count = len(self.logs)
        tick = np.repeat(np.arange(count), [len(log) for log in self.logs])
        log = np.concatenate([np.zeros(0, ENTRY_DTYPE), *self.logs])
        random, other = log["kind"] == b"R", log["kind"] == b"A"
        reads = other & (log["written"] == 0)
        spins = _first_read(log, tick, reads & (log["address"] == KNOB), count)
        return {
            "meta": np.array(json.dumps({"format": FORMAT, **meta})),
            "ram": np.stack(self.images[:count]),
            "cycle": np.array(self.cycles[:count], np.uint64),
            "act_spin": np.array([spin for spin, _ in self.controls[:count]], np.int16),
            "act_buttons": np.array([pressed for _, pressed in self.controls[:count]], np.uint8),
            "poked": np.array(self.poked[:count], np.uint8),
            "seen_spin": np.where(spins >= 0x80, spins - 0x100, spins).astype(np.int16),
            "seen_latched": _first_read(log, tick, reads & (log["address"] == LATCHED), count),
            "seen_held": _first_read(
                log, tick, reads & (log["address"] == HELD) & (log["pc"] == FIRE_READ), count
            ),
            "random_value": log["value"][random],
            "random_pc": log["pc"][random],
            "random_pokey": (log["address"][random] == max(RANDOM_REGISTERS)).astype(np.uint8),
            "random_cycle": log["cycle"][random],
            "random_offsets": _offsets(tick[random], count),
            "io_addr": log["address"][other],
            "io_pc": log["pc"][other],
            "io_value": log["value"][other],
            "io_write": log["written"][other],
            "io_cycle": log["cycle"][other],
            "io_offsets": _offsets(tick[other], count),
            **_interrupts(log, tick, count),
        }


def _obey(image: NDArray[np.uint8], commands: bytes) -> tuple[int, int, bool]:
    """Apply ``commands`` to ``image``; return spin, buttons, and whether they poke."""
    spin = buttons = 0
    poked = False
    for letter, payload in protocol.split(commands):
        if letter == b"W":
            cells = np.frombuffer(payload, [("address", "<u2"), ("value", "u1")])
            image[cells["address"]] = cells["value"]
            poked = poked or len(cells) > 0
        elif letter == b"G":
            counts, held, latched = payload
            spin = counts - 0x100 if counts >= 0x80 else counts
            buttons = held | latched
            image[KNOB] = counts
            for cell, pressed in ((SAMPLE, held), (HELD, held), (LATCHED, latched)):
                image[cell] = int(image[cell]) & ~protocol.BUTTONS | pressed
    return spin, buttons, poked


def _first_read(
    log: NDArray[np.void], tick: NDArray[np.int64], chosen: NDArray[np.bool_], count: int
) -> NDArray[np.int16]:
    """Return the value of each tick's first chosen entry; ``NOT_READ`` if there is none."""
    values = np.full(count, NOT_READ, np.int16)
    ticks, first = np.unique(tick[chosen], return_index=True)
    values[ticks] = log["value"][chosen][first]
    return values


def _offsets(tick: NDArray[np.int64], count: int) -> NDArray[np.uint32]:
    return np.searchsorted(tick, np.arange(count + 1)).astype(np.uint32)


def _interrupts(
    log: NDArray[np.void], tick: NDArray[np.int64], count: int
) -> dict[str, NDArray[Any]]:
    """Return when the interrupts of each tick came, and what they read from the ports."""
    inside = log["kind"] == b"I"
    began = np.flatnonzero(inside & (log["address"] == POT_1))
    ports: dict[str, NDArray[Any]] = {
        "irq_cycle": log["cycle"][began],
        "irq_pot1": log["value"][began],
    }
    for name, address in (("irq_pot2", POT_2), ("irq_in1", COINS)):
        reads = np.flatnonzero(inside & (log["address"] == address))
        values = np.zeros(len(began), np.uint8)
        if len(reads):
            # Each interrupt reads every port once; the nearest entry is its own.
            after = np.searchsorted(reads, began).clip(0, len(reads) - 1)
            before = (after - 1).clip(0)
            nearer = np.abs(reads[before] - began) < np.abs(reads[after] - began)
            values = log["value"][np.where(nearer, reads[before], reads[after])]
        ports[name] = values
    ports["irq_offsets"] = _offsets(tick[began], count)
    return ports


class RecordingBatch(MameBatch):
    """One game whose machine is recorded.

    A machine that fails ends the recording: ``MachineError``.
    """

    def __init__(
        self, settings: GameSettings, machine: MameOptions, recorder: Recorder, observe: bool
    ) -> None:
        super().__init__(1, settings, machine, observe=observe)
        self.recorder = recorder
        self.version = ""

    def _new_machine(self) -> MameMachine:
        setup = switches(self._switches[0]) + protocol.keep_log(True)
        machine = MameMachine(self.machine, self._found_set(), setup)

        def hear(frame: Frame, commands: bytes) -> None:
            self.version = machine.version
            self.recorder.hear(frame, commands)

        machine.listener = hear
        return machine


def write_recording(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """Write ``arrays`` to ``path`` whole or not at all."""
    # A new name each time, so that there can be no link at it.
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with open(unfinished, "xb") as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)

"""Single situations of the compiled game, set up cell by cell for the tests of its tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from tempest_agent.envs.arcade.start import start_game
from tempest_agent.envs.arcade.tick import tick
from tempest_agent.envs.machine import memory as m
from tempest_agent.envs.machine.randomness import TAPE_DTYPE, new_streams
from tempest_agent.envs.machine.switches import Switches

PROGRAM = {"STRAIGHT": 0x07, "RIM": 0x42, "FUSE": 0x61, "FUSE_ROLL_WAITING": 0x6B, "PULSAR": 0x72}
AT_START_OF_FLIP = 0x11
"""Inside STEP8_FLIP, at the operation that begins the flip."""


class Stage:
    """A game at its first play tick, with the well, the queue and the shots cleared away."""

    def __init__(self, level: int = 1, seed: int = 0, **options: Any) -> None:
        self._batch = np.zeros(1, m.RAM_DTYPE)
        self._streams = new_streams([np.random.SeedSequence(seed)])
        self.ram: Any = self._batch[0]
        start_game(self.ram, self._streams[0], Switches(start_level=level, **options).record())
        self.ram["queue_count"] = 0
        self.ram["queue_depth"] = 0
        self.ram["spike_depth"] = 0
        self.hold_wave_open()

    def hold_wave_open(self) -> None:
        """Let one enemy wait far below, so that the wave does not end."""
        self.ram["queue_count"] = 1
        self.ram["queue_lane"][0] = 3
        self.ram["queue_depth"][0] = 0xFF

    def tick(self, count: int = 1, fire: bool = False, zap: bool = False) -> None:
        """Carry the game on, with the same buttons in every tick."""
        for _ in range(count):
            self.ram["spinner_accum"] = 0
            self.ram["buttons_now"] = m.BUTTON_FIRE * fire
            if zap:
                self.ram["buttons_latched"] |= m.BUTTON_ZAP
            tick(self.ram, self._streams[0])

    def tick_with(self, *reads: tuple[int, int]) -> list[bool]:
        """One tick on chosen random bytes ((address, byte) ...); whether each was read so."""
        tape = np.zeros(1, TAPE_DTYPE)
        tape[0]["length"] = len(reads)
        for i, (address, value) in enumerate(reads):
            tape[0]["address"][i], tape[0]["value"][i] = address, value
        tick(self.ram, tape[0])
        return [tape[0]["wrong"] == 0 and tape[0]["position"] > i for i in range(len(reads))]

    @property
    def score(self) -> int:
        """Six decimal digits."""
        return int("".join(f"{int(byte):02x}" for byte in self.ram["score_p1"][::-1]))

    @score.setter
    def score(self, points: int) -> None:
        for i in range(3):
            self.ram["score_p1"][i] = int(str(points // 100**i % 100), 16)

    def put_enemy(
        self, kind: int, slot: int = 6, lane: int = 5, depth: int = 0x60, cargo: int = 0
    ) -> None:
        """A live enemy that climbs straight up its lane (a fuseball: in the middle of a roll)."""
        ram = self.ram
        ram["enemy_kind"][slot] = kind
        ram["enemy_flags"][slot] = cargo
        ram["enemy_script_pc"][slot] = PROGRAM["STRAIGHT"]
        ram["enemy_depth"][slot] = depth
        ram["enemy_depth_frac"][slot] = 0
        ram["enemy_lane"][slot] = lane
        ram["enemy_lane_ccw"][slot] = (lane + 1) % 16
        ram["enemies_in_well"] += 1
        ram["kind_count"][kind] += 1
        if kind == m.FUSEBALL:
            ram["enemy_kind"][slot] = m.FUSEBALL | m.KIND_FLIPPING
            ram["enemy_lane_ccw"][slot] = 0x84
            ram["enemy_script_pc"][slot] = PROGRAM["FUSE_ROLL_WAITING"]
            ram["enemy_loop"][slot] = 3

    def put_shot(self, lane: int = 5, depth: int = 0x55, shot: int = 7) -> None:
        """A player shot in flight; by default it meets ``put_enemy``'s enemy in the next tick."""
        self.ram["player_shot_lane"][shot] = lane
        self.ram["player_shot_lane_ccw"][shot] = (lane + 1) % 16
        self.ram["player_shot_depth"][shot] = depth
        self.ram["player_shot_hits"][shot] = 0
        self.ram["player_shot_count"] += 1

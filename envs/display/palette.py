"""Colours of the monitor: sixteen entries, chosen by the level's group and by what is drawn.

The tube colour tells a player how far he is (blue, red, yellow, cyan, invisible, green); the
other entries are permuted with it, so an object's colour is an index here, never a fixed RGB.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.machine import data
from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import PLAYER_SHOT_SLOTS, Ram

WHITE = 0
CLAW = 1
TANKER = 2
FLIPPER = 3
PULSAR_OFF = 4
SPIKER = 5
WELL = 6
BLUE_TEXT = 7
SHOT_CORE = 8
SPLAT = 9  # 9, 10 and 11 take turns
NYMPH = 12

COLOURS = 16

_SHOT_CORES = np.array(((255, 243, 0), (0, 0, 243), (255, 0, 0)), np.uint8)
_SPLAT_CYCLE = np.array(((255, 243, 243), (255, 243, 0), (255, 0, 0)), np.uint8)


def _read_groups() -> NDArray[np.uint8]:
    wells = Path(data.__file__).resolve().parent / "wells.json"
    groups = json.loads(wells.read_text(encoding="utf-8"))["colour_groups"]
    table = np.full((len(groups), COLOURS, 3), (255, 243, 243), np.uint8)
    for group in groups:
        for entry in (*group["low_bank"], *group["high_bank"]):
            table[group["group"], entry["index"]] = entry["rgb"]
    return table


GROUPS: NDArray[np.uint8] = _read_groups()
"""RGB of every colour index in every group, shape (6, 16, 3)."""

_LAST_GROUP = len(GROUPS) - 1


@rule
def group_of(wave: int) -> int:
    """Return the colour group 0-5 of a 0-based level index; levels from 81 on are in the last."""
    return min((int64(wave) & 0x70) >> 4, _LAST_GROUP)


@rule
def fill_palette(ram: Ram, colours: NDArray[np.uint8]) -> None:
    """Write the sixteen RGB colours of an image into ``colours``, shape (16, 3).

    The centre of the player's shots warns when few of the eight remain; the three colours of
    the death splat change places every frame.
    """
    group = group_of(ram.cur_wave)
    shots = int64(0)
    for slot in range(PLAYER_SHOT_SLOTS):
        shots += ram.player_shot_depth[slot] != 0
    core = max(shots - 4, 0) // 2  # 0 below six, 1 for six and seven, 2 for eight
    for channel in range(3):
        for index in range(COLOURS):
            colours[index, channel] = GROUPS[group, index, channel]
        colours[SHOT_CORE, channel] = _SHOT_CORES[core, channel]
        for step in range(3):
            turn = (step + int64(ram.frame_counter)) % 3
            colours[SPLAT + step, channel] = _SPLAT_CYCLE[turn, channel]

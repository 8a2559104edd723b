"""Colours of the monitor: sixteen entries, chosen by the level's group and by what is drawn.

The tube colour tells a player how far he is (blue, red, yellow, cyan, invisible, green); the
other entries are permuted with it, so an object's colour is an index here, never a fixed RGB.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

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

_DATA = Path(__file__).resolve().parent.parent / "machine" / "data" / "wells.json"
_SHOT_CORE_FEW = (255, 243, 0)
_SHOT_CORE_MANY = (0, 0, 243)
_SHOT_CORE_FULL = (255, 0, 0)
_SPLAT_CYCLE = ((255, 243, 243), (255, 243, 0), (255, 0, 0))


def _read_groups() -> NDArray[np.uint8]:
    groups = json.loads(_DATA.read_text(encoding="utf-8"))["colour_groups"]
    table = np.full((len(groups), 16, 3), (255, 243, 243), np.uint8)
    for group in groups:
        for entry in (*group["low_bank"], *group["high_bank"]):
            table[group["group"], entry["index"]] = entry["rgb"]
    return table


GROUPS: NDArray[np.uint8] = _read_groups()
"""RGB of every colour index in every group, shape (6, 16, 3)."""


def group_of(wave: int) -> int:
    """Return the colour group 0-5 of a 0-based level index; levels from 81 on are in the last."""
    return min((wave & 0x70) >> 4, len(GROUPS) - 1)


def palette_for(wave: int, player_shots: int, frame: int) -> NDArray[np.uint8]:
    """Return the sixteen RGB colours of one frame, shape (16, 3).

    The centre of the player's shots warns when few of the eight remain; the three colours of
    the death splat change places every frame.
    """
    colours: NDArray[np.uint8] = GROUPS[group_of(wave)].copy()
    if player_shots < 6:
        colours[SHOT_CORE] = _SHOT_CORE_FEW
    elif player_shots < 8:
        colours[SHOT_CORE] = _SHOT_CORE_MANY
    else:
        colours[SHOT_CORE] = _SHOT_CORE_FULL
    for step in range(3):
        colours[SPLAT + step] = _SPLAT_CYCLE[(step + frame) % 3]
    return colours

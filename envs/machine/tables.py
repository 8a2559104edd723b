"""The machine's constant tables, as arrays that compiled code can index.

Wave parameters per difficulty and level, well shapes, start levels.  The numbers live in
``data/waves.json`` and ``data/wells.json``; units and meanings stand beside each column.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .memory import KIND_NAMES, LANES
from .programs import PROGRAM_STARTS

_DATA = Path(__file__).resolve().parent / "data"
_WAVES: dict[str, Any] = json.loads((_DATA / "waves.json").read_text("utf-8"))
_WELLS: dict[str, Any] = json.loads((_DATA / "wells.json").read_text("utf-8"))

LEVELS_WITH_OWN_WAVE = 98
"""From level index 98 (level 99) on, each set-up draws one of the levels 65 to 96."""

_CARGO = {"flippers": 1, "pulsars": 2, "fuseballs": 3}

# Columns of WAVES.
W_QUEUE = 0  # enemies waiting when the wave starts
W_SPIKE = 1  # depth of every spike's tip when the wave starts, 0 none
W_TOP_SLOT = 2  # active enemy slots - 1
W_MIN = 3  # 5 columns, kinds in order
W_MAX = 8  # 5 columns
W_SPEED_FRAC = 13  # 5 columns, two's-complement 8.8 with W_SPEED_INT
W_SPEED_INT = 18  # 5 columns
W_SHOT_SPEED_FRAC = 23
W_SHOT_SPEED_INT = 24
W_HIT_RANGE = 25  # 5 columns
W_SHOT_HIT_RANGE = 30
W_SHOT_TOP_SLOT = 31  # enemy shots at once - 1
W_FIRE_DELAY = 32  # ticks
W_FLIPPER_PROGRAM = 33
W_RIM_FLIP_STEPS = 34  # per tick
W_CARGO = 35  # 4 columns
W_PULSE_DEPTH = 39
W_PULSE_STEP = 40
W_PULSAR_FLIP_DELAY = 41  # ticks
W_PULSAR_FIRE = 42  # 0x40 or 0
W_FUSE_THRESHOLD = 43
W_FUSE_CHASE = 44  # bit 7 at the rim, bit 6 in the well
_W_COLUMNS = 45


def _wave_row(level: dict[str, Any]) -> list[int]:
    speed = level["speed_256ths_per_tick"]
    speeds = [speed[kind] & 0xFFFF for kind in KIND_NAMES]
    shot_speed = speed["enemy_shot"] & 0xFFFF
    fuse = level["fuseball"]
    pulsar = level["pulsar"]
    return [
        level["nymphs"],
        level["initial_spike_height"],
        level["active_enemy_slots"] - 1,
        *(level["min"][kind] for kind in KIND_NAMES),
        *(level["max"][kind] for kind in KIND_NAMES),
        *(value & 0xFF for value in speeds),
        *(value >> 8 for value in speeds),
        shot_speed & 0xFF,
        shot_speed >> 8,
        *(level["hit_range"][kind] for kind in KIND_NAMES),
        level["hit_range"]["enemy_shot"],
        level["enemy_shot_slots"] - 1,
        level["enemy_shot_holdoff"],
        PROGRAM_STARTS[level["flipper_program"]],
        level["rim_flip_steps_per_tick"],
        *(_CARGO[content] for content in level["tanker_content_table"]),
        pulsar["potency_depth"],
        pulsar["pulse_step"],
        pulsar["move_ticks_before_flip"],
        0x40 if pulsar["fires"] else 0,
        fuse["lane_change_threshold"],
        (0x80 if fuse["chase_at_top"] else 0) | (0x40 if fuse["chase_in_tube"] else 0),
    ]


def _merged(level: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    merged = dict(level)
    for key, value in changes.items():
        merged[key] = {**level[key], **value} if isinstance(value, dict) else value
    return merged


def _wave_table() -> NDArray[np.uint8]:
    rows = np.zeros((4, LEVELS_WITH_OWN_WAVE, _W_COLUMNS), np.uint8)
    # The two difficulty bits: 0 and 3 are medium, 1 easy, 2 hard.
    for bits, changes in enumerate(({}, _WAVES["easy_changes"], _WAVES["hard_changes"], {})):
        for index, level in enumerate(_WAVES["levels"]):
            rows[bits, index] = _wave_row(_merged(level, changes.get(str(level["level"]), {})))
    return rows


WAVES: NDArray[np.uint8] = _wave_table()
"""Wave parameters, shape (difficulty bits 4, level index 98, columns 45)."""


_BY_ID = sorted(_WELLS["wells"], key=lambda well: int(well["well_id"]))


def _per_well(key: str) -> NDArray[np.uint8]:
    return np.array([well[key] for well in _BY_ID], np.int64).astype(np.uint8)


WELL_OF_LEVEL: NDArray[np.uint8] = np.array(_WELLS["well_id_by_level_mod_16"], np.uint8)
"""Well id for level index mod 16."""

WELL_OPEN: NDArray[np.uint8] = _per_well("open") * np.uint8(0xFF)
"""0xFF where the well has two ends, by well id."""

WELL_X: NDArray[np.uint8] = _per_well("spoke_x")
WELL_Z: NDArray[np.uint8] = _per_well("spoke_z")
WELL_ANGLE: NDArray[np.uint8] = _per_well("lane_angle")
WELL_MID_X: NDArray[np.uint8] = _per_well("lane_mid_x")
WELL_MID_Z: NDArray[np.uint8] = _per_well("lane_mid_z")
WELL_EYE_HOME: NDArray[np.uint8] = _per_well("eye_depth")
"""Low byte of the resting eye depth (negative, high byte 0xFF)."""

WELL_EYE_Z: NDArray[np.uint8] = _per_well("eye_z")
WELL_SCREEN_Z: NDArray[np.int64] = np.array([well["vanish_point_z"] for well in _BY_ID], np.int64)
WELL_FLIP_SCALE: NDArray[np.float64] = np.array(
    [
        (1.0 - scale["linear"] / 256.0) * 2.0 ** (4 - scale["binary"])
        for scale in (well["flip_draw_scale"] for well in _BY_ID)
    ]
)
"""Size at which the picture of a flip is drawn, by well id."""

assert WELL_X.shape == (16, LANES)

START_LEVEL_INDEX: NDArray[np.uint8] = np.array(
    [0, 2, 4, 6, 8, 10, 12, 14, 16, 19, 21, 23, 25, 27, 30, 32, 35, 39, 43, 46, 48, 51, 55, 59, 62,
     64, 72, 80], np.uint8
)  # fmt: skip
"""Level index of each entry of the machine's level select."""

LAST_ENTRY = len(START_LEVEL_INDEX) - 1

START_BONUS: NDArray[np.int64] = np.array(
    [0, 6, 16, 32, 54, 74, 94, 114, 134, 152, 170, 188, 208, 226, 248, 266, 300, 340, 382, 415, 439,
     472, 531, 581, 624, 656, 766, 898], np.int64
) * 1000  # fmt: skip
"""Points for finishing the first wave, by entry of the level select."""

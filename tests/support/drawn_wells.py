"""RAM images to draw: scenes of the arcade machine, and wells with nothing in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from places import DATA

from tempest_agent.envs.machine import data as arcade_data
from tempest_agent.envs.machine.memory import STATE_PLAY, from_bytes

Picture = NDArray[np.uint8]

with np.load(DATA / "render_scenes.npz") as stored:
    SCENES: dict[str, Picture] = {name: stored[name] for name in stored.files}
WELLS = {
    well["well_id"]: well
    for well in json.loads((Path(arcade_data.__file__).parent / "wells.json").read_text())["wells"]
}
OBJECTS = (
    "enemy_depth", "player_shot_depth", "enemy_shot_depth", "boom_depth", "queue_depth",
    "spike_depth", "star_field", "zap_timer",
)  # fmt: skip


def record(scene: str) -> Any:
    """A writable copy of a scene."""
    return from_bytes(SCENES[scene].copy())


def empty_well(wave: int = 0, well_id: int = 0) -> Any:
    """Level ``wave`` + 1 in play on well ``well_id`` with nothing in it but the claw on lane 0."""
    ram = record("circle")
    for name in OBJECTS:
        ram[name] = 0
    well = WELLS[well_id]
    ram["game_state"] = STATE_PLAY
    ram["cur_wave"] = wave
    ram["lane_x"], ram["lane_z"] = well["spoke_x"], well["spoke_z"]
    ram["well_shape"], ram["well_open"] = well_id, 0xFF if well["open"] else 0
    ram["eye_depth_hi"], ram["eye_depth_lo"] = 0xFF, well["eye_depth"] & 0xFF
    ram["eye_depth_home"] = well["eye_depth"] & 0xFF
    ram["screen_z"] = (well["vanish_point_z"] & 0xFF, well["vanish_point_z"] >> 8 & 0xFF)
    ram["player_lane"], ram["player_lane_ccw"], ram["player_depth"] = 0, 1, 0x10
    ram["rim_pos"], ram["pulse_phase"] = 8, 0xC0
    return ram


def signed16(high: int, low: int) -> int:
    return ((high << 8 | low) + 0x8000) % 0x10000 - 0x8000


def projected(ram: Any, x: float, z: float, depth: float) -> tuple[float, float]:
    """Screen point of a world point, from the eye in the image and the table of wells."""
    eye = signed16(int(ram["eye_depth_hi"]), int(ram["eye_depth_lo"]))
    vanishing = signed16(int(ram["screen_z"][1]), int(ram["screen_z"][0]))
    factor = 128.0 / max(depth - eye, 1.0)
    eye_z = WELLS[int(ram["well_shape"])]["eye_z"]
    return (x - 128.0) * factor, (z - eye_z) * factor + vanishing

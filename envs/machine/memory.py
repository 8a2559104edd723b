"""The machine's work RAM as a NumPy record: 2,048 bytes, which are the whole state of a game.

``RAM_DTYPE`` is the memory map.  A batch of games is ``np.zeros(n, RAM_DTYPE)``, and
``batch.view(np.uint8).reshape(n, 2048)`` is the RAM of n machines, byte for byte.  Numba
compiles functions over single records (``batch[i]``), nested arrays included.

Depths: 0x10 is the rim, 0xF0 the bottom of the well, 0 an empty slot.  Names are those of the
machine's documentation; a name ending in ``_ccw`` is the neighbour towards higher lane numbers.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

RAM_SIZE = 2048

Ram: TypeAlias = Any
"""One record of ``RAM_DTYPE``; its fields are attributes only inside compiled code."""


class Cell(NamedTuple):
    """One named stretch of RAM: first address and number of bytes."""

    name: str
    address: int
    size: int = 1


CELLS: tuple[Cell, ...] = (
    Cell("game_state", 0x00),
    Cell("display_state", 0x01),
    Cell("next_state", 0x02),
    Cell("frame_counter", 0x03),
    Cell("pause_timer", 0x04),
    Cell("mode_flags", 0x05),
    Cell("credits", 0x06),
    Cell("dsw1_image", 0x09),
    Cell("dsw2_image", 0x0A),
    Cell("player_up", 0x3D),
    Cell("last_player", 0x3E),
    Cell("next_player", 0x3F),
    Cell("score_p1", 0x40, 3),
    Cell("score_p2", 0x43, 3),
    Cell("wave_index", 0x46, 2),
    Cell("lives", 0x48, 2),
    Cell("buttons_now", 0x4D),
    Cell("buttons_latched", 0x4E),
    Cell("spinner_accum", 0x50),
    Cell("rim_pos", 0x51),
    Cell("irq_since_tick", 0x53),
    Cell("eye_depth_hi", 0x5B),
    Cell("eye_depth_frac", 0x5C),
    Cell("eye_depth_home", 0x5D),
    Cell("eye_x", 0x5E),
    Cell("eye_depth_lo", 0x5F),
    Cell("eye_z", 0x60),
    Cell("screen_z", 0x68, 2),
    Cell("cur_wave", 0x9F),
    Cell("unit_distance", 0xA0),
    Cell("enemy_shot_count", 0xA6),
    Cell("shot_shot_range", 0xA7),
    Cell("pulsar_flip_delay", 0xB2),
    Cell("rim_flip_steps", 0xB3),
    Cell("start_bonus_index", 0x102, 2),
    Cell("warp_speed_frac", 0x104),
    Cell("warp_speed_int", 0x105),
    Cell("warp_flag", 0x106),
    Cell("player_depth_frac", 0x107),
    Cell("enemies_in_well", 0x108),
    Cell("enemies_on_rim", 0x109),
    Cell("script_status", 0x10C),
    Cell("well_open", 0x111),
    Cell("well_shape", 0x112),
    Cell("star_field", 0x115),
    Cell("explosion_count", 0x116),
    Cell("enemy_shot_speed_int", 0x118),
    Cell("enemy_fire_delay", 0x119),
    Cell("enemy_shot_top_slot", 0x11A),
    Cell("enemy_top_slot", 0x11C),
    Cell("enemy_shot_speed_frac", 0x120),
    Cell("screen_z_step", 0x121),
    Cell("screen_z_frac", 0x122),
    Cell("spike_flag", 0x123),
    Cell("life_flash", 0x124),
    Cell("zap_timer", 0x125),
    Cell("last_game_top_wave", 0x126),
    Cell("select_top_index", 0x127),
    Cell("kind_min", 0x129, 5),
    Cell("kind_max", 0x12E, 5),
    Cell("player_shot_count", 0x135),
    Cell("death_picture", 0x139, 4),
    Cell("kind_openings", 0x13D, 5),
    Cell("kind_count", 0x142, 5),
    Cell("pulse_step", 0x147),
    Cell("pulse_phase", 0x148),
    Cell("tanker_cargo", 0x149, 4),
    Cell("queue_claim", 0x14F),
    Cell("queue_claim_copy", 0x150),
    Cell("hit_range", 0x151, 5),
    Cell("bonus_life_interval", 0x156),
    Cell("pulse_depth", 0x157),
    Cell("lives_per_game", 0x158),
    Cell("fuse_chase", 0x159),
    Cell("spike_start_depth", 0x15A),
    Cell("queue_start_count", 0x15B),
    Cell("flipper_script", 0x15D),
    Cell("fuse_move_threshold", 0x15F),
    Cell("speed_frac", 0x160, 5),
    Cell("speed_int", 0x165, 5),
    Cell("dsw3_image", 0x16A),
    Cell("pause_mask", 0x16B),
    Cell("pulsar_fire", 0x16D),
    Cell("player_lane", 0x200),
    Cell("player_lane_ccw", 0x201),
    Cell("player_depth", 0x202),
    Cell("queue_lane", 0x203, 64),
    Cell("queue_depth", 0x243, 64),
    Cell("enemy_kind", 0x283, 7),
    Cell("enemy_flags", 0x28A, 7),
    Cell("enemy_script_pc", 0x291, 7),
    Cell("enemy_loop", 0x298, 7),
    Cell("enemy_depth_frac", 0x29F, 7),
    Cell("enemy_fire_timer", 0x2A6, 7),
    Cell("player_shot_lane", 0x2AD, 8),
    Cell("enemy_shot_lane", 0x2B5, 4),
    Cell("enemy_lane", 0x2B9, 7),
    Cell("player_shot_lane_ccw", 0x2C0, 8),
    Cell("enemy_shot_lane_ccw", 0x2C8, 4),
    Cell("enemy_lane_ccw", 0x2CC, 7),
    Cell("player_shot_depth", 0x2D3, 8),
    Cell("enemy_shot_depth", 0x2DB, 4),
    Cell("enemy_depth", 0x2DF, 7),
    Cell("enemy_shot_frac", 0x2EE, 4),
    Cell("player_shot_hits", 0x2F2, 8),
    Cell("boom_lane", 0x2FA, 8),
    Cell("boom_type", 0x302, 8),
    Cell("boom_depth", 0x30A, 8),
    Cell("boom_seq", 0x312, 8),
    Cell("projected_z_hi_spoke8", 0x382),
    Cell("spike_dirty", 0x39A, 16),
    Cell("zap_uses", 0x3AA),
    Cell("queue_count", 0x3AB),
    Cell("spike_depth", 0x3AC, 16),
    Cell("other_player_save", 0x3BC, 18),
    Cell("lane_x", 0x3CE, 16),
    Cell("lane_z", 0x3DE, 16),
    Cell("lane_angle", 0x3EE, 16),
    Cell("star_plane", 0x3FE, 8),
    Cell("lane_mid_x", 0x435, 16),
    Cell("lane_mid_z", 0x445, 16),
    Cell("select_second_timer", 0x605),
    Cell("best_score_top", 0x71D),
)


def _with_gaps_named(cells: tuple[Cell, ...]) -> tuple[Cell, ...]:
    """Return ``cells`` plus a cell for every gap between them.

    NumPy copies a record field by field, so bytes without a field would be lost on the way.
    """
    filled: list[Cell] = []
    end = 0
    for cell in (*cells, Cell("", RAM_SIZE, 0)):
        if cell.address < end:
            raise AssertionError(f"cell {cell.name} overlaps the one before it")
        if cell.address > end:
            filled.append(Cell(f"unnamed_{end:03x}", end, cell.address - end))
        filled.append(cell)
        end = cell.address + cell.size
    return tuple(filled[:-1])


_FIELDS = _with_gaps_named(CELLS)

RAM_DTYPE = np.dtype(
    {
        "names": [c.name for c in _FIELDS],
        "formats": ["u1" if c.size == 1 else ("u1", (c.size,)) for c in _FIELDS],
        "offsets": [c.address for c in _FIELDS],
        "itemsize": RAM_SIZE,
    }
)

_CONTRACT_RANGES: tuple[tuple[int, int], ...] = (
    (0x000, 0x005), (0x03D, 0x049), (0x051, 0x051), (0x05B, 0x05D), (0x05F, 0x05F),
    (0x068, 0x069), (0x09F, 0x09F), (0x0A6, 0x0A7), (0x0B2, 0x0B3), (0x102, 0x109),
    (0x111, 0x112), (0x115, 0x116), (0x118, 0x11C), (0x11F, 0x123), (0x125, 0x125),
    (0x129, 0x132), (0x135, 0x135), (0x142, 0x14C), (0x14F, 0x15B), (0x15D, 0x15D),
    (0x15F, 0x16D), (0x200, 0x319), (0x3AA, 0x405),
)  # fmt: skip
CONTRACT_ADDRESSES: NDArray[np.int64] = np.concatenate(
    [np.arange(first, last + 1) for first, last in _CONTRACT_RANGES]
)
"""Every address that a simulated tick must reproduce (classes C and K of the memory map)."""

# Game states (cell game_state), named after what the machine does in them.
STATE_NEW_GAME = 0x00
STATE_NEW_LIFE = 0x02
STATE_PLAY = 0x04
STATE_END_LIFE = 0x06
STATE_END_GAME = 0x08
STATE_PAUSE = 0x0A
STATE_END_WAVE = 0x0E
STATE_HIGH_SCORE_CHECK = 0x10
STATE_INITIALS = 0x12
STATE_HIGH_SCORES = 0x14
STATE_LEVEL_SELECT = 0x16
STATE_LEVEL_ENTRY = 0x18
STATE_LOGO = 0x1A
STATE_LEVEL_SELECT_SETUP = 0x1C
STATE_NEW_LIFE_2 = 0x1E
STATE_WARP = 0x20
STATE_SERVICE = 0x22
STATE_FIREWORK = 0x24

STATE_NAMES: dict[int, str] = {
    STATE_NEW_GAME: "new_game",
    STATE_NEW_LIFE: "new_life",
    STATE_PLAY: "play",
    STATE_END_LIFE: "end_life",
    STATE_END_GAME: "end_game",
    STATE_PAUSE: "pause",
    STATE_END_WAVE: "end_wave",
    STATE_HIGH_SCORE_CHECK: "high_score_check",
    STATE_INITIALS: "initials",
    STATE_HIGH_SCORES: "high_score_display",
    STATE_LEVEL_SELECT: "level_select",
    STATE_LEVEL_ENTRY: "level_entry",
    STATE_LOGO: "logo",
    STATE_LEVEL_SELECT_SETUP: "level_select_setup",
    STATE_NEW_LIFE_2: "new_life_2",
    STATE_WARP: "warp",
    STATE_SERVICE: "service",
    STATE_FIREWORK: "firework",
}

# Enemy kinds (cell enemy_kind, bits 0-2).
FLIPPER, PULSAR, TANKER, SPIKER, FUSEBALL = range(5)
KIND_NAMES = ("flipper", "pulsar", "tanker", "spiker", "fuseball")
KIND_MASK = 0x07
KIND_CCW = 0x40
"""enemy_kind bit 6: rotation towards higher lanes (for a fuseball: towards lower spokes)."""
KIND_FLIPPING = 0x80

# enemy_flags.
CARGO_MASK = 0x03
FLAG_MAY_FIRE = 0x40
FLAG_MOVING_DOWN = 0x80

BUTTON_ZAP = 0x08
BUTTON_FIRE = 0x10
BUTTON_START_1 = 0x20
BUTTON_START_2 = 0x40

RIM_DEPTH = 0x10
BOTTOM_DEPTH = 0xF0
MODE_IN_GAME = 0x80
MODE_RUNNING = 0x40

ENEMY_SLOTS = 7
PLAYER_SHOT_SLOTS = 8
ENEMY_SHOT_SLOTS = 4
BOOM_SLOTS = 8
QUEUE_SLOTS = 64
LANES = 16
OPEN_LANES = LANES - 1
"""Lanes of a well with two ends."""


def byte_table(values: ArrayLike, rest: int, dtype: DTypeLike = np.int64) -> NDArray[Any]:
    """Return ``values`` as a constant table, filled up with ``rest`` to 256 entries.

    Compiled code checks no index; a table with an entry for every byte needs no check.  Where the
    machine would read beyond its table, other parts of its ROM, this one gives ``rest``.
    """
    table = np.full(256, rest, dtype)
    table[: np.size(values)] = values
    return table


def name_of(address: int) -> str:
    """Return the name of the cell at ``address``, with its index where the cell is an array."""
    for cell in CELLS:
        if cell.address <= address < cell.address + cell.size:
            return cell.name if cell.size == 1 else f"{cell.name}[{address - cell.address}]"
    return f"0x{address:04X}"


def as_bytes(ram: NDArray[np.void]) -> NDArray[np.uint8]:
    """Return the records of ``ram`` as bytes, shape ``ram.shape + (2048,)``, without copying."""
    return ram.view(np.uint8).reshape(*ram.shape, RAM_SIZE)


def from_bytes(images: NDArray[np.uint8]) -> NDArray[np.void]:
    """Return the bytes of shape ``(..., 2048)`` as records of shape ``(...)``, without copying."""
    return np.ascontiguousarray(images).view(RAM_DTYPE)[..., 0]

"""Wave parameters per level and difficulty, from the table of medium values in ``waves.txt``.

Easy and hard are computed by their formulas, so that the simulator's resolved tables are checked
by another way of getting them.
"""

from __future__ import annotations

from pathlib import Path

from . import cells as c

PROGRAM_STARTS = {"ST": 0x07, "S8": 0x0B, "SP": 0x19, "SA": 0x24, "SR": 0x53, "AV": 0x87}
CARGO_CODES = {"f": 1, "p": 2, "z": 3}

SELECT_LEVELS = (
    0, 2, 4, 6, 8, 10, 12, 14, 16, 19, 21, 23, 25, 27,
    30, 32, 35, 39, 43, 46, 48, 51, 55, 59, 62, 64, 72, 80,
)  # fmt: skip
"""Level index of each choice on the level-select screen."""

START_BONUS = (
    0, 6000, 16000, 32000, 54000, 74000, 94000, 114000, 134000, 152000, 170000, 188000, 208000,
    226000, 248000, 266000, 300000, 340000, 382000, 415000, 439000, 472000, 531000, 581000,
    624000, 656000, 766000, 898000,
)  # fmt: skip
"""Points for completing the first wave after each choice."""


def _rows() -> dict[int, list[str]]:
    text = Path(__file__).with_name("waves.txt").read_text(encoding="utf-8")
    lines = [line.split() for line in text.splitlines() if not line.startswith("#")]
    return {int(line[0]): line for line in lines}


ROWS = _rows()


def _range_of(speed: int) -> int:
    return ((255 - ((speed >> 8) & 0xFF)) + 13) >> 1


def wave_cells(level: int, difficulty: int, wave: int) -> dict[int, int]:
    """Every cell that setting up ``level`` (1-98) writes, address -> byte.

    ``difficulty``: 0 and 3 medium, 1 easy, 2 hard.  ``wave`` is the 0-based wave being played
    (98 for level 99, which borrows another level's row).
    """
    row = ROWS[level]
    speed_byte = int(row[8]) // 8 + 256
    shot_slot = int(row[15]) - 1
    queue = int(row[1])
    rim_steps = int(row[18])
    fires = row[23] == "y"
    if difficulty == 1:
        rest = 255 - speed_byte
        speed_byte += (rest >> 3) + ((rest >> 2) & 1)
        shot_slot -= 1
        if wave < 17:
            rim_steps -= 1
    elif difficulty == 2:
        speed_byte = (speed_byte + ((speed_byte >> 3) | 0xE0) + ((speed_byte >> 2) & 1)) & 0xFF
        shot_slot = min(3, shot_slot + 1)
        queue += (queue >> 3) + ((queue >> 2) & 1)
        fires = True
    speed = 8 * (speed_byte - 256)
    spiker = int(row[9])
    shot = int(row[11])
    out = {
        c.QUEUE_START: queue,
        c.SPIKE_START: int(row[2], 16),
        c.ENEMY_TOP_SLOT: 6,
        c.SHOT_SPEED_LO: shot & 0xFF,
        c.SHOT_SPEED_HI: (shot >> 8) & 0xFF,
        c.SHOT_SHOT_RANGE: _range_of(shot),
        c.SHOT_TOP_SLOT: shot_slot,
        c.FIRE_DELAY: int(row[16]),
        c.FLIPPER_PROGRAM: PROGRAM_STARTS[row[17]],
        c.RIM_STEPS: rim_steps,
        c.POTENCY: int(row[20], 16),
        c.PULSE_STEP: int(row[21]),
        c.PULSAR_MOVES: int(row[22]),
        c.PULSAR_FIRE: 0x40 if fires else 0,
        c.FUSE_THRESHOLD: int(row[24]),
        c.FUSE_CHASE: (0x80 if row[26] == "y" else 0) | (0x40 if row[25] == "y" else 0),
    }
    speeds = (speed, -352, speed, spiker, 2 * speed)
    ranges = (_range_of(speed), _range_of(speed), _range_of(speed), _range_of(spiker), 6)
    for kind in range(5):
        low, high = row[3 + kind].split("-")
        out[c.KIND_MIN + kind] = int(low)
        out[c.KIND_MAX + kind] = int(high)
        out[c.SPEED_LO + kind] = speeds[kind] & 0xFF
        out[c.SPEED_HI + kind] = (speeds[kind] >> 8) & 0xFF
        out[c.HIT_RANGE + kind] = ranges[kind]
    for i, letter in enumerate(row[19]):
        out[c.CARGO + i] = CARGO_CODES[letter]
    return out

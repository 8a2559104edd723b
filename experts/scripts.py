"""Addresses of the movement programs as they stand in ``enemy_script_pc`` between two ticks.

An address is that of the step after the HALT that ended the last tick.
"""

from __future__ import annotations

STRAIGHT, STRAIGHT_END = 0x07, 0x0B
STEP8_MOVING, STEP8_FLIPPING = 0x0F, 0x13
RIM, RIM_END = 0x42, 0x53
"""An enemy whose address lies in here is a rim walker, whatever its kind says."""
RIM_WAITING = 0x46
FUSE, FUSE_MOVED = 0x61, 0x64
FUSE_ROLL_STEPPED, FUSE_ROLL_WAITING = 0x67, 0x6B
PULSAR, PULSAR_MOVED, PULSAR_LINGERS = 0x72, 0x76, 0x7D

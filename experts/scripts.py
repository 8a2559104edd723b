"""Addresses of the movement programs as they stand in ``enemy_script_pc`` between two ticks.

An address is that of the step after the HALT that ended the last tick.
"""

from __future__ import annotations

from tempest_agent.envs.arcade.programs import P_PULSAR, P_RIM, P_SPIKE_RIDER

STRAIGHT, STRAIGHT_END = 0x07, 0x0B
STEP8_MOVING, STEP8_FLIPPING = 0x0F, 0x13
RIM, RIM_END = P_RIM, P_SPIKE_RIDER
"""An enemy whose address lies in here is a rim walker, whatever its kind says."""
RIM_WAITING = 0x46
FUSE_ROLL_WAITING = 0x6B
PULSAR_STARTS, PULSAR_MOVED, PULSAR_LINGERS = P_PULSAR, 0x76, 0x7D

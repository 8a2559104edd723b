"""Addresses of the movement programs as they stand in ``enemy_script_pc`` between two ticks.

An address is that of the step after the HALT that ended the last tick.
"""

from __future__ import annotations

from tempest_agent.envs.machine.programs import P_PULSAR, P_STEP8_FLIP, P_STRAIGHT

STRAIGHT, STRAIGHT_END = P_STRAIGHT, P_STEP8_FLIP
STEP8_MOVING, STEP8_FLIPPING = 0x0F, 0x13
RIM_WAITING = 0x46
PULSAR_STARTS, PULSAR_MOVED, PULSAR_LINGERS = P_PULSAR, 0x76, 0x7D

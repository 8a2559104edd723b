"""The player: turning the claw, firing, dying."""

from __future__ import annotations

from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.inputs import SPINNER_MAX
from tempest_agent.envs.machine.memory import BUTTON_FIRE, PLAYER_SHOT_SLOTS, Ram
from tempest_agent.envs.machine.randomness import Source

from .collisions import collide_shot
from .explosions import BOOM_GRAB, BOOM_PLAYER, start_explosion

OPEN_RIM_END = 0xEF
"""Last position along the rim of an open well (lane 14)."""

DEAD_VISIBLE = 0x80
DEAD_HIDDEN = 0x81


@rule
def player_alive(ram: Ram) -> bool:
    """Return whether the player lives: bit 7 of the second lane byte marks a dead one."""
    return (ram.player_lane_ccw & 0x80) == 0


@rule
def move_player(ram: Ram) -> None:
    """Turn the claw by the knob's counts since the last tick, at most 31."""
    if not player_alive(ram):
        return
    turn = int64(ram.spinner_accum)
    if turn >= 0x80:
        turn -= 0x100
    turn = min(max(turn, -SPINNER_MAX), SPINNER_MAX)
    ram.spinner_accum = 0
    position = int64(ram.rim_pos) - turn
    if ram.well_open != 0:
        position = min(max(position, 0), OPEN_RIM_END)
    else:
        position &= 0xFF
    ram.rim_pos = position
    ram.player_lane = position >> 4
    ram.player_lane_ccw = ((position >> 4) + 1) & 0x0F


@rule
def fire(ram: Ram, source: Source) -> None:
    """Launch a shot while the button is held and a slot is free, and test it at once."""
    if not player_alive(ram) or (ram.buttons_now & BUTTON_FIRE) == 0:
        return
    for shot in range(PLAYER_SHOT_SLOTS - 1, -1, -1):
        if ram.player_shot_depth[shot] == 0:
            ram.player_shot_depth[shot] = ram.player_depth
            ram.player_shot_lane[shot] = ram.player_lane
            ram.player_shot_lane_ccw[shot] = ram.player_lane_ccw
            ram.player_shot_hits[shot] = 0
            ram.player_shot_count += 1
            collide_shot(ram, source, shot)
            return


PICTURE_SHOT = 0
PICTURE_ELECTRIFIED = 8
PICTURE_BURNT = 10
"""First picture of the death animation, by cause; only the display looks at it."""


@rule
def kill_player(ram: Ram, picture: int) -> None:
    """Kill by a shot, a pulsar, a fuseball or a spike: the ship bursts."""
    ram.death_picture[2] = picture
    start_explosion(ram, BOOM_PLAYER, ram.player_lane, ram.player_depth)
    ram.player_lane_ccw = DEAD_HIDDEN


@rule
def grab_player(ram: Ram) -> None:
    """Kill in the arms of a rim walker: the ship stays visible."""
    start_explosion(ram, BOOM_GRAB, ram.player_lane, ram.player_depth)
    ram.player_lane_ccw = DEAD_VISIBLE

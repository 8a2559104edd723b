"""The dive through the well to the next level."""

from __future__ import annotations

from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import BOTTOM_DEPTH, STATE_END_WAVE, Ram
from tempest_agent.envs.machine.randomness import Source

from .analysis import analyze
from .explosions import advance_explosions
from .player import PICTURE_ELECTRIFIED, fire, kill_player, move_player, player_alive
from .shots import clear_shots, move_shots
from .star_field import start_star_field

STARS_FROM_DEPTH = 0x50


@rule
def warp(ram: Ram, source: Source) -> None:
    ram.spike_flag &= 0x7F
    move_player(ram)
    if player_alive(ram):
        fall(ram)
    advance_explosions(ram)
    fire(ram, source)
    move_shots(ram)
    if not player_alive(ram):
        analyze(ram)


@rule
def fall(ram: Ram) -> None:
    """Fall for one tick, accelerating, the eye behind the player, spikes in the lane deadly."""
    speed = (int64(ram.warp_speed_int) << 8) | int64(ram.warp_speed_frac)
    depth = ((int64(ram.player_depth) << 8) | int64(ram.player_depth_frac)) + speed
    ram.player_depth_frac = depth & 0xFF
    depth >>= 8
    if depth >= BOTTOM_DEPTH:
        ram.game_state = STATE_END_WAVE
        depth = int64(0xFF)
    ram.player_depth = depth
    if depth >= STARS_FROM_DEPTH and ram.star_field == 0:
        start_star_field(ram)
    eye = (int64(ram.eye_depth_hi) << 16) | (int64(ram.eye_depth_lo) << 8)
    eye = (eye | int64(ram.eye_depth_frac)) + speed
    ram.eye_depth_hi = (eye >> 16) & 0xFF
    ram.eye_depth_lo = (eye >> 8) & 0xFF
    ram.eye_depth_frac = eye & 0xFF
    speed += 0x20 + min(0x30, (4 * int64(ram.cur_wave)) & 0xFF)
    ram.warp_speed_int = (speed >> 8) & 0xFF
    ram.warp_speed_frac = speed & 0xFF
    if depth < BOTTOM_DEPTH:
        tip = int64(ram.spike_depth[ram.player_lane])
        if 0 < tip < depth:
            kill_player(ram, PICTURE_ELECTRIFIED)
            ram.star_field = 0
            clear_shots(ram)

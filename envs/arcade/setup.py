"""Setting up: the well, the wave's parameters, a new life, a new wave."""

from __future__ import annotations

from tempest_agent.envs.machine import tables as t
from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import ENEMY_SLOTS, LANES, RIM_DEPTH, Ram
from tempest_agent.envs.machine.randomness import Source, draw

from .explosions import clear_explosions
from .shots import clear_shots
from .waiting_queue import refill_queue

EYE_START_HI = 0xFA
FIRST_LANE = 0x0E
PULSE_OFF = 0xFF
FIRST_RANDOM_WAVE = 64
"""Level index of the first of the 32 levels among which level 99 draws."""


@rule
def set_up_wave_tables(ram: Ram, source: Source) -> None:
    """Read every parameter of the current level and difficulty."""
    wave = int64(ram.cur_wave)
    if wave >= t.LEVELS_WITH_OWN_WAVE:
        wave = FIRST_RANDOM_WAVE + (draw(source, 0x92CB) & 0x1F)
    row = t.WAVES[int64(ram.dsw3_image) & 0x03, wave]
    ram.queue_start_count = row[t.W_QUEUE]
    ram.spike_start_depth = row[t.W_SPIKE]
    ram.enemy_top_slot = row[t.W_TOP_SLOT]
    for kind in range(5):
        ram.kind_min[kind] = row[t.W_MIN + kind]
        ram.kind_max[kind] = row[t.W_MAX + kind]
        ram.speed_frac[kind] = row[t.W_SPEED_FRAC + kind]
        ram.speed_int[kind] = row[t.W_SPEED_INT + kind]
        ram.hit_range[kind] = row[t.W_HIT_RANGE + kind]
    for entry in range(4):
        ram.tanker_cargo[entry] = row[t.W_CARGO + entry]
    ram.enemy_shot_speed_frac = row[t.W_SHOT_SPEED_FRAC]
    ram.enemy_shot_speed_int = row[t.W_SHOT_SPEED_INT]
    ram.shot_shot_range = row[t.W_SHOT_HIT_RANGE]
    ram.enemy_shot_top_slot = row[t.W_SHOT_TOP_SLOT]
    ram.enemy_fire_delay = row[t.W_FIRE_DELAY]
    ram.flipper_script = row[t.W_FLIPPER_PROGRAM]
    ram.rim_flip_steps = row[t.W_RIM_FLIP_STEPS]
    ram.pulse_depth = row[t.W_PULSE_DEPTH]
    ram.pulse_step = row[t.W_PULSE_STEP]
    ram.pulsar_flip_delay = row[t.W_PULSAR_FLIP_DELAY]
    ram.pulsar_fire = row[t.W_PULSAR_FIRE]
    ram.fuse_move_threshold = row[t.W_FUSE_THRESHOLD]
    ram.fuse_chase = row[t.W_FUSE_CHASE]


@rule
def set_up_queue_and_spikes(ram: Ram) -> None:
    ram.queue_count = ram.queue_start_count
    for lane in range(LANES):
        ram.spike_depth[lane] = ram.spike_start_depth


@rule
def set_up_well(ram: Ram, source: Source) -> int:
    """Build the shape of the player's level; return its vanishing point's screen z."""
    index = int64(ram.wave_index[ram.player_up])
    if index >= t.LEVELS_WITH_OWN_WAVE:
        index = draw(source, 0xC2EE) & 0x5F
    shape = int64(t.WELL_OF_LEVEL[index & 0x0F])
    ram.well_shape = shape
    ram.well_open = t.WELL_OPEN[shape]
    for lane in range(LANES):
        ram.lane_x[lane] = t.WELL_X[shape, lane]
        ram.lane_z[lane] = t.WELL_Z[shape, lane]
        ram.lane_angle[lane] = t.WELL_ANGLE[shape, lane]
        ram.lane_mid_x[lane] = t.WELL_MID_X[shape, lane]
        ram.lane_mid_z[lane] = t.WELL_MID_Z[shape, lane]
    home = int64(t.WELL_EYE_HOME[shape])
    ram.eye_depth_home = home
    ram.eye_depth_hi = 0xFF
    ram.eye_depth_lo = home
    ram.eye_x = 0x80
    ram.eye_z = t.WELL_EYE_Z[shape]
    ram.unit_distance = (RIM_DEPTH - home) & 0xFF
    return t.WELL_SCREEN_Z[shape]


@rule
def set_up_approach(ram: Ram, source: Source) -> None:
    """Build the well far away, and the slide of the picture that brings it near."""
    target = set_up_well(ram, source)
    current = (int64(ram.screen_z[1]) << 8) | int64(ram.screen_z[0])
    ram.screen_z_step = ((target - current) >> 4) & 0xFF


@rule
def clear_enemies(ram: Ram) -> None:
    for slot in range(ENEMY_SLOTS):
        ram.enemy_depth[slot] = 0
    ram.enemies_in_well = 0
    ram.enemies_on_rim = 0
    for kind in range(5):
        ram.kind_count[kind] = 0
    ram.pulse_phase = PULSE_OFF


@rule
def clear_field(ram: Ram, source: Source) -> None:
    """Clear shots, enemies, queue and explosions: what a new life and a new wave share."""
    clear_shots(ram)
    clear_enemies(ram)
    refill_queue(ram, source)
    clear_explosions(ram)
    ram.spinner_accum = 0
    ram.life_flash = 0xFF
    ram.spike_flag = 0


@rule
def set_up_life(ram: Ram, source: Source) -> None:
    ram.player_lane = FIRST_LANE
    ram.player_lane_ccw = FIRST_LANE + 1
    ram.rim_pos = (FIRST_LANE + 1) << 4
    ram.player_depth = RIM_DEPTH
    ram.warp_flag = 0
    set_up_wave_tables(ram, source)
    clear_field(ram, source)
    screen_z = set_up_well(ram, source)
    ram.screen_z[0] = screen_z & 0xFF
    ram.screen_z[1] = (screen_z >> 8) & 0xFF


@rule
def set_up_wave(ram: Ram, source: Source) -> None:
    set_up_wave_tables(ram, source)
    set_up_queue_and_spikes(ram)
    clear_field(ram, source)
    set_up_approach(ram, source)
    reset_superzapper(ram)
    ram.eye_depth_hi = EYE_START_HI
    ram.eye_depth_lo = 0
    ram.warp_flag = 0


@rule
def reset_superzapper(ram: Ram) -> None:
    ram.zap_uses = 0
    ram.zap_timer = 0

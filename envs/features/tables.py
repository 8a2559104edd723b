"""The numbers of the default observation, in order: name, meaning, lowest and highest value."""

from __future__ import annotations

from typing import TypeAlias

from tempest_agent.envs.forecast.table import HORIZON
from tempest_agent.envs.machine.inputs import MAX_INPUT_DELAY
from tempest_agent.envs.machine.memory import KIND_NAMES

Table: TypeAlias = list[tuple[str, str, float, float]]

_FLAG = (0, 1)
_SHARE = (0, 1)
_SIGNED = (-1, 1)

_KIND_TABLE = [
    entry
    for kind in KIND_NAMES
    for entry in (
        (kind, f"a {kind} is in this lane, neither flipping nor walking the rim", *_FLAG),
        (f"{kind}_nearness", f"nearness of the {kind} nearest to the rim", *_SHARE),
    )
]

LANE_TABLE: Table = [
    ("exists", "the well has this lane", *_FLAG),
    *_KIND_TABLE,
    (
        "nearest_fine",
        "distance to the rim of the nearest of those enemies: 1 at the rim, 1/127 at 32 units",
        *_SHARE,
    ),
    ("arrival", "soon(64) until the first climbing enemy of this lane is at the rim", *_SHARE),
    ("descending", "the nearest of those enemies is moving down", *_FLAG),
    ("crowd", "further enemies in this lane, (count - 1)/3", *_SHARE),
    ("flip_up", "an enemy flips into this lane from the lane below in number", *_FLAG),
    ("flip_up_nearness", "its nearness", *_SHARE),
    ("flip_up_ticks", "soon(16) until it has arrived", *_SHARE),
    ("flip_down", "an enemy flips into this lane from the lane above in number", *_FLAG),
    ("flip_down_nearness", "its nearness", *_SHARE),
    ("flip_down_ticks", "soon(16) until it has arrived", *_SHARE),
    ("leaving_up", "an enemy flips out of this lane towards higher numbers", *_FLAG),
    ("leaving_down", "an enemy flips out of this lane towards lower numbers", *_FLAG),
    ("flip_pulsar", "an enemy that flips into this lane is a pulsar", *_FLAG),
    ("walker_up", "a rim walker stands here and will flip towards higher numbers", *_FLAG),
    ("walker_up_ticks", "soon(4) until it starts to flip", *_SHARE),
    ("walker_down", "a rim walker stands here and will flip towards lower numbers", *_FLAG),
    ("walker_down_ticks", "soon(4) until it starts to flip", *_SHARE),
    ("pulsar_reach", "a pulsar stands here, near enough after its next move to kill", *_FLAG),
    (
        "pulsar_strike",
        "soon(32) until a pulsar, here or flipping here, kills in this lane",
        *_SHARE,
    ),
    ("roll_up", "a fuseball rolls across this lane towards higher numbers", *_FLAG),
    ("roll_up_ticks", "soon(32) until it has crossed", *_SHARE),
    ("roll_down", "a fuseball rolls across this lane towards lower numbers", *_FLAG),
    ("roll_down_ticks", "soon(32) until it has crossed", *_SHARE),
    ("roll_nearness", "nearness of the nearest fuseball that rolls across", *_SHARE),
    ("cargo_flippers", "the nearest tanker carries flippers", *_FLAG),
    ("cargo_pulsars", "the nearest tanker carries pulsars", *_FLAG),
    ("cargo_fuseballs", "the nearest tanker carries fuseballs", *_FLAG),
    ("aiming", "soon(16) until an enemy here may fire", *_SHARE),
    ("enemy_shot", "an enemy shot is in this lane", *_FLAG),
    ("enemy_shot_nearness", "nearness of the nearest", *_SHARE),
    ("enemy_shot_arrival", "soon(32) until the nearest kills at the rim; 1: next tick", *_SHARE),
    ("enemy_shots_more", "there is more than one", *_FLAG),
    ("own_shot", "a shot of the player is in this lane", *_FLAG),
    ("own_shot_nearest", "nearness of the one nearest to the rim", *_SHARE),
    ("own_shot_farthest", "nearness of the deepest", *_SHARE),
    ("spike", "a spike stands in this lane", *_FLAG),
    ("spike_nearness", "nearness of its tip", *_SHARE),
    (
        "spike_margin",
        "its tip's depth minus the player's depth, in steps of 1/127 a quarter unit; below 0 kills",
        *_SIGNED,
    ),
    ("nymph", "a nymph that no longer changes lanes waits below this lane", *_FLAG),
    ("nymph_hatch", "soon(64) until the first may hatch", *_SHARE),
    ("flip_steps", "steps of a flip between this lane and the next in number, /16", *_SHARE),
]

PROGRAM_NAMES = (
    "straight",
    "step8_flip",
    "spiral",
    "spiral_alternate",
    "spike_rider",
    "avoider",
)

GLOBAL_TABLE: Table = [
    ("alive", "the player is alive", *_FLAG),
    ("playing", "the machine is in play", *_FLAG),
    ("warping", "the player dives to the next level", *_FLAG),
    ("last_life", "no life is left after this one", *_FLAG),
    ("position", "position within the lane, -120/127 (low edge) to 120/127", *_SIGNED),
    ("well_open", "the well has two edges", *_FLAG),
    ("low_edge", "open wells: 1 at the lowest lane, 1/127 at the highest", *_SHARE),
    ("high_edge", "open wells: 1 at the highest lane, 1/127 at the lowest", *_SHARE),
    ("depth", "player's depth below the rim /224", *_SHARE),
    ("warp_speed", "speed of the dive, /24 units a tick; 0 outside the dive", *_SHARE),
    ("shots", "player's shots in flight /8", *_SHARE),
    ("shots_free", "player's shots that can still be fired /8", *_SHARE),
    ("zap_first", "the first superzapper of this level is left", *_FLAG),
    ("zap_second", "only the second is left", *_FLAG),
    ("zap_legal", "the superzapper would work now", *_FLAG),
    ("zap_running", "the superzapper is at work", *_FLAG),
    ("zap_timer", "its timer /19", *_SHARE),
    ("lives", "lives after this one /5", *_SHARE),
    ("level", "level /99", *_SHARE),
    ("level_16", "level /16, cut at 1", *_SHARE),
    ("level_48", "level /48, cut at 1", *_SHARE),
    *((f"program_{name}", f"flippers follow {name}", *_FLAG) for name in PROGRAM_NAMES),
    ("flipper_speed", "speed of flippers and tankers, /8 units a tick", *_SHARE),
    ("spiker_speed", "speed of spikers, /8 units a tick", *_SHARE),
    ("enemy_shot_speed", "speed of enemy shots, /8 units a tick", *_SHARE),
    ("rim_flip_steps", "flip steps a tick on the rim /3", *_SHARE),
    ("fire_delay", "ticks between two shots of an enemy /80", *_SHARE),
    ("enemy_shots", "enemy shots in flight /4", *_SHARE),
    ("enemy_shot_slots", "most enemy shots of this level /4", *_SHARE),
    ("fire_chance", "chance that an enemy with a clear gun fires in a tick", *_SHARE),
    ("flipper_hit_range", "hit range of flippers, tankers and pulsars /12", *_SHARE),
    ("spiker_hit_range", "hit range of spikers /12", *_SHARE),
    ("shot_hit_range", "hit range of enemy shots /12", *_SHARE),
    ("pulse_on", "pulsars kill in the next tick", *_FLAG),
    ("pulse_rising", "the pulse clock is rising", *_FLAG),
    ("pulse_phase", "the pulse clock /72", *_SIGNED),
    ("pulse_step", "its step a tick /8", *_SHARE),
    ("pulse_wait", "soon(40) until the pulse is on", *_SHARE),
    ("pulse_reach", "depth up to which a pulsar kills, /224 below the rim", *_SHARE),
    ("pulsar_move", "ticks a pulsar moves between flips /64", *_SHARE),
    ("pulsars_fire", "pulsars shoot", *_FLAG),
    ("fuse_chase_rim", "fuseballs hunt the player at the rim", *_FLAG),
    ("fuse_chase_well", "fuseballs hunt the player in the well", *_FLAG),
    ("fuse_roll_chance", "chance that a fuseball starts to roll /0.5", *_SHARE),
    ("queue_16", "nymphs waiting /16, cut at 1", *_SHARE),
    ("queue_64", "nymphs waiting /64", *_SHARE),
    ("queue_empty", "no nymph is waiting", *_FLAG),
    *((f"{name}s", f"{name}s alive /7", *_SHARE) for name in KIND_NAMES),
    ("enemies", "enemies alive /7", *_SHARE),
    ("nobody", "no enemy is alive", *_FLAG),
    ("walkers", "enemies that walk the rim /4", *_SHARE),
    ("explosions", "explosions in progress /8", *_SHARE),
    ("spikes", "lanes with a spike /16", *_SHARE),
    ("input_delay", "ticks between an action and its effect /4", *_SHARE),
    *(
        entry
        for tick in range(1, MAX_INPUT_DELAY + 1)
        for entry in (
            (f"pending_{tick}", f"an input is on its way that acts in tick {tick}", *_FLAG),
            (f"pending_{tick}_spin", "its spinner counts /31, as an action", *_SIGNED),
            (f"pending_{tick}_fire", "its fire button", *_FLAG),
            (f"pending_{tick}_zap", "its superzapper button", *_FLAG),
        )
    ),
]

FORECAST_TABLE: Table = [
    *(
        (f"deadly_{tick}", f"who is in this lane after tick {tick} dies", *_FLAG)
        for tick in range(HORIZON)
    ),
    (
        "roll_up_climbs",
        "the fuseball that first rolls across to higher numbers climbs afterwards",
        *_FLAG,
    ),
    ("roll_down_climbs", "the same of the one that rolls to lower numbers", *_FLAG),
    ("pulsar_down", "the pulsar of this lane nearest to the rim moves down", *_FLAG),
    (
        "next_flip",
        "soon(64) until an enemy of this lane starts to flip, where that is known",
        *_SHARE,
    ),
    ("next_flip_side", "where to: 1 to higher numbers, -1 to lower ones", *_SIGNED),
    (
        "flips_left",
        "flips that an enemy, here or flipping here, makes before it turns round /3",
        *_SHARE,
    ),
]

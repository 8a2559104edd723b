"""The functions that a page calls, all on addresses in one memory, with whole numbers in and out.

A game in that memory is the bytes of ``GameBatch.clone()``: RAM image, random stream, record.
``build.py`` compiles them with every rule that they use into one module.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tempest_agent.envs.arcade.player import player_alive
from tempest_agent.envs.arcade.tick import tick
from tempest_agent.envs.display.beam import (
    CAPACITY,
    COLUMNS,
    FULL_HEIGHT,
    FULL_WIDTH,
    NORMAL,
    ORIGIN_X,
    ORIGIN_Z,
    PIXELS_PER_X,
    PIXELS_PER_Z,
    SUBUNITS,
    Beam,
)
from tempest_agent.envs.display.display_list import write_display_list
from tempest_agent.envs.display.palette import COLOURS
from tempest_agent.envs.engine.game_step import (
    GAME_DTYPE,
    begin_game,
    game_over,
    play_step,
)
from tempest_agent.envs.engine.state_check import STATE_SIZE, STREAM_END
from tempest_agent.envs.features.layout import NUM_FEATURES
from tempest_agent.envs.features.observe import write_features
from tempest_agent.envs.forecast.table import TABLE_DTYPE
from tempest_agent.envs.game_state.controls import needs_no_input, zap_legal
from tempest_agent.envs.game_state.death_cause import DEATH_CAUSES
from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.inputs import FIRE, MAX_INPUT_DELAY, ZAP
from tempest_agent.envs.machine.intrinsics import array_at
from tempest_agent.envs.machine.memory import LANES, RAM_DTYPE, RAM_SIZE, Ram
from tempest_agent.envs.machine.randomness import STREAM_DTYPE, TAPE_DTYPE, Source
from tempest_agent.envs.machine.switches import SWITCHES_DTYPE
from tempest_agent.experts.scripted.decision import PLAN_DTYPE
from tempest_agent.experts.scripted.expert import decide
from tempest_agent.experts.scripted.weights import WEIGHTS_DTYPE, Weights

from .mind import draw_worth, lane_after, worth_of_plan
from .network_entry import choose_action, write_worth
from .network_memory import SCRATCH_BYTES
from .seeding import stream_state

WAITING, OVER, DEAD = 1, 2, 4
"""Bits of a tick's answer: the next tick needs no input; the game is over; the player is dead."""

NEVER = 2**62
"""A limit on ticks or steps that no game reaches."""

SIZES = (
    "game", "tape", "plan", "observation", "network_scratch", "weights", "facts", "segments",
    "observing",
)  # fmt: skip
FACTS = (
    "score", "level", "lives", "ticks", "state", "waiting", "over", "alive", "zap_legal",
    "lane", "zaps_used", "spin", "buttons", "shots", "zap_timer", "deaths",
)  # fmt: skip
"""The numbers of ``facts``, int32."""

_SEGMENTS_AT = 8 + 3 * COLOURS

_SIZES = np.array(
    [
        STATE_SIZE,
        TAPE_DTYPE.itemsize,
        PLAN_DTYPE.itemsize,
        NUM_FEATURES,
        SCRATCH_BYTES,
        WEIGHTS_DTYPE.itemsize,
        4 * len(FACTS),
        _SEGMENTS_AT + 2 * CAPACITY * COLUMNS,
        2 * MAX_INPUT_DELAY + TABLE_DTYPE.itemsize,
    ]
)

_WEIGHTS = Weights().record().view(np.uint8).reshape(-1)

VIEW = ("width", "height", "across", "up", "left", "middle", "subunits", "normal")
"""Size of the full picture; pixels of it in a screen unit; its pixel at (0, 0), from the top left;
steps in a screen unit; the brightness at which a colour is full."""

_VIEW = np.array(
    [
        *(FULL_WIDTH, FULL_HEIGHT, PIXELS_PER_X, PIXELS_PER_Z),
        *(ORIGIN_X + 0.5, ORIGIN_Z + 0.5, SUBUNITS, NORMAL),
    ],
    np.float64,
)


@rule
def ram_at(game: int) -> Ram:
    """Return the RAM image of a game."""
    return array_at(int64(game), (1,), RAM_DTYPE)[0]


@rule
def stream_at(game: int) -> Source:
    """Return the random stream of a game."""
    return array_at(int64(game) + RAM_SIZE, (1,), STREAM_DTYPE)[0]


def sizes(out: int) -> int:
    """Write the bytes that each thing of ``SIZES`` takes, int32."""
    table = array_at(int64(out), (len(_SIZES),), np.int32)
    for i in range(len(_SIZES)):
        table[i] = _SIZES[i]
    return len(_SIZES)


def seed(game: int, low: int, high: int, scratch: int) -> int:
    """Give a game the random stream of the seed ``high * 2**32 + low``."""
    word = 0xFFFFFFFF
    pool = array_at(int64(scratch), (4,), np.int64)
    stream_at(game).state = stream_state(int64(low) & word, int64(high) & word, pool)
    return 0


def begin(game: int, switches: int) -> int:
    """Start a new game with the switches (SWITCHES_DTYPE) there, up to its first tick of play."""
    record = array_at(int64(game) + STREAM_END, (1,), GAME_DTYPE)[0]
    table = array_at(int64(switches), (1,), SWITCHES_DTYPE)
    begin_game(ram_at(game), stream_at(game), record, table)
    return 0


def play(game: int, spin: int, buttons: int) -> int:
    """Play one tick with knob counts and buttons (fire + 2 * zap); the bits of what it led to."""
    ram = ram_at(game)
    record = array_at(int64(game) + STREAM_END, (1,), GAME_DTYPE)[0]
    held = int64(buttons) & (FIRE | ZAP)
    play_step(ram, stream_at(game), record, int64(spin), held, 1, False, NEVER, NEVER, 0)
    found = WAITING if needs_no_input(ram) else 0
    if game_over(ram):
        found |= OVER
    if not player_alive(ram):
        found |= DEAD
    return found


def tick_alone(ram: int, stream: int) -> int:
    """Play one tick of a RAM image that holds its controls."""
    tick(array_at(int64(ram), (1,), RAM_DTYPE)[0], array_at(int64(stream), (1,), STREAM_DTYPE)[0])
    return 0


def tick_on_tape(ram: int, tape: int) -> int:
    """Play one tick with recorded random bytes (TAPE_DTYPE)."""
    tick(array_at(int64(ram), (1,), RAM_DTYPE)[0], array_at(int64(tape), (1,), TAPE_DTYPE)[0])
    return 0


def observe(game: int, codes: int, scratch: int) -> int:
    """Write the observation of a game, int8; ``scratch`` has the size ``observing``."""
    spin = array_at(int64(scratch), (MAX_INPUT_DELAY,), np.int8)
    buttons = array_at(int64(scratch) + MAX_INPUT_DELAY, (MAX_INPUT_DELAY,), np.uint8)
    for i in range(MAX_INPUT_DELAY):
        spin[i] = 0
        buttons[i] = 0
    out = array_at(int64(codes), (NUM_FEATURES,), np.int8)
    table = array_at(int64(scratch) + 2 * MAX_INPUT_DELAY, (1,), TABLE_DTYPE)[0]
    write_features(ram_at(game), spin, buttons, 0, table, out)
    return 0


def expert_weights(out: int) -> int:
    """Write the scripted expert's weights, a WEIGHTS_DTYPE record."""
    table = array_at(int64(out), (len(_WEIGHTS),), np.uint8)
    for i in range(len(_WEIGHTS)):
        table[i] = _WEIGHTS[i]
    return 0


def ask_expert(game: int, plan: int, weights: int) -> int:
    """Return the scripted expert's action, ``counts & 0xFF | buttons << 8``; fill its plan."""
    ram = ram_at(game)
    record = array_at(int64(plan), (1,), PLAN_DTYPE)[0]
    decide(ram, ram, 0, array_at(int64(weights), (1,), WEIGHTS_DTYPE)[0], record)
    return (int64(record.spin) & 0xFF) | ((record.fire * FIRE + record.zap * ZAP) << 8)


def ask_network(codes: int, net: int, scratch: int) -> int:
    """Return a network's action for an observation, as ``observe`` writes it."""
    return choose_action(
        int64(net), int64(scratch), array_at(int64(codes), (NUM_FEATURES,), np.int8)
    )


def view(out: int) -> int:
    """Write what turns a display list into a picture, float64: the numbers of ``VIEW``."""
    table = array_at(int64(out), (len(_VIEW),), np.float64)
    for i in range(len(_VIEW)):
        table[i] = _VIEW[i]
    return len(_VIEW)


def draw(game: int, out: int) -> int:
    """Write the display list of a game; return the number of its lines.

    At ``out`` stand 8 bytes of scratch, the palette (16 x 3 bytes), then the lines.
    """
    used = array_at(int64(out), (1,), np.int64)
    colours = array_at(int64(out) + 8, (COLOURS, 3), np.uint8)
    segments = array_at(int64(out) + _SEGMENTS_AT, (CAPACITY, COLUMNS), np.int16)
    cells = array_at(int64(game), (RAM_SIZE,), np.uint8)
    record = array_at(int64(game) + STREAM_END, (1,), GAME_DTYPE)[0]
    write_display_list(ram_at(game), cells, int64(record.score), True, segments, used, colours)
    return used[0]


def draw_mind(game: int, out: int, worth: int, chances: int, chosen: int, teacher: int) -> int:
    """Add a player's thoughts to the display list that ``draw`` has written; return its length.

    ``worth``: of each lane, float64 ``(16,)``; ``chances``: whether it is a chance.  ``chosen``,
    ``teacher``: knob counts of the player's and of the teacher's action.
    """
    used = array_at(int64(out), (1,), np.int64)
    segments = array_at(int64(out) + _SEGMENTS_AT, (CAPACITY, COLUMNS), np.int16)
    values = array_at(int64(worth), (LANES,), np.float64)
    ram = ram_at(game)
    lane, other = lane_after(ram, int64(chosen)), lane_after(ram, int64(teacher))
    draw_worth(Beam(segments, used), ram, values, chances != 0, lane, other)
    return used[0]


def worth_to_network(game: int, net: int, scratch: int, worth: int) -> int:
    """Write each lane's worth, float64, to the network that has just been asked.

    Return whether these are chances that its policy goes there.
    """
    ram = ram_at(game)
    out = array_at(int64(worth), (LANES,), np.float64)
    return int64(write_worth(int64(net), int64(scratch), ram, zap_legal(ram), out))


def worth_to_expert(game: int, plan: int, worth: int) -> int:
    """Write each lane's worth, float64, to the expert that has just been asked."""
    record = array_at(int64(plan), (1,), PLAN_DTYPE)[0]
    out = array_at(int64(worth), (LANES,), np.float64)
    worth_of_plan(ram_at(game), record.value, record.danger, out)
    return 0


def facts(game: int, out: int) -> int:
    """Write the numbers of ``FACTS``."""
    ram = ram_at(game)
    record = array_at(int64(game) + STREAM_END, (1,), GAME_DTYPE)[0]
    table = array_at(int64(out), (len(FACTS),), np.int32)
    table[0] = record.score
    table[1] = int64(ram.cur_wave) + 1
    table[2] = ram.lives[0]
    table[3] = record.ticks
    table[4] = ram.game_state
    table[5] = needs_no_input(ram)
    table[6] = game_over(ram)
    table[7] = player_alive(ram)
    table[8] = zap_legal(ram)
    table[9] = ram.player_lane
    table[10] = ram.zap_uses
    table[11] = record.executed_spin
    table[12] = record.executed_buttons
    table[13] = ram.player_shot_count
    table[14] = ram.zap_timer
    deaths = int64(0)
    for cause in range(len(DEATH_CAUSES)):
        deaths += record.deaths[cause]
    table[15] = deaths
    return 0


ENTRIES: dict[Callable[..., int], int] = {
    sizes: 1, seed: 4, begin: 2, play: 3, tick_alone: 2, tick_on_tape: 2, observe: 3,
    expert_weights: 1, ask_expert: 3, ask_network: 3, view: 1, draw: 2,
    draw_mind: 6, worth_to_network: 4, worth_to_expert: 3, facts: 2,
}  # fmt: skip
"""Each function with its number of arguments, all int32."""

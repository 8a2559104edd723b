"""One step of one game, compiled: inputs, ticks, bookkeeping, observation, new games."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.arcade.player import player_alive
from tempest_agent.envs.arcade.score import SCORE_WRAP, score_of
from tempest_agent.envs.arcade.start import start_game
from tempest_agent.envs.arcade.tick import tick
from tempest_agent.envs.features.observe import write_features
from tempest_agent.envs.forecast.table import Table
from tempest_agent.envs.game_state.controls import needs_no_input, zap_legal
from tempest_agent.envs.game_state.death_cause import DEATH_CAUSES, death_cause
from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.inputs import FIRE, MAX_INPUT_DELAY, SPINNER_MAX, ZAP, set_inputs
from tempest_agent.envs.machine.memory import QUEUE_SLOTS, STATE_HIGH_SCORE_CHECK, Ram
from tempest_agent.envs.machine.randomness import Source, draw

NO_CAUSE = -1
RUNNING, TERMINATED, TRUNCATED, NOT_STARTED, LOST = range(5)
"""Values of a game's status; ``LOST``: cut because the machine that played it failed."""

GAME_DTYPE = np.dtype(
    [
        ("score", "<i8"),
        ("ticks", "<i8"),
        ("steps", "<i8"),
        ("idle_ticks", "<i8"),
        ("deaths", "<i4", (len(DEATH_CAUSES),)),
        ("wraps", "<i4"),
        ("points", "<i4"),
        ("step_idle_ticks", "<i4"),
        ("pending_spin", "i1", (MAX_INPUT_DELAY,)),
        ("pending_buttons", "u1", (MAX_INPUT_DELAY,)),
        ("executed_spin", "i1"),
        ("executed_buttons", "u1"),
        ("step_deaths", "i1"),
        ("step_death", "i1"),
        ("last_death", "i1"),
        ("status", "u1"),
    ]
)
"""Facts of one game that the machine does not keep in its RAM.

``score`` continues beyond 999,999 (``wraps`` counts the wraps).  ``ticks``, ``steps``,
``idle_ticks`` and ``deaths`` (by cause) count from the start of the game; ``points``,
``step_idle_ticks``, ``step_deaths``, ``step_death`` (the last cause or -1) and the executed inputs
are those of the last step.  ``pending_*`` are inputs that have not taken effect yet, the next one
first.
"""

Game: TypeAlias = Any
"""A record of GAME_DTYPE inside compiled code."""

IDLE_LIMIT = 2000
"""More ticks than lie between any two decisions; only a made-up image could need more."""


@rule
def choose_switches(stream: Source, switches: NDArray[np.void]) -> int:
    """Return the index of the start level of a new game, drawn if there are several."""
    if len(switches) == 1:
        return 0
    number = (draw(stream, 0) * 256 + draw(stream, 0)) * 256 + draw(stream, 0)
    return (number * len(switches)) >> 24


@rule
def begin_record(ram: Ram, game: Game) -> None:
    """Write the record of a game whose first image is ``ram``."""
    game.score = score_of(ram)
    game.ticks = 0
    game.steps = 0
    game.idle_ticks = 0
    game.wraps = 0
    game.points = 0
    game.step_idle_ticks = 0
    game.executed_spin = 0
    game.executed_buttons = 0
    game.step_deaths = 0
    game.step_death = NO_CAUSE
    game.last_death = NO_CAUSE
    game.status = RUNNING
    game.deaths[:] = 0
    game.pending_spin[:] = 0
    game.pending_buttons[:] = 0


@rule
def begin_game(ram: Ram, stream: Source, game: Game, switches: NDArray[np.void]) -> None:
    """Start a new game at one of the start levels in ``switches``."""
    start_game(ram, stream, switches[choose_switches(stream, switches)])
    _shorten_queue(ram)
    begin_record(ram, game)


@rule
def begin_step(game: Game) -> None:
    """Clear the record's fields of a single step, and count one step."""
    game.points = 0
    game.step_idle_ticks = 0
    game.step_deaths = 0
    game.step_death = NO_CAUSE
    game.steps += 1


@rule
def take_inputs(ram: Ram, game: Game, spin: int, buttons: int, input_delay: int) -> None:
    """Decide the machine's inputs of this tick, and record them as executed."""
    if input_delay > 0:
        late_spin = game.pending_spin
        late_buttons = game.pending_buttons
        last = input_delay - 1
        now_spin = int64(late_spin[0])
        now_buttons = int64(late_buttons[0])
        for i in range(last):
            late_spin[i] = late_spin[i + 1]
            late_buttons[i] = late_buttons[i + 1]
        late_spin[last] = spin
        late_buttons[last] = buttons
        spin = now_spin
        buttons = now_buttons
    zap = buttons & ZAP != 0 and zap_legal(ram)
    fire = buttons & FIRE != 0
    game.executed_spin = spin
    game.executed_buttons = (FIRE if fire else 0) | (ZAP if zap else 0)


@rule
def note_tick(ram: Ram, game: Game, score_before: int, was_alive: bool) -> None:
    """Count a tick that has just been played: points, wraps, deaths."""
    game.ticks += 1
    after = score_of(ram)
    if after != score_before:
        if after < score_before:
            game.wraps += 1
            game.points += SCORE_WRAP
        game.points += after - score_before
        game.score = game.wraps * int64(SCORE_WRAP) + after
    if was_alive and not player_alive(ram):
        cause = death_cause(ram)
        game.step_deaths += 1
        game.step_death = cause
        game.last_death = cause
        game.deaths[cause] += 1


@rule
def end_step(ram: Ram, game: Game, max_ticks: int, max_steps: int) -> None:
    """Write the status of a game after a step."""
    if game_over(ram):
        game.status = TERMINATED
    elif game.ticks >= max_ticks or game.steps >= max_steps:
        # Nothing the player could do changes the end once the last life is lost.
        lost = not player_alive(ram) and ram.lives[0] <= 1
        game.status = TERMINATED if lost else TRUNCATED


@rule
def _shorten_queue(ram: Ram) -> None:
    """Keep a level finishable.

    On the hard setting levels 96 to 98, and some games of 99, ask for 65 to 68 nymphs where the
    machine has room for 64.  It counts the missing ones all the same, and the level never ends.
    """
    if ram.queue_count > QUEUE_SLOTS:
        ram.queue_count = QUEUE_SLOTS


@rule
def _play_tick(
    ram: Ram, stream: Source, game: Game, spin: int, buttons: int, input_delay: int
) -> None:
    take_inputs(ram, game, spin, buttons, input_delay)
    before = score_of(ram)
    alive = player_alive(ram)
    executed = int64(game.executed_buttons)
    set_inputs(ram, int64(game.executed_spin), executed & FIRE != 0, executed & ZAP != 0)
    tick(ram, stream)
    _shorten_queue(ram)
    note_tick(ram, game, before, alive)


@rule
def game_over(ram: Ram) -> bool:
    """Return whether the machine has gone on to its high-score check."""
    return bool(ram.game_state == STATE_HIGH_SCORE_CHECK)


@rule
def play_step(
    ram: Ram,
    stream: Source,
    game: Game,
    spin: int,
    buttons: int,
    frame_skip: int,
    skip_idle: bool,
    max_ticks: int,
    max_steps: int,
    input_delay: int,
) -> None:
    """Play one step of one running game and update its record."""
    spin = max(-SPINNER_MAX, min(SPINNER_MAX, spin))
    begin_step(game)
    first_spin = int64(0)
    seen_buttons = int64(0)
    for repeat in range(frame_skip):
        _play_tick(ram, stream, game, spin, buttons, input_delay)
        if repeat == 0:
            first_spin = int64(game.executed_spin)
            seen_buttons = int64(game.executed_buttons)
        seen_buttons |= game.executed_buttons & ZAP
        if game_over(ram) or game.ticks >= max_ticks or (skip_idle and needs_no_input(ram)):
            break
    if skip_idle:
        idle = 0
        while (
            needs_no_input(ram)
            and not game_over(ram)
            and game.ticks < max_ticks
            and idle < IDLE_LIMIT
        ):
            _play_tick(ram, stream, game, 0, 0, input_delay)
            idle += 1
        game.step_idle_ticks = idle
        game.idle_ticks += idle
    game.executed_spin = first_spin
    game.executed_buttons = seen_buttons
    end_step(ram, game, max_ticks, max_steps)


@rule
def rest_game(game: Game) -> None:
    """Write into a finished game's record that nothing happened in this step."""
    game.points = 0
    game.step_idle_ticks = 0
    game.step_deaths = 0
    game.step_death = NO_CAUSE


@rule
def observe_game(
    ram: Ram, game: Game, input_delay: int, table: Table, out: NDArray[np.int8]
) -> None:
    """Write one game's observation codes; see ``write_features`` for ``table``."""
    write_features(ram, game.pending_spin, game.pending_buttons, input_delay, table, out)

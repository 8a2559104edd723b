"""Steps on the real machine: what the simulator's step does around its tick."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.arcade.player import player_alive
from tempest_agent.envs.arcade.score import score_of
from tempest_agent.envs.arcade.start import set_up_game
from tempest_agent.envs.engine.game_step import (
    begin_record,
    begin_step,
    choose_switches,
    end_step,
    game_over,
    note_tick,
    take_inputs,
)
from tempest_agent.envs.game_state.controls import needs_no_input
from tempest_agent.envs.machine.compiled import kernel
from tempest_agent.envs.machine.randomness import draw

OVER, IDLE = 1, 2
"""Bits that ``after_tick`` returns: the game is over; the next tick needs no input."""


@kernel
def prepare_game(
    images: NDArray[np.void], streams: NDArray[np.void], at: int, switches: NDArray[np.void]
) -> int:
    """Write into ``images[at]`` the image of a game whose level has been chosen.

    Returns 24 random bits of the stream, for what the game's start leaves to chance.
    """
    chance = (draw(streams[at], 0) * 256 + draw(streams[at], 0)) * 256 + draw(streams[at], 0)
    set_up_game(images[at], streams[at], switches[choose_switches(streams[at], switches)])
    return chance


@kernel
def prepare_simulated_game(
    images: NDArray[np.void], streams: NDArray[np.void], at: int, switches: NDArray[np.void]
) -> None:
    """Do the same, drawing from the stream exactly as the simulator's start of a game does."""
    set_up_game(images[at], streams[at], switches[choose_switches(streams[at], switches)])


@kernel
def start_record(images: NDArray[np.void], games: NDArray[np.void], at: int) -> None:
    """Write the record of a game that stands at its first play tick."""
    begin_record(images[at], games[at])


@kernel
def start_step(games: NDArray[np.void], at: int) -> None:
    """Clear the single-step fields of game ``at``'s record."""
    begin_step(games[at])


@kernel
def before_tick(
    images: NDArray[np.void],
    games: NDArray[np.void],
    at: int,
    spin: int,
    buttons: int,
    input_delay: int,
) -> None:
    """Decide the controls of the next tick; they are in the record's executed inputs."""
    take_inputs(images[at], games[at], spin, buttons, input_delay)


@kernel
def after_tick(
    before: NDArray[np.void], images: NDArray[np.void], games: NDArray[np.void], at: int
) -> int:
    """Count the tick that led from ``before[0]`` to ``images[at]``; returns OVER and IDLE bits."""
    note_tick(images[at], games[at], score_of(before[0]), player_alive(before[0]))
    return OVER * game_over(images[at]) | IDLE * needs_no_input(images[at])


@kernel
def finish_step(
    images: NDArray[np.void], games: NDArray[np.void], at: int, max_ticks: int, max_steps: int
) -> None:
    """Write game ``at``'s status after a step."""
    end_step(images[at], games[at], max_ticks, max_steps)

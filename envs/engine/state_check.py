"""Saved states that come from outside: refused in one line where no game can have been in them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.arcade.playable import find_misfit
from tempest_agent.envs.game_state.death_cause import DEATH_CAUSES
from tempest_agent.envs.machine.inputs import FIRE, SPINNER_MAX, ZAP
from tempest_agent.envs.machine.memory import RAM_SIZE, from_bytes
from tempest_agent.envs.machine.randomness import STREAM_DTYPE

from .game_step import GAME_DTYPE, LOST, NO_CAUSE, NOT_STARTED, RUNNING

STREAM_END = RAM_SIZE + STREAM_DTYPE.itemsize
STATE_SIZE = STREAM_END + GAME_DTYPE.itemsize
"""Bytes of one game's clonable state: RAM image, random stream, record."""

_LAST_CAUSE = len(DEATH_CAUSES) - 1
_LIMITS: dict[str, tuple[int, int]] = {
    # Halfway to where their types end, so that no game counts on to there.
    "score": (0, 2**62),
    "ticks": (0, 2**62),
    "steps": (0, 2**62),
    "idle_ticks": (0, 2**62),
    "deaths": (0, 2**30),
    "wraps": (0, 2**30),
    "pending_spin": (-SPINNER_MAX, SPINNER_MAX),
    "executed_spin": (-SPINNER_MAX, SPINNER_MAX),
    "executed_buttons": (0, FIRE | ZAP),
    "step_death": (NO_CAUSE, _LAST_CAUSE),
    "last_death": (NO_CAUSE, _LAST_CAUSE),
    "status": (RUNNING, LOST),
}
"""Least and greatest value of a record's fields; the others may hold anything of their type."""


def check_states(states: Any, count: int) -> NDArray[np.uint8]:
    """Return ``states`` as ``count`` rows of bytes; ``ValueError`` unless a batch can take them.

    Looks at form, records and random streams.  The images are only shown, if no rules run on them.
    """
    expected = (count, STATE_SIZE)
    if not isinstance(states, np.ndarray) or states.dtype != np.uint8 or states.shape != expected:
        kind = (
            f"of dtype {states.dtype} and shape {states.shape}"
            if isinstance(states, np.ndarray)
            else f"a {type(states).__name__}"
        )
        raise ValueError(
            f"states is {kind}, but {count} games need uint8 of shape {expected} "
            "as clone() gives it"
        )
    rows = np.ascontiguousarray(np.asarray(states))
    records = rows[:, STREAM_END:].copy().view(GAME_DTYPE)[:, 0]
    for name, (low, high) in _LIMITS.items():
        values = records[name].reshape(count, -1)
        wrong = np.argwhere((values < low) | (values > high))
        if len(wrong):
            game, place = wrong[0].tolist()
            raise _refusal(
                game, f"{name} is {values[game, place]}, but goes from {low} to {high} only"
            )
    still = ~rows[:, RAM_SIZE:STREAM_END].any(axis=1) & (records["status"] != NOT_STARTED)
    if still.any():
        raise _refusal(int(np.argmax(still)), "its random stream is 0 and would stay so")
    return rows


def check_images(states: NDArray[np.uint8]) -> None:
    """Raise ``ValueError`` if the rules cannot play on from a running game's image."""
    running = states[:, STREAM_END:].copy().view(GAME_DTYPE)["status"][:, 0] == RUNNING
    misfit = find_misfit(from_bytes(states[:, :RAM_SIZE]), running)
    if misfit is not None:
        game, cell = misfit
        raise _refusal(game, f"{cell}, which it is in no game")


def _refusal(game: int, what: str) -> ValueError:
    return ValueError(
        f"the state of game {game} is damaged: {what}; pass a state unchanged as it was cloned"
    )

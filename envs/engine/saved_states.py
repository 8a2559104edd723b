"""Saved states of games: those of ``GameBatch`` with the input delay.

Pending inputs are kept in order of arrival, so a state is valid only at the same delay.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.machine.inputs import MAX_INPUT_DELAY

from .batch import GameBatch
from .state_check import STATE_SIZE

SAVED_SIZE = 1 + STATE_SIZE
"""Bytes of one game: the input delay, then the state of ``GameBatch.clone``."""


def saved_states(batch: GameBatch) -> NDArray[np.uint8]:
    """Return the states of all games, uint8 ``(num_games, SAVED_SIZE)``."""
    states = batch.clone()
    delays = np.full((len(states), 1), batch.settings.input_delay, np.uint8)
    return np.concatenate([delays, states], axis=1)


def restore_saved(batch: GameBatch, states: NDArray[np.uint8]) -> None:
    """Restore what ``saved_states`` returned.

    Raises ``ValueError`` for arrays of another form, and for states of games with another input
    delay; the games are then unchanged.
    """
    expected = (batch.num_games, SAVED_SIZE)
    if not isinstance(states, np.ndarray) or states.dtype != np.uint8 or states.shape != expected:
        kind = (
            f"{states.dtype} of shape {states.shape}"
            if isinstance(states, np.ndarray)
            else type(states).__name__
        )
        raise ValueError(
            f"states is {kind}, but {batch.num_games} games need uint8 of shape {expected} "
            "as clone_states() returns it"
        )
    states = np.asarray(states)
    delay = batch.settings.input_delay
    others = states[states[:, 0] != delay, 0]
    if len(others) and others[0] > MAX_INPUT_DELAY:
        raise ValueError(
            f"the state is damaged: it is from input_delay={int(others[0])}, and none is above "
            f"{MAX_INPUT_DELAY}; pass a state unchanged as it was cloned"
        )
    if len(others):
        raise ValueError(
            f"the state is from an environment with input_delay={int(others[0])} and this one has "
            f"input_delay={delay}: make it with input_delay={int(others[0])}"
        )
    batch.restore(np.ascontiguousarray(states[:, 1:]))

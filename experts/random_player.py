"""A player that sees nothing: the baseline for every other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.machine.inputs import FIRE, SPINNER_MAX, ZAP

from .interface import PendingInputs, check_rows

FIRE_CHANCE = 0.5
ZAP_CHANCE = 0.02


class RandomPlayer:
    """Each tick a uniform knob count from -31 to 31, fire held half the time, a rare zap.

    One generator serves all games: the same seed and the same sequence of calls give the same
    play.
    """

    name = "random"

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._random = np.random.default_rng(seed)

    def act(
        self,
        ram: NDArray[np.void],
        pending: PendingInputs | None = None,
        games: NDArray[np.int64] | None = None,
    ) -> tuple[NDArray[np.int8], NDArray[np.uint8]]:
        """Return one decision for each of N games; see ``Teacher.act``."""
        count = len(check_rows(ram, games))
        spins = self._random.integers(-SPINNER_MAX, SPINNER_MAX + 1, count, np.int8)
        fire = self._random.random(count) < FIRE_CHANCE
        zap = self._random.random(count) < ZAP_CHANCE
        return spins, (fire * FIRE + zap * ZAP).astype(np.uint8)

    def reset(self, mask: NDArray[np.bool_] | None = None) -> None:
        """Restart the generator if all games are reset; single games have no memory."""
        if mask is None:
            self._random = np.random.default_rng(self._seed)

    def state_dict(self) -> dict[str, Any]:
        """Return the generator's state."""
        return {"random": self._random.bit_generator.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from ``state_dict()``."""
        self._random.bit_generator.state = state["random"]

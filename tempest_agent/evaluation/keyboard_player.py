"""The keyboard as a player."""

from __future__ import annotations

from typing import Final

import numpy as np

from tempest_agent.envs.engine.batch import GameBatch
from tempest_agent.evaluation.players import Actions

SPEED: Final = 12
"""Knob counts a tick while a turning key is held: three quarters of a lane."""

HOLD: Final = 6
"""Ticks for which a key counts as held: a window reports repeats but no releases."""


class Keyboard:
    """Turns the key reported by a window each tick into inputs."""

    KEYS: Final = "keys: a and d turn, space fires, f fires on and off, s superzapper, Escape ends"

    def __init__(self) -> None:
        self._spin = 0
        self._turning = 0
        self._firing = 0
        self._always = False
        self._zap = False

    def press(self, key: int) -> None:
        """Register a key (a character code, or -1 for none)."""
        character = chr(key & 0xFF).lower() if key >= 0 else ""
        self._turning = max(self._turning - 1, 0)
        self._firing = max(self._firing - 1, 0)
        self._zap = character == "s"
        if character in ("a", "d"):
            self._spin, self._turning = (SPEED if character == "a" else -SPEED), HOLD
        elif character == " ":
            self._firing = HOLD
        elif character == "f":
            self._always = not self._always

    def act(self, batch: GameBatch) -> Actions:
        """Return the inputs of this tick, for a batch of one game."""
        spin = self._spin if self._turning else 0
        fire = self._always or self._firing > 0
        return np.array([spin], np.int8), np.array([fire + 2 * self._zap], np.uint8)

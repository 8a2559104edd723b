"""What the student needs of its games: a batch that is played in lockstep and can be stored.

Anything with these methods can be trained on; the arcade's own batch is in ``tempest_games``.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tempest_agent.agent.networks.layout import Layout


class Step(NamedTuple):
    """What one decision of each of N games led to.

    A game that is over has already begun anew: ``Games.observe`` shows the new one.
    """

    reward: NDArray[np.float32]
    terminated: NDArray[np.bool_]
    """The return ends here (death or game over)."""
    truncated: NDArray[np.bool_]
    """The game was cut although it could have gone on."""
    game_over: NDArray[np.bool_]
    """A new game has begun, for either reason."""
    score: NDArray[np.int64]
    """Score of the game, the finished one where it is over."""
    spin: NDArray[np.int8]
    """Knob counts that the machine got."""
    buttons: NDArray[np.uint8]
    """Buttons that the machine got: an illegal zap is not among them."""
    final_codes: NDArray[np.int8]
    """``(N, F)``, the last observation of a truncated game; not to be read elsewhere."""
    final_zap_legal: NDArray[np.bool_]
    ticks: NDArray[np.int64] | None = None
    """Frames of the game that the decision lasted, skipped ones included; None means one each."""
    level: NDArray[np.int64] | None = None
    """Level that the game is on, the finished one's last where it is over; None is not known."""
    death_cause: NDArray[np.int8] | None = None
    """Index into ``DEATH_CAUSES`` where a life was lost, -1 elsewhere; None is not known."""

    def lost_lives(self) -> NDArray[np.bool_]:
        """Return where a life was lost, ``(N,)``, as far as the games say."""
        return self.terminated if self.death_cause is None else self.death_cause >= 0


class Games(Protocol):
    """N games side by side."""

    num_games: int
    layout: Layout

    def reset(self) -> None:
        """Begin all games anew with their next seeds."""

    def observe(self) -> NDArray[np.int8]:
        """Codes ``(N, F)`` of the present states; may be overwritten by the next step."""

    def zap_legal(self) -> NDArray[np.bool_]:
        """Whether a zap would do something, ``(N,)``."""

    def images(self) -> Any:
        """The present states as the teacher reads them (RAM images)."""

    def step(self, spin: NDArray[np.int8], buttons: NDArray[np.uint8]) -> Step:
        """Play one decision of every game."""

    def state_dict(self) -> dict[str, Any]:
        """Everything a later exact continuation needs: plain arrays and plain types."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what ``state_dict`` gave."""


@runtime_checkable
class Teacher(Protocol):
    """A teacher: a function of the states, and of what it remembers of them."""

    def act(self, images: Any) -> tuple[NDArray[np.int8], NDArray[np.uint8]]:
        """Knob counts ``(N,)`` and buttons ``(N,)``."""

    def state_dict(self) -> dict[str, Any]:
        """What it remembers: plain arrays and plain types, empty without a memory."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what ``state_dict`` gave."""

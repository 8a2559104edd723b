"""Where decisions come from: each call of ``play`` is one decision of every training game."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tempest_agent.agent.games.interface import Step
from tempest_agent.agent.learner.learner import Learner
from tempest_agent.agent.replay.plans import LateLabels
from tempest_agent.agent.replay.rows import Rows
from tempest_agent.errors import UserError

from .drivers import Drivers

Act = Callable[[NDArray[np.int8], NDArray[np.bool_]], tuple[NDArray[np.int8], NDArray[np.uint8]]]
"""Codes ``(N, F)`` and legal zaps ``(N,)`` to knob counts ``(N,)`` and buttons ``(N,)``."""


class PlayStoppedError(Exception):
    """No decision was played: the run is stopping, and the players are slow or silent."""


class PlayFailedError(UserError):
    """No decision was played, and none will be: the processes that play are gone for good.

    The learner's process has all earlier decisions, and can save them.
    """


class Abandoned(NamedTuple):
    """Games that were abandoned before they were over."""

    games: NDArray[np.bool_]
    """Which, ``(N,)``."""
    codes: NDArray[np.int8]
    """Their last observations ``(N, F)``; the rows of other games are undefined."""
    zap_legal: NDArray[np.bool_]


class Played(NamedTuple):
    """One decision of each of N games."""

    rows: Rows
    """What the replay stores."""
    step: Step
    """What the decision led to."""
    own_spin: NDArray[np.int8]
    """What the student would have done, ``(N,)``."""
    own_buttons: NDArray[np.uint8]
    abandoned: Abandoned | None = None
    """Games that were replaced by new ones before this decision; None for none."""
    late: LateLabels | None = None
    """Labels of this and earlier decisions that have arrived with it; None for none."""


class Source(Protocol):
    """Where decisions come from."""

    drivers: Drivers
    """How often each game explores, and which games are teacher-free."""

    def play(self, expert_ratio: float, epsilon_floor: float) -> Played:
        """Play the next decision of every game.

        Args:
            expert_ratio: share of new segments for the teacher.
            epsilon_floor: lower bound of the exploration rates.

        Raises:
            PlayStoppedError: nothing was played, see ``PlayedElsewhere.stop``.
            PlayFailedError: nothing was played, and nothing can be.
        """

    def abandon(self) -> Abandoned:
        """Abandon all running games; the caller is about to reset them."""

    def figures(self) -> dict[str, float]:
        """Return metrics of the playing itself since the last call."""

    def state_dict(self) -> dict[str, Any]:
        """Return what a later continuation needs: plain arrays and plain types."""

    def load_state_dict(self, state: dict[str, Any], with_games: bool) -> None:
        """Continue from ``state_dict``; without the games, if the caller is about to reset them."""


@runtime_checkable
class PlayedElsewhere(Protocol):
    """Games that other processes play."""

    def source(self, learner: Learner, drivers: Drivers) -> Source:
        """Return the source of their decisions.

        Args:
            learner: whose weights the players get.
            drivers: how often each game explores, and which are teacher-free; the players draw.
        """

    def stop(self) -> None:
        """Stop waiting for decisions; safe in a signal handler."""

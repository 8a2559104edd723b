"""The training games as they are played: each call of ``play`` is one decision of every game."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tempest_agent.agent.games.interface import Games, Labeller, Step
from tempest_agent.agent.replay.rows import EXPERT, EXPLORATION, Rows
from tempest_agent.errors import UserError

from .drivers import Drivers

if TYPE_CHECKING:
    from tempest_agent.agent.learner.learner import Learner

Act = Callable[[NDArray[np.int8], NDArray[np.bool_]], tuple[NDArray[np.int8], NDArray[np.uint8]]]
"""Codes ``(N, F)`` and legal zaps ``(N,)`` to knob counts ``(N,)`` and buttons ``(N,)``."""


class PlayStoppedError(Exception):
    """No decision was played, because the run is to end and whoever plays is slow or silent."""


class PlayFailedError(UserError):
    """No decision was played, and none will be: whoever plays is gone for good.

    The learner's process has all decisions before, and can save them.
    """


class Left(NamedTuple):
    """Games that were left before they were over."""

    games: NDArray[np.bool_]
    """Which, ``(N,)``."""
    codes: NDArray[np.int8]
    """Observations ``(N, F)`` that they were left at; those of other games are not to be read."""
    zap_legal: NDArray[np.bool_]


class Played(NamedTuple):
    """One decision of each of N games."""

    rows: Rows
    """What is to be remembered."""
    step: Step
    """What it led to."""
    own_spin: NDArray[np.int8]
    """What the student would have done, ``(N,)``."""
    own_buttons: NDArray[np.uint8]
    left: Left | None = None
    """Games that others took the place of before this decision; None is none."""


class Source(Protocol):
    """Where decisions come from."""

    drivers: Drivers
    """How often each game explores, and which are teacher-free."""

    def play(self, expert_ratio: float, epsilon_floor: float) -> Played:
        """The next decision of every game.

        Args:
            expert_ratio: share of new segments for the teacher.
            epsilon_floor: lower bound of the exploration rates.

        Raises:
            PlayStoppedError: nothing was played, see ``PlayedElsewhere.stop``.
            PlayFailedError: nothing was played, and nothing can be.
        """

    def leave(self) -> Left:
        """Leave all games, because they are about to be begun anew from outside."""

    def figures(self) -> dict[str, float]:
        """What there is to log about the playing itself since the last call."""

    def state_dict(self) -> dict[str, Any]:
        """What a later continuation needs: plain arrays and plain types."""

    def load_state_dict(self, state: dict[str, Any], with_games: bool) -> None:
        """Go on from what ``state_dict`` gave.

        Without the games they are about to be begun anew.
        """


@runtime_checkable
class PlayedElsewhere(Protocol):
    """Games that other processes play."""

    def source(self, learner: Learner, drivers: Drivers) -> Source:
        """Where their decisions come from, when the student is ``learner``'s.

        Args:
            learner: whose weights they are played with.
            drivers: how often each explores, and which are teacher-free; others draw.
        """

    def stop(self) -> None:
        """Wait for no decision any more; fit for a signal handler."""


class GamesInPlay:
    """Games played in this process.

    Args:
        games: what is played.
        act: the student's greedy action.
        teacher: drives its segments and labels every state; None leaves everything to the
            student.
        drivers: draws who drives.
    """

    def __init__(self, games: Games, act: Act, teacher: Labeller | None, drivers: Drivers) -> None:
        self.games, self.act, self.teacher, self.drivers = games, act, teacher, drivers
        self.episode_start = np.ones(games.num_games, np.bool_)

    def play(self, expert_ratio: float, epsilon_floor: float) -> Played:
        """The next decision of every game; without a teacher ``expert_ratio`` is 0."""
        games, drivers = self.games, self.drivers
        codes = games.observe()
        zap_legal = games.zap_legal()
        who = drivers.choose(expert_ratio if self.teacher else 0.0, epsilon_floor)
        own_spin, own_buttons = self.act(codes, zap_legal)
        if self.teacher:
            label_spin, label_buttons = self.teacher.act(games.images())
        else:
            label_spin, label_buttons = np.zeros_like(own_spin), np.zeros_like(own_buttons)
        explores, expert = who == EXPLORATION, who == EXPERT
        spin = np.where(explores, drivers.held_spin, np.where(expert, label_spin, own_spin))
        buttons = np.where(expert, label_buttons, own_buttons)
        buttons = np.where(explores, drivers.held_buttons, buttons)
        # The games overwrite their observation in place; the replay needs the one acted on.
        codes = codes.copy()
        step = games.step(spin.astype(own_spin.dtype), buttons.astype(np.uint8))
        rows = Rows(
            codes=codes,
            spin=step.spin,
            buttons=step.buttons,
            reward=step.reward,
            terminated=step.terminated,
            truncated=step.truncated,
            episode_start=self.episode_start,
            zap_legal=zap_legal,
            driver=who,
            label_spin=label_spin,
            label_buttons=label_buttons,
            labelled=np.full(who.size, self.teacher is not None),
            final_codes=step.final_codes,
            final_zap_legal=step.final_zap_legal,
        )
        self.episode_start = step.game_over | step.terminated
        if step.game_over.any():
            drivers.forget(step.game_over)
        return Played(rows, step, own_spin, own_buttons)

    def leave(self) -> Left:
        """Leave all games, because they are about to be begun anew from outside."""
        self.episode_start = np.ones_like(self.episode_start)
        self.drivers.forget(self.episode_start)
        return Left(self.episode_start, self.games.observe(), self.games.zap_legal())

    def figures(self) -> dict[str, float]:
        """Nothing that the decisions themselves do not say."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        return {
            "games": self.games.state_dict(),
            "drivers": self.drivers.state_dict(),
            "episode_start": self.episode_start,
        }

    def load_state_dict(self, state: dict[str, Any], with_games: bool) -> None:
        if with_games:
            self.games.load_state_dict(state["games"])
        self.drivers.load_state_dict(state["drivers"])
        self.episode_start = np.asarray(state["episode_start"]).astype(np.bool_)

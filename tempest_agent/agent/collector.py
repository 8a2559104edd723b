"""Plays the training games: one decision of every game per call, stored with who made it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .drivers import Drivers
from .game_history import GameHistory
from .games import Games, Labeller, Step
from .play_counts import PlayCounts
from .replay import EXPERT, EXPLORATION, ReplayBuffer, Rows

Act = Callable[[NDArray[np.int8], NDArray[np.bool_]], tuple[NDArray[np.int8], NDArray[np.uint8]]]
"""Codes ``(N, F)`` and legal zaps ``(N,)`` to knob counts ``(N,)`` and buttons ``(N,)``."""


class Collector:
    """The loop between games, drivers and replay.

    Args:
        games: what is played.
        act: the student's greedy action.
        teacher: drives its segments and labels every state; None leaves everything to the
            student.
        drivers: draws who drives.
        replay: takes the decisions.
    """

    def __init__(
        self,
        games: Games,
        act: Act,
        teacher: Labeller | None,
        drivers: Drivers,
        replay: ReplayBuffer,
    ) -> None:
        self.games, self.act, self.teacher = games, act, teacher
        self.drivers, self.replay = drivers, replay
        self.episode_start = np.ones(games.num_games, np.bool_)
        self.largest_reward = 0.0
        self.counts = PlayCounts(games.layout.fire_and_zap)
        self.history = GameHistory(drivers.free)
        self.last_step: Step | None = None
        """What the last decision led to."""
        self.last_drivers = np.zeros(games.num_games, np.uint8)
        """Who made it, ``(N,)``."""

    def collect(self, expert_ratio: float, epsilon_floor: float) -> None:
        """One decision of every game.

        Args:
            expert_ratio: share of new segments for the teacher; without a teacher it is 0.
            epsilon_floor: lower bound of the exploration rates.
        """
        games, drivers = self.games, self.drivers
        codes = games.observe()
        zap_legal = games.zap_legal()
        who = drivers.choose(expert_ratio if self.teacher else 0.0, epsilon_floor)
        spin, buttons = self.act(codes, zap_legal)
        if self.teacher:
            label_spin, label_buttons = self.teacher.act(games.images())
            self.counts.compare(who, spin, buttons, label_spin, label_buttons)
        else:
            label_spin, label_buttons = np.zeros_like(spin), np.zeros_like(buttons)
        explores, expert = who == EXPLORATION, who == EXPERT
        spin = np.where(explores, drivers.held_spin, np.where(expert, label_spin, spin))
        buttons = np.where(explores, drivers.held_buttons, np.where(expert, label_buttons, buttons))
        # The games overwrite their observation in place; the replay needs the one acted on.
        codes = codes.copy()
        step = games.step(spin.astype(label_spin.dtype), buttons.astype(np.uint8))
        self.replay.add(
            Rows(
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
        )
        self.episode_start = step.game_over | step.terminated
        self.largest_reward = max(self.largest_reward, float(np.abs(step.reward).max()))
        self.last_step, self.last_drivers = step, who
        self.counts.add(who, step)
        self.history.add(who, step)
        if step.game_over.any():
            self.drivers.forget(step.game_over)

    def interrupt(self) -> None:
        """Leave the running games, because they are about to be begun anew from outside."""
        self.replay.end_games(self.games.observe(), self.games.zap_legal())
        self.episode_start[:] = True
        self.drivers.forget(self.episode_start)
        self.history.forget(self.episode_start)

    @property
    def free_scores(self) -> list[float]:
        """Scores of the last finished teacher-free games, oldest first."""
        return self.history.free_scores

    @property
    def free_score(self) -> float | None:
        """Mean score of the last teacher-free games; None before the first has ended."""
        return self.history.free_score

    @property
    def finished_games(self) -> int:
        """Games finished so far."""
        return self.history.finished

    def read(self) -> dict[str, float]:
        """What the drivers did since the last call, and the figures of the finished games."""
        return self.counts.read() | self.history.figures()

    def state_dict(self) -> dict[str, Any]:
        return {
            "games": self.games.state_dict(),
            "drivers": self.drivers.state_dict(),
            "episode_start": self.episode_start,
            "largest_reward": self.largest_reward,
            "counts": self.counts.state_dict(),
            "history": self.history.state_dict(),
        }

    def load_state_dict(
        self, state: dict[str, Any], steps: int = 0, with_games: bool = True
    ) -> None:
        """Go on from ``state_dict``; ``steps`` decisions were played until then.

        Without the games they are about to be begun anew.
        """
        if with_games:
            self.games.load_state_dict(state["games"])
        self.drivers.load_state_dict(state["drivers"])
        self.episode_start = np.asarray(state["episode_start"]).astype(np.bool_)
        self.largest_reward = float(state["largest_reward"])
        if "history" in state:
            self.counts.load_state_dict(state["counts"])
            self.history.load_state_dict(state["history"])
        else:
            # Files of earlier versions know the scores alone.
            scores = [float(score) for score in state["free_scores"]]
            self.history.load_scores(scores, int(state["finished_games"]), steps)

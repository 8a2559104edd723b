"""Plays the training games: one decision of every game per call, stored with who made it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .drivers import Drivers
from .games import Games, Labeller, Step
from .replay import AGENT, DRIVER_NAMES, EXPERT, EXPLORATION, ReplayBuffer, Rows

Act = Callable[[NDArray[np.int8], NDArray[np.bool_]], tuple[NDArray[np.int8], NDArray[np.uint8]]]
"""Codes ``(N, F)`` and legal zaps ``(N,)`` to knob counts ``(N,)`` and buttons ``(N,)``."""

RECENT_GAMES = 50


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
        self.free_scores: list[float] = []
        """Scores of the last finished teacher-free games, oldest first."""
        self.finished_games = 0
        self.largest_reward = 0.0
        self.last_step: Step | None = None
        """What the last decision led to."""
        self._decisions = np.zeros(3)
        self._rewards = np.zeros(3)
        self._agreed = self._compared = 0.0
        self._own = np.zeros(4)

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
            self._compare(who, spin, buttons, label_spin, label_buttons)
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
        if games.layout.fire_and_zap:
            self._count_habits(who == AGENT, step.spin, step.buttons)
        self.last_step = step
        self._account(who, step.reward, step.game_over, step.score)

    def interrupt(self) -> None:
        """Leave the running games, because they are about to be begun anew from outside."""
        self.replay.end_games(self.games.observe(), self.games.zap_legal())
        self.episode_start[:] = True
        self.drivers.forget(self.episode_start)

    def _compare(
        self,
        who: NDArray[np.uint8],
        spin: NDArray[np.int8],
        buttons: NDArray[np.uint8],
        label_spin: NDArray[np.int8],
        label_buttons: NDArray[np.uint8],
    ) -> None:
        own = who == AGENT
        near = np.abs(spin.astype(np.int64) - label_spin) <= 4
        self._agreed += float(np.count_nonzero(own & near & (buttons == label_buttons)))
        self._compared += float(np.count_nonzero(own))

    def _count_habits(
        self, own: NDArray[np.bool_], spin: NDArray[np.int8], buttons: NDArray[np.uint8]
    ) -> None:
        habits = (own, own & (spin != 0), own & (buttons & 1 > 0), own & (buttons & 2 > 0))
        self._own += [np.count_nonzero(habit) for habit in habits]

    def _account(
        self,
        who: NDArray[np.uint8],
        reward: NDArray[np.float32],
        over: NDArray[np.bool_],
        score: NDArray[np.int64],
    ) -> None:
        self._decisions += np.bincount(who, minlength=3)
        self._rewards += np.bincount(who, weights=reward, minlength=3)
        self.largest_reward = max(self.largest_reward, float(np.abs(reward).max()))
        if over.any():
            self.finished_games += int(np.count_nonzero(over))
            self.free_scores += score[over & self.drivers.free].tolist()
            del self.free_scores[:-RECENT_GAMES]
            self.drivers.forget(over)

    @property
    def free_score(self) -> float | None:
        """Mean score of the last teacher-free games; None before the first has ended."""
        return float(np.mean(self.free_scores)) if self.free_scores else None

    def read(self) -> dict[str, float]:
        """Figures since the last call.

        Shares of the decisions and rewards per decision of each driver, how often the student
        agreed with the teacher, and in which share of its own decisions it turned, fired, zapped.
        """
        total = max(self._decisions.sum(), 1.0)
        figures: dict[str, float] = {}
        for i, name in enumerate(DRIVER_NAMES):
            figures[f"share_{name}"] = float(self._decisions[i] / total)
            if self._decisions[i]:
                figures[f"reward_{name}"] = float(self._rewards[i] / self._decisions[i])
        if self._compared:
            figures["agreement"] = self._agreed / self._compared
        if self._own[0]:
            for name, count in zip(("moves", "fires", "zaps"), self._own[1:], strict=True):
                figures[name] = float(count / self._own[0])
        self._own[:] = 0.0
        self._decisions[:] = 0.0
        self._rewards[:] = 0.0
        self._agreed = self._compared = 0.0
        return figures

    def state_dict(self) -> dict[str, Any]:
        return {
            "games": self.games.state_dict(),
            "drivers": self.drivers.state_dict(),
            "episode_start": self.episode_start,
            "free_scores": list(self.free_scores),
            "finished_games": self.finished_games,
            "largest_reward": self.largest_reward,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.games.load_state_dict(state["games"])
        self.drivers.load_state_dict(state["drivers"])
        self.episode_start = np.asarray(state["episode_start"]).astype(np.bool_)
        self.free_scores = list(state["free_scores"])
        self.finished_games = int(state["finished_games"])
        self.largest_reward = float(state["largest_reward"])

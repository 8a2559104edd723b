"""Collects decisions from where they are played: into the replay, and into the accounts."""

from __future__ import annotations

from typing import Any

import numpy as np

from tempest_agent.agent.replay.buffer import ReplayBuffer

from .drivers import Drivers
from .game_history import GameHistory
from .play_counts import PlayCounts
from .source import Left, Played, Source


class Collector:
    """The way from the games to the replay.

    Args:
        source: plays.
        replay: takes the decisions.
        fire_and_zap: whether the buttons are those.
    """

    def __init__(self, source: Source, replay: ReplayBuffer, fire_and_zap: bool = True) -> None:
        self.source, self.replay = source, replay
        self.largest_reward = 0.0
        self.counts = PlayCounts(fire_and_zap)
        self.history = GameHistory(source.drivers.free)
        self.last: Played | None = None
        """The last decision of every game."""

    def collect(self, expert_ratio: float, epsilon_floor: float) -> None:
        """One decision of every game; the arguments are those of ``Source.play``."""
        played = self.source.play(expert_ratio, epsilon_floor)
        rows, step = played.rows, played.step
        if played.left is not None:
            self._end(played.left)
        self.replay.add(rows)
        self.largest_reward = max(self.largest_reward, float(np.abs(step.reward).max()))
        if rows.labelled.any():
            self.counts.compare(
                rows.driver,
                played.own_spin,
                played.own_buttons,
                rows.label_spin,
                rows.label_buttons,
            )
        self.counts.add(rows.driver, step)
        self.history.add(rows.driver, step)
        self.last = played

    def interrupt(self) -> None:
        """Leave the running games, because they are about to be begun anew from outside."""
        self._end(self.source.leave())

    def _end(self, left: Left) -> None:
        self.replay.end_games(left.codes, left.zap_legal, left.games)
        self.history.forget(left.games)

    @property
    def drivers(self) -> Drivers:
        """Who drives the games."""
        return self.source.drivers

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
        return self.counts.read() | self.history.figures() | self.source.figures()

    def state_dict(self) -> dict[str, Any]:
        return self.source.state_dict() | {
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
        self.source.load_state_dict(state, with_games)
        self.largest_reward = float(state["largest_reward"])
        if "history" in state:
            self.counts.load_state_dict(state["counts"])
            self.history.load_state_dict(state["history"])
        else:
            # Files of earlier versions know the scores alone.
            scores = [float(score) for score in state["free_scores"]]
            self.history.load_scores(scores, int(state["finished_games"]), steps)

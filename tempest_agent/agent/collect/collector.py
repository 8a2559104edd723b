"""Collects decisions from their source into the replay and into the statistics."""

from __future__ import annotations

from typing import Any

import numpy as np

from tempest_agent.agent.replay.buffer import ReplayBuffer
from tempest_agent.agent.replicas import ALONE, Replicas

from .game_history import GameHistory
from .play_counts import PlayCounts
from .source import Abandoned, Played, Source


class Collector:
    """Stores what a source plays.

    Args:
        source: plays.
        replay: stores the decisions.
        fire_and_zap: whether the discrete action is Tempest's two buttons.
        replicas: processes whose finished games are counted together.
        death_ticks: rows before a death that are marked, in a replay that keeps plans.
    """

    def __init__(
        self,
        source: Source,
        replay: ReplayBuffer,
        fire_and_zap: bool = True,
        replicas: Replicas = ALONE,
        death_ticks: int = 0,
    ) -> None:
        self.source, self.replay = source, replay
        self.death_ticks = death_ticks
        self.largest_reward = 0.0
        self.counts = PlayCounts(fire_and_zap)
        self.history = GameHistory(source.drivers.teacher_free, replicas)

    def collect(self, expert_ratio: float, epsilon_floor: float) -> Played:
        """Play, store and count one decision of every game; arguments as in ``Source.play``."""
        played = self.source.play(expert_ratio, epsilon_floor)
        rows, step = played.rows, played.step
        if played.abandoned is not None:
            self._end(played.abandoned)
        self.replay.add(rows)
        if self.replay.plan_columns:
            self.replay.mark_deaths(step.lost_lives(), self.death_ticks)
            if played.late is not None:
                self.replay.add_labels(played.late)
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
        return played

    def abandon(self) -> None:
        """Abandon all running games; the caller is about to reset them."""
        self._end(self.source.abandon())

    def _end(self, abandoned: Abandoned) -> None:
        self.replay.end_games(abandoned.codes, abandoned.zap_legal, abandoned.games)
        self.history.forget(abandoned.games)

    def read(self) -> dict[str, float]:
        """Return the metrics of the decisions since the last call and of the finished games."""
        return self.counts.read() | self.history.figures() | self.source.figures()

    def state_dict(self) -> dict[str, Any]:
        return self.source.state_dict() | {
            "largest_reward": self.largest_reward,
            "counts": self.counts.state_dict(),
            "history": self.history.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any], with_games: bool = True) -> None:
        """Continue from ``state_dict``; without the games, if the caller is about to reset them."""
        self.source.load_state_dict(state, with_games)
        self.largest_reward = float(state["largest_reward"])
        self.counts.load_state_dict(state["counts"])
        self.history.load_state_dict(state["history"])

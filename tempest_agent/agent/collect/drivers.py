"""The driver of each game: the teacher, the student, or the student's exploration.

The driver is drawn for a *segment* of many decisions, never per decision, so the student meets
the states it leads itself into.  A fixed share of the games is teacher-free.  Exploration rates
form a ladder over the games (Horgan et al. 2018, "Distributed prioritized experience replay"):
``epsilon_max * (epsilon_min / epsilon_max) ** (i / (N - 1))`` for game i.  A random action is held
for a few decisions, because single ones cancel out; the rate p is the probability of starting one,
so with a mean hold of h decisions the share ``p h / (p h + 1 - p)`` is random.  The teacher-free
games are the last ones, with the lowest rates: their scores show what the student can do alone.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.agent.networks.q_network import Layout
from tempest_agent.agent.replay.buffer import AGENT, EXPERT, EXPLORATION
from tempest_agent.config import ExplorationConfig, TeacherConfig


def teacher_free_games(num_envs: int, share: float) -> int:
    """Return the number of teacher-free games: ``share`` of all, rounded up, at least one."""
    return min(num_envs, max(1, math.ceil(num_envs * share - 1e-9)))


def ladder(num_envs: int, highest: float, lowest: float) -> NDArray[np.float64]:
    """Return exploration rates from ``highest`` to ``lowest``, evenly spaced in their logarithm."""
    if num_envs == 1:
        return np.array([lowest])
    if lowest <= 0.0:
        return np.linspace(highest, lowest, num_envs)
    rates: NDArray[np.float64] = np.geomspace(highest, lowest, num_envs)
    return rates


class Drivers:
    """Draws the drivers of N games and holds their running segments and random actions.

    Args:
        num_envs: games of the whole run, over which ladder and teacher-free games are spread.
        teacher: segment lengths and the teacher-free share.
        exploration: the ladder, and what a random action is like.
        seed: of all draws.
        layout: of the actions; Tempest's buttons and knob if left out.
        which: the N games among them; all if left out.
    """

    def __init__(
        self,
        num_envs: int,
        teacher: TeacherConfig,
        exploration: ExplorationConfig,
        seed: int,
        layout: Layout | None = None,
        which: slice = slice(None),
    ) -> None:
        self.layout = layout or Layout(0)
        self.teacher = teacher
        self.exploration = exploration
        self.random = np.random.default_rng(seed)
        without = teacher_free_games(num_envs, teacher.free_share)
        teacher_free = np.arange(num_envs) >= num_envs - without
        rates = ladder(num_envs, exploration.epsilon_max, exploration.epsilon_min)
        self.teacher_free, self.rates = teacher_free[which].copy(), rates[which].copy()
        num_envs = self.teacher_free.size
        self.is_expert = np.zeros(num_envs, np.bool_)
        self.segment_left = np.zeros(num_envs, np.int64)
        self.hold_left = np.zeros(num_envs, np.int64)
        self.held_spin = np.zeros(num_envs, self.layout.stored_counts)
        self.held_buttons = np.zeros(num_envs, np.uint8)

    def epsilon(self, floor: float) -> NDArray[np.float64]:
        """Return the exploration rate of every game, at least ``floor``."""
        return np.maximum(self.rates, floor)

    def choose(self, expert_ratio: float, epsilon_floor: float) -> NDArray[np.uint8]:
        """Draw the driver of each game's next decision, ``(N,)``.

        Args:
            expert_ratio: share of new segments for the teacher, in games that admit it.
            epsilon_floor: lower bound of all exploration rates.
        """
        # The same number of draws in every call keeps resumed runs in step.
        count = self.teacher_free.size
        draw = self.random.random((2, count))
        lengths = self.random.integers(
            self.teacher.segment_min, self.teacher.segment_max + 1, count
        )
        new = self.segment_left <= 0
        self.is_expert = np.where(
            new, (draw[0] < expert_ratio) & ~self.teacher_free, self.is_expert
        )
        self.segment_left = np.where(new, lengths, self.segment_left) - 1
        begins = (self.hold_left <= 0) & (draw[1] < self.epsilon(epsilon_floor))
        self._draw_actions(begins)
        explores = (self.hold_left > 0) & ~self.is_expert
        self.hold_left = np.where(explores, self.hold_left - 1, 0)
        driver = np.full(count, AGENT, np.uint8)
        driver[explores] = EXPLORATION
        driver[self.is_expert] = EXPERT
        return driver

    def _draw_actions(self, begins: NDArray[np.bool_]) -> None:
        count = begins.size
        largest = self.layout.counts
        spin = self.random.integers(-largest, largest + 1, count).astype(self.layout.stored_counts)
        fire, zap = self.random.random((2, count))
        if self.layout.fire_and_zap:
            buttons = (fire < self.exploration.fire_share).astype(np.uint8)
            buttons += np.uint8(2) * (zap < self.exploration.zap_share)
        else:
            buttons = (fire * self.layout.num_pairs).astype(np.uint8)
        holds = self.random.integers(1, self.exploration.hold_max + 1, count)
        self.held_spin = np.where(begins, spin, self.held_spin)
        self.held_buttons = np.where(begins, buttons, self.held_buttons)
        self.hold_left = np.where(begins, holds, self.hold_left)

    def forget(self, games: NDArray[np.bool_]) -> None:
        """End segments and held actions in ``games`` (bool ``(N,)``), which are over."""
        self.segment_left[games] = 0
        self.hold_left[games] = 0

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = {name: getattr(self, name) for name in _STORED}
        return state | {"random": self.random.bit_generator.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name in _STORED:
            own = getattr(self, name)
            setattr(self, name, np.asarray(state[name]).astype(own.dtype))
        self.random.bit_generator.state = state["random"]


_STORED = ("is_expert", "segment_left", "hold_left", "held_spin", "held_buttons")

"""The teacher's mean score, which the imitation gate compares the student's with."""

from __future__ import annotations

import dataclasses

import numpy as np

from tempest_agent.agent.games.interface import Labeller
from tempest_agent.agent.games.tempest_games import TempestGames
from tempest_agent.config import Config

NO_IMITATION = "none"


def has_to_be_measured(config: Config) -> bool:
    """Whether the gate needs the score, and the configuration does not give it."""
    return config.teacher.score == 0 and config.learner.imitation != NO_IMITATION


def measure_teacher(config: Config, teacher: Labeller) -> float:
    """Mean score of the teacher in ``teacher.score_games`` games at the run's own settings."""
    count = config.teacher.score_games
    # Simulated in any case: the rules are the same, and nobody has to wait for it.
    game = dataclasses.replace(config.game, backend="sim")
    games = TempestGames(count, game, config.run.seed + 1)
    games.reset()
    scores = np.zeros(count, np.int64)
    running = np.ones(count, np.bool_)
    while running.any():
        step = games.step(*teacher.act(games.images()))
        scores[running] = step.score[running]
        running &= ~step.game_over
    return float(scores.mean())

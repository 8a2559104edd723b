"""The teacher's mean score, the imitation gate's reference."""

from __future__ import annotations

import dataclasses

import numpy as np

from tempest_agent.agent.games.interface import Teacher
from tempest_agent.agent.games.tempest_games import TempestGames
from tempest_agent.config import Config

NO_IMITATION = "none"


def has_to_be_measured(config: Config) -> bool:
    """Return whether the gate needs the score and the configuration does not give it."""
    return config.teacher.score == 0 and config.learner.imitation != NO_IMITATION


def measure_teacher(config: Config, teacher: Teacher) -> float:
    """Return the teacher's mean score in ``teacher.score_games`` games with the run's settings."""
    count = config.teacher.score_games
    # Always simulated: the same rules, and faster than the real machine.
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

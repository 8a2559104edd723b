"""Greedy games at a checkpoint: how a network in training plays without exploration."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import torch

from tempest_agent.agent.checkpoints.policy import load_policy
from tempest_agent.evaluation.games import EvaluationGames, play_games
from tempest_agent.evaluation.outcomes import summary
from tempest_agent.evaluation.players import network_choice

EVAL_MAX_TICKS = 10_000
"""Greedy games during training are truncated earlier than in the standard evaluation."""

EVALUATED = ("score_iqm", "score_mean", "level_mean", "ticks_mean", "deaths_per_1000_ticks")


class _Stopped(Exception):  # noqa: N818  (no error: the user asked for it)
    """A stop of the run was requested."""


def greedy_figures(
    path: Path, count: int, seed: int, ends: Callable[[], bool]
) -> dict[str, float] | None:
    """Return the metrics ``EVALUATED`` of ``count`` games of ``seed`` played by a checkpoint.

    None if ``ends``, called periodically, requests a stop.
    """

    def check(_ticks: int) -> None:
        if ends():
            raise _Stopped

    try:
        # Loading draws initial weights, which a resumed run does not do at this point.
        with torch.random.fork_rng(devices=[]):
            check(0)
            policy = load_policy(path)
            games = EvaluationGames(
                count, seed, max_ticks=EVAL_MAX_TICKS, input_delay=policy.input_delay
            )
            threads = min(2, os.cpu_count() or 1)
            played = summary(play_games(network_choice(policy, str(path)), games, threads, check))
    except _Stopped:
        return None
    return {name: float(played[name]) for name in EVALUATED}

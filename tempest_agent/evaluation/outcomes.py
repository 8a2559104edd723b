"""How games ended, and their statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.game_state.death_cause import DEATH_CAUSES
from tempest_agent.evaluation.bands import band_rows
from tempest_agent.evaluation.statistics import (
    bootstrap_interval,
    interquartile_mean,
    median_interval,
)


@dataclass(frozen=True)
class Outcomes:
    """How the games ended; every array has one row per game, in order of their numbers.

    ``deaths`` has a column per ``DEATH_CAUSES``; ``levels`` is the level a game ended on; ``bands``
    are ticks and deaths by ``BANDS``, ``(games, bands, 2)``.  ``traces`` are digests of whole games
    on a real machine, empty for the simulator.
    """

    scores: NDArray[np.int64]
    levels: NDArray[np.int64]
    ticks: NDArray[np.int64]
    truncated: NDArray[np.bool_]
    deaths: NDArray[np.int64]
    bands: NDArray[np.int64]
    traces: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))

    @property
    def repeated(self) -> list[int]:
        """Indices of the games that repeat an earlier one tick by tick."""
        _, first = np.unique(self.traces, return_index=True)
        return sorted(set(range(len(self.traces))) - set(first.tolist()))


def joined(parts: Sequence[Outcomes]) -> Outcomes:
    """Concatenate the outcomes of all ``parts``."""
    names = [each.name for each in fields(Outcomes)]
    return Outcomes(
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    )


def summary(outcomes: Outcomes) -> dict[str, Any]:
    """Return the statistics of ``outcomes`` as plain Python types, ready for JSON.

    Repeated games count once in the intervals.
    """
    scores, ticks = outcomes.scores, outcomes.ticks
    different = np.delete(scores, outcomes.repeated)
    per_thousand = 1000.0 / max(int(ticks.sum()), 1)
    deaths = outcomes.deaths.sum(axis=0)
    return {
        "scores": [int(score) for score in scores],
        "truncated": int(outcomes.truncated.sum()),
        "ended_share": 1.0 - float(outcomes.truncated.mean()),
        "score_mean": float(scores.mean()),
        "score_iqm": interquartile_mean(scores),
        "score_iqm_ci95": list(bootstrap_interval([different])),
        "score_median": float(np.median(scores)),
        "score_median_ci95": list(median_interval(different)),
        "score_max": int(scores.max()),
        "level_mean": float(outcomes.levels.mean()),
        "level_max": int(outcomes.levels.max()),
        "ticks_mean": float(ticks.mean()),
        "ticks_median": float(np.median(ticks)),
        "ticks_median_ci95": list(median_interval(np.delete(ticks, outcomes.repeated))),
        "points_per_1000_ticks": float(scores.sum()) * per_thousand,
        "deaths_per_1000_ticks": float(deaths.sum()) * per_thousand,
        "deaths": {cause: int(n) for cause, n in zip(DEATH_CAUSES, deaths, strict=True)},
        "bands": band_rows(outcomes.bands.sum(axis=0)),
    }

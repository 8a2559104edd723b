"""Several players at the same games: how likely each of them beats the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tempest_agent.evaluation.statistics import improvement_interval, probability_of_improvement


def compare(results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return every player but the first against the first, level by level.

    ``results`` are evaluations with ``policy``, ``level`` and ``scores``, of which those of
    ``repeated_games`` do not count; the baseline of a level is the first of them at that level.
    Each entry has ``policy``, ``level``, ``probability_of_improvement`` (that one of its games
    scores more than one of the baseline, a tie counts as half: Agarwal et al. 2021) and ``ci95``,
    its bootstrap interval over the games.
    """
    baselines: dict[int, Sequence[int]] = {}
    rows: list[dict[str, Any]] = []
    for result in results:
        level = result["level"]
        scores = np.delete(result["scores"], result.get("repeated_games", [])).tolist()
        if level not in baselines:
            baselines[level] = scores
            continue
        baseline = baselines[level]
        rows.append(
            {
                "policy": result["policy"],
                "level": level,
                "probability_of_improvement": probability_of_improvement(scores, baseline),
                "ci95": list(improvement_interval([scores], [baseline])),
            }
        )
    return rows

"""Compare several players at the same games: how likely each beats the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tempest_agent.evaluation.statistics import improvement_interval, probability_of_improvement


def compare(results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Compare every player with the first one, level by level.

    ``results`` are evaluations with ``policy``, ``level`` and ``scores``; ``repeated_games`` do not
    count.  The baseline of a level is the first evaluation at that level.  Each entry has
    ``policy``, ``level``, ``probability_of_improvement`` (the chance that one of its games scores
    more than one of the baseline, ties count half: Agarwal et al. 2021) and ``ci95``, its bootstrap
    interval over the games.
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

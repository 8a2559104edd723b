"""What the drivers did since the last log row, counted decision by decision."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.agent.games.interface import Step
from tempest_agent.agent.replay.buffer import AGENT, DRIVER_NAMES
from tempest_agent.envs.game_state.death_cause import DEATH_CAUSES

NEAR_COUNTS = 4
"""Knob counts (of 31) within which two spinner turns count as equal."""


class PlayCounts:
    """Counts of one interval; ``read`` returns its metrics and starts the next one.

    Agreement, habits and deaths count the student's own greedy decisions (driver ``AGENT``) only.

    Args:
        fire_and_zap: whether the discrete action is Tempest's two buttons; habits need it.
    """

    def __init__(self, fire_and_zap: bool = True) -> None:
        self.fire_and_zap = fire_and_zap
        self._counts = {name: np.zeros(size) for name, size in _SIZES.items()}

    def compare(
        self,
        driver: NDArray[np.uint8],
        spin: NDArray[np.int8],
        buttons: NDArray[np.uint8],
        label_spin: NDArray[np.int8],
        label_buttons: NDArray[np.uint8],
    ) -> None:
        """Count where the student chooses as the teacher does; all ``(N,)``."""
        own = driver == AGENT
        near = own & (np.abs(spin.astype(np.int64) - label_spin) <= NEAR_COUNTS)
        same = own & (buttons == label_buttons)
        agreed = (own, near & same, same, near)
        self._counts["agreement"] += [np.count_nonzero(which) for which in agreed]

    def add(self, driver: NDArray[np.uint8], step: Step) -> None:
        """Count a decision of every game by its ``driver`` ``(N,)``."""
        counts = self._counts
        counts["decisions"] += np.bincount(driver, minlength=3)
        counts["rewards"] += np.bincount(driver, weights=step.reward, minlength=3)
        own = driver == AGENT
        did = (step.spin != 0, step.buttons & 1 > 0, step.buttons & 2 > 0)
        counts["habits"] += [np.count_nonzero(own & habit) for habit in did]
        if step.death_cause is not None:
            died = step.death_cause[own & (step.death_cause >= 0)]
            counts["deaths"] += np.bincount(died, minlength=len(DEATH_CAUSES))
            counts["known"] += np.count_nonzero(own)

    def read(self) -> dict[str, float]:
        """Return the metrics since the last call; drivers without a decision are left out."""
        counts = self._counts
        decisions = counts["decisions"]
        metrics: dict[str, float] = {}
        for i, name in enumerate(DRIVER_NAMES):
            metrics[f"share_{name}"] = float(decisions[i] / max(decisions.sum(), 1.0))
            if decisions[i]:
                metrics[f"reward_{name}"] = float(counts["rewards"][i] / decisions[i])
        compared, *agreed = counts["agreement"]
        if compared:
            for name, count in zip(_AGREEMENTS, agreed, strict=True):
                metrics[name] = float(count / compared)
        if decisions[AGENT] and self.fire_and_zap:
            for name, count in zip(_HABITS, counts["habits"], strict=True):
                metrics[name] = float(count / decisions[AGENT])
        if counts["known"][0]:
            rates = 1000.0 * counts["deaths"] / counts["known"][0]
            metrics["deaths"] = float(rates.sum())
            for cause, rate in zip(DEATH_CAUSES, rates, strict=True):
                metrics[f"deaths_{cause}"] = float(rate)
        for each in counts.values():
            each[:] = 0.0
        return metrics

    def state_dict(self) -> dict[str, Any]:
        return {name: count.tolist() for name, count in self._counts.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name, count in self._counts.items():
            count[:] = state[name]


_AGREEMENTS = ("agreement", "agreement_buttons", "agreement_spinner")
_HABITS = ("moves", "fires", "zaps")
_SIZES = {
    "decisions": 3,
    "rewards": 3,
    "agreement": 4,
    "habits": 3,
    "deaths": len(DEATH_CAUSES),
    "known": 1,
}

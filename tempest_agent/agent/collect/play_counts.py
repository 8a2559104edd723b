"""What the drivers did since the last line of metrics, counted decision by decision."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.agent.games.interface import Step
from tempest_agent.agent.replay.rows import AGENT, DRIVER_NAMES
from tempest_agent.envs.game_state.death_cause import DEATH_CAUSES

NEAR_COUNTS = 4
"""Knob counts (of 31) within which two turns of the spinner count as the same."""


class PlayCounts:
    """Counts of one interval: ``read`` returns its figures and begins the next one.

    Only the student's own greedy decisions (driver ``AGENT``) say something about the student:
    agreement, habits and deaths count nothing else.

    Args:
        fire_and_zap: whether the buttons are those, so that habits mean something.
    """

    def __init__(self, fire_and_zap: bool = True) -> None:
        self.fire_and_zap = fire_and_zap
        self._counts = {name: np.zeros(size) for name, size in _SIZES.items()}

    def compare(
        self,
        who: NDArray[np.uint8],
        spin: NDArray[np.int8],
        buttons: NDArray[np.uint8],
        label_spin: NDArray[np.int8],
        label_buttons: NDArray[np.uint8],
    ) -> None:
        """Count where the student's choice is the teacher's; all ``(N,)``."""
        own = who == AGENT
        near = own & (np.abs(spin.astype(np.int64) - label_spin) <= NEAR_COUNTS)
        same = own & (buttons == label_buttons)
        agreed = (own, near & same, same, near)
        self._counts["agreement"] += [np.count_nonzero(which) for which in agreed]

    def add(self, who: NDArray[np.uint8], step: Step) -> None:
        """Count a decision of every game, ``who`` ``(N,)`` being its driver."""
        counts = self._counts
        counts["decisions"] += np.bincount(who, minlength=3)
        counts["rewards"] += np.bincount(who, weights=step.reward, minlength=3)
        own = who == AGENT
        did = (step.spin != 0, step.buttons & 1 > 0, step.buttons & 2 > 0)
        counts["habits"] += [np.count_nonzero(own & habit) for habit in did]
        if step.death_cause is not None:
            died = step.death_cause[own & (step.death_cause >= 0)]
            counts["deaths"] += np.bincount(died, minlength=len(DEATH_CAUSES))
            counts["known"] += np.count_nonzero(own)

    def read(self) -> dict[str, float]:
        """Figures since the last call; those of a driver that made no decision are left out."""
        counts = self._counts
        decisions = counts["decisions"]
        figures: dict[str, float] = {}
        for i, name in enumerate(DRIVER_NAMES):
            figures[f"share_{name}"] = float(decisions[i] / max(decisions.sum(), 1.0))
            if decisions[i]:
                figures[f"reward_{name}"] = float(counts["rewards"][i] / decisions[i])
        compared, *agreed = counts["agreement"]
        if compared:
            for name, count in zip(_AGREEMENTS, agreed, strict=True):
                figures[name] = float(count / compared)
        if decisions[AGENT] and self.fire_and_zap:
            for name, count in zip(_HABITS, counts["habits"], strict=True):
                figures[name] = float(count / decisions[AGENT])
        if counts["known"][0]:
            rates = 1000.0 * counts["deaths"] / counts["known"][0]
            figures["deaths"] = float(rates.sum())
            for cause, rate in zip(DEATH_CAUSES, rates, strict=True):
                figures[f"deaths_{cause}"] = float(rate)
        for each in counts.values():
            each[:] = 0.0
        return figures

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

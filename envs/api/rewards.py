"""From points to rewards.

``reward = reward_scale * points - death_penalty * lives lost + shaping * (discount * p' - p)``

where p is a potential of the state.  A reward of that last form leaves the best policy unchanged
(Ng, Harada and Russell 1999, "Policy invariance under reward transformations"), if ``discount`` is
the learner's own and the potential after a terminal state is 0.  Here it is the share of the level
that is cleared: 1 - (enemies alive + nymphs waiting) / nymphs at the level's start.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.checks import check_number
from tempest_agent.envs.messages import shown

REWARD_PARTS = ("reward_points", "reward_death", "reward_shaping")
"""Names of the parts, as they stand in ``info``."""


@dataclass(frozen=True)
class RewardSettings:
    """Constants of the reward, see the module; only ``reward_scale`` is not 0 by default.

    Raises ``ValueError`` for numbers that are not finite, a negative penalty or scale, and a
    discount outside 0 to 1.
    """

    reward_scale: float = 0.01
    death_penalty: float = 0.0
    shaping: float = 0.0
    shaping_discount: float = 0.99

    def __post_init__(self) -> None:
        for name in ("reward_scale", "death_penalty", "shaping", "shaping_discount"):
            check_number(name, getattr(self, name))
        for name in ("reward_scale", "death_penalty"):
            if getattr(self, name) < 0:
                raise ValueError(
                    f"{name}={shown(getattr(self, name))} is negative and would turn the game "
                    "round; a penalty is given as a positive number"
                )
        if not 0 <= self.shaping_discount <= 1:
            raise ValueError(
                f"shaping_discount={shown(self.shaping_discount)}: the learner's gamma, from 0 to 1"
            )


def cleared_share(ram: NDArray[np.void]) -> NDArray[np.float64]:
    """Return the cleared share of the level, per image of ``ram``: the potential, 0 to 1."""
    left = ram["queue_count"].astype(np.int64) + (ram["enemy_depth"] != 0).sum(-1)
    total = np.maximum(ram["queue_start_count"].astype(np.int64), 1)
    return 1.0 - np.minimum(left / total, 1.0)


class Rewards:
    """Rewards of ``num_games`` games, step by step."""

    def __init__(self, settings: RewardSettings, num_games: int) -> None:
        self.settings = settings
        self._potential = np.zeros(num_games)
        self.only_points = not settings.death_penalty and not settings.shaping
        """Whether the other parts are 0."""

    def begin(self, ram: NDArray[np.void], mask: NDArray[np.bool_]) -> None:
        """Note the first state of the games where ``mask`` is set."""
        if self.settings.shaping:
            self._potential[mask] = cleared_share(ram[mask])

    def step(
        self,
        points: NDArray[np.int32],
        lives_lost: NDArray[np.int8],
        ram: NDArray[np.void],
        terminated: NDArray[np.bool_],
    ) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]]]:
        """Return the rewards, and their parts by name, each ``(num_games,)``.

        ``ram`` holds the states that the step led to: of a game that ended, its last.
        """
        parts = {
            "reward_points": points * np.float64(self.settings.reward_scale),
            "reward_death": np.zeros(len(points)),
            "reward_shaping": np.zeros(len(points)),
        }
        if not self.only_points:
            self._add_others(parts, lives_lost, ram, terminated)
        return parts["reward_points"] + parts["reward_death"] + parts["reward_shaping"], parts

    def _add_others(
        self,
        parts: dict[str, NDArray[np.float64]],
        lives_lost: NDArray[np.int8],
        ram: NDArray[np.void],
        terminated: NDArray[np.bool_],
    ) -> None:
        settings = self.settings
        if settings.death_penalty:
            parts["reward_death"] -= lives_lost.astype(np.float64) * settings.death_penalty
        if settings.shaping:
            potential = np.where(terminated, 0.0, cleared_share(ram))
            gain = settings.shaping_discount * potential - self._potential
            parts["reward_shaping"] = settings.shaping * gain
            self._potential = potential

"""A small hybrid-action problem with a known best action, in the shape of the arcade's games.

Every state names a button pair and a spinner position; reward is ``1 - |spinner - position|`` for
that pair and 0 for any other.  Pairs with zap are illegal in half the states, where the named pair
has none.  Games last a random number of decisions and end by death or by a cut.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.agent.games.interface import Step
from tempest_agent.agent.networks.layout import Layout

FEATURES = 6
POSITION, PAIRS, ZAP_LEGAL = 0, slice(1, 5), 5


class FakeGames:
    """``num_games`` of them, with deaths and cuts at the given rates per decision."""

    layout = Layout(FEATURES)

    def __init__(
        self, num_games: int, seed: int, death_rate: float = 0.1, cut_rate: float = 0.05
    ) -> None:
        self.num_games = num_games
        self.rates = death_rate, cut_rate
        self.random = np.random.default_rng(seed)
        self.codes = np.zeros((num_games, FEATURES), np.int8)
        self.score = np.zeros(num_games, np.int64)
        self._draw()

    def _draw(self) -> None:
        count = self.num_games
        legal = self.random.random(count) < 0.5
        pair = self.random.integers(0, 4, count)
        pair = np.where(legal, pair, pair & 1)
        self.codes[:] = 0
        self.codes[:, POSITION] = self.random.integers(-127, 128, count)
        self.codes[np.arange(count), 1 + pair] = 127
        self.codes[:, ZAP_LEGAL] = legal * 127

    def reset(self) -> None:
        self.score[:] = 0
        self._draw()

    def observe(self) -> NDArray[np.int8]:
        return self.codes

    def zap_legal(self) -> NDArray[np.bool_]:
        return self.codes[:, ZAP_LEGAL] > 0

    def images(self) -> NDArray[np.int8]:
        return self.codes

    def step(self, spin: NDArray[np.int8], buttons: NDArray[np.uint8]) -> Step:
        buttons = np.where(self.zap_legal(), buttons, buttons & 1).astype(np.uint8)
        right = self.codes[:, PAIRS].argmax(axis=1) == buttons
        distance = np.abs(spin / 31.0 - self.codes[:, POSITION] / 127.0)
        reward = (right * (1.0 - distance)).astype(np.float32)
        self.score += (100 * reward).astype(np.int64)
        died = self.random.random(self.num_games) < self.rates[0]
        cut = self.random.random(self.num_games) < self.rates[1]
        self._draw()
        final, over, score = self.codes.copy(), died | cut, self.score.copy()
        fresh = self.codes.copy()
        self._draw()
        self.codes[~over] = fresh[~over]
        self.score[over] = 0
        return Step(
            reward, died, cut, over, score, spin.copy(), buttons, final, final[:, ZAP_LEGAL] > 0
        )

    def state_dict(self) -> dict[str, Any]:
        return {
            "codes": self.codes.copy(),
            "score": self.score.copy(),
            "random": self.random.bit_generator.state,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.codes[:] = np.asarray(state["codes"])
        self.score[:] = np.asarray(state["score"])
        self.random.bit_generator.state = state["random"]


class FakeTeacher:
    """Always right."""

    def act(self, images: NDArray[np.int8]) -> tuple[NDArray[np.int8], NDArray[np.uint8]]:
        spin = np.round(images[:, POSITION] / 127.0 * 31).astype(np.int8)
        return spin, images[:, PAIRS].argmax(axis=1).astype(np.uint8)

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        pass


SMALL = (
    "run.num_envs=16",
    "run.device=cpu",
    "run.log_interval=400",
    "run.checkpoint_interval=1600",
    "network.hidden=[64, 64]",
    "replay.capacity=8000",
    "replay.learning_starts=320",
    "learner.batch_size=64",
    "learner.precision=float32",
    "learner.gamma=0.0",
    "learner.n_steps=1",
    "learner.learning_rate=2e-3",
    "exploration.epsilon_steps=800",
    "exploration.zap_share=0.3",
    "teacher.expert_ratio_steps=1600",
    "teacher.score=1000",
)
"""Overrides for a run of seconds."""

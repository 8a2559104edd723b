"""Finished games: returns by driver, and how far the student gets without the teacher.

Frames are ticks of the game, added over all games that are played side by side.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tempest_agent.agent.games.interface import Step
from tempest_agent.agent.replay.rows import DRIVER_NAMES
from tempest_agent.agent.replicas import ALONE, Replicas

RECENT_GAMES = 50
WINDOWS = {"1m": 1_000_000, "5m": 5_000_000}
"""Suffix of a metric -> frames that it looks back."""
MOST_GAMES = 500_000
"""Most games kept, so that checkpoints stay small when games are short."""
MILLION = 1e6


class GameHistory:
    """Statistics of finished games.

    Args:
        teacher_free: bool ``(N,)``, the games in which the teacher never drives.
        replicas: processes whose games are counted too, identically on all.

    Attributes:
        frames: frames played so far.
        finished: games finished so far.
        teacher_free_finished: games among them that the teacher never drove.
    """

    def __init__(self, teacher_free: NDArray[np.bool_], replicas: Replicas = ALONE) -> None:
        self._teacher_free = teacher_free
        self.replicas = replicas
        self.frames = 0
        self.finished = self.teacher_free_finished = 0
        self._returns = np.zeros(teacher_free.size)
        self._made = np.zeros((teacher_free.size, len(DRIVER_NAMES)))
        self._recent: list[list[float]] = []
        """Last finished games: frames at their end, return, share of each driver's decisions."""
        self._teacher_free_games: list[list[float]] = []
        """Teacher-free games of the longest window: frames at their end, score, last level."""

    def add(self, driver: NDArray[np.uint8], step: Step) -> None:
        """Count a decision of every game by its ``driver`` ``(N,)``."""
        games = np.arange(driver.size)
        frames = driver.size if step.ticks is None else int(step.ticks.sum())
        self._returns += step.reward
        self._made[games, driver] += 1.0
        finished: list[list[float]] = []
        if step.game_over.any():
            finished = [self._result(int(game), step) for game in np.flatnonzero(step.game_over)]
            self.forget(step.game_over)
        news = self.replicas.gather((frames, finished))
        self.frames += sum(frames for frames, _ in news)
        for _, results in news:
            for result in results:
                self._note(*result)

    def _result(self, game: int, step: Step) -> list[float]:
        """Return the arguments of ``_note``."""
        shares = self._made[game] / self._made[game].sum()
        level = 0.0 if step.level is None else float(step.level[game])
        own = (float(self._teacher_free[game]), float(step.score[game]), level)
        return [*own, float(self._returns[game]), *shares.tolist()]

    def _note(self, teacher_free: float, score: float, level: float, *returned: float) -> None:
        """Count a finished game; ``returned`` is its return and each driver's share of it."""
        self._recent.append([float(self.frames), *returned])
        del self._recent[:-RECENT_GAMES]
        self.finished += 1
        if not teacher_free:
            return
        self.teacher_free_finished += 1
        self._teacher_free_games.append([float(self.frames), score, level])
        oldest = self.frames - max(WINDOWS.values())
        while len(self._teacher_free_games) > RECENT_GAMES and (
            self._teacher_free_games[0][0] <= oldest or len(self._teacher_free_games) > MOST_GAMES
        ):
            del self._teacher_free_games[0]

    def forget(self, games: NDArray[np.bool_]) -> None:
        """Drop the running games ``games`` (bool ``(N,)``); new ones take their place."""
        self._returns[games] = 0.0
        self._made[games] = 0.0

    @property
    def teacher_free_scores(self) -> list[float]:
        """Scores of the last ``RECENT_GAMES`` teacher-free games, oldest first."""
        return [score for _, score, _ in self._teacher_free_games[-RECENT_GAMES:]]

    @property
    def teacher_free_score(self) -> float | None:
        """Mean of ``teacher_free_scores``; None before the first such game has ended."""
        scores = self.teacher_free_scores
        return float(np.mean(scores)) if scores else None

    def figures(self) -> dict[str, float]:
        """Return metrics of the games that have ended so far; those without a game are left out.

        A game counts for a driver by the share of its decisions that the driver made.
        """
        metrics = {"frames": float(self.frames), "games": float(self.finished)}
        if self._recent:
            recent = np.array(self._recent)
            weights = recent[:, 2:]
            for i, name in enumerate(DRIVER_NAMES):
                if weights[:, i].sum() > 0:
                    mean = np.average(recent[:, 1], weights=weights[:, i])
                    metrics[f"return_{name}"] = float(mean)
            _put(metrics, "return_slope", least_squares_slope(recent[:, 0], recent[:, 1]), MILLION)
        if self._teacher_free_games:
            metrics |= self._teacher_free_metrics()
        return metrics

    def _teacher_free_metrics(self) -> dict[str, float]:
        games = np.array(self._teacher_free_games)
        recent = games[-RECENT_GAMES:, 1]
        metrics = {
            "teacher_free_score": float(np.mean(recent)),
            "teacher_free_score_spread": float(np.std(recent)),
            "teacher_free_games": float(self.teacher_free_finished),
        }
        for name, width in WINDOWS.items():
            inside = games[games[:, 0] > self.frames - width]
            if len(inside):
                metrics[f"teacher_free_score_{name}"] = float(inside[:, 1].mean())
                slope = least_squares_slope(inside[:, 0], inside[:, 1])
                _put(metrics, f"teacher_free_slope_{name}", slope, MILLION)
        levels = games[-RECENT_GAMES:, 2]
        if levels.min() > 0:
            metrics["level_mean"], metrics["level_max"] = float(levels.mean()), float(levels.max())
        return metrics

    def state_dict(self) -> dict[str, Any]:
        return {
            "frames": self.frames,
            "finished": self.finished,
            "free_finished": self.teacher_free_finished,
            "returns": self._returns,
            "made": self._made,
            "recent": [list(game) for game in self._recent],
            "free_games": [list(game) for game in self._teacher_free_games],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.frames, self.finished = int(state["frames"]), int(state["finished"])
        self.teacher_free_finished = int(state["free_finished"])
        self._returns = np.asarray(state["returns"]).astype(np.float64)
        self._made = np.asarray(state["made"]).astype(np.float64)
        self._recent = [list(game) for game in state["recent"]]
        self._teacher_free_games = [list(game) for game in state["free_games"]]


def _put(metrics: dict[str, float], name: str, value: float | None, scale: float) -> None:
    if value is not None:
        metrics[name] = value * scale


def least_squares_slope(places: ArrayLike, values: ArrayLike) -> float | None:
    """Return the slope of the least-squares line of ``values`` over ``places``, both ``(n,)``.

    None for fewer than three points, or if all lie at one place.
    """
    x, y = np.asarray(places, np.float64), np.asarray(values, np.float64)
    if x.size < 3 or np.ptp(x) == 0:
        return None
    away = x - x.mean()
    return float(away @ (y - y.mean()) / (away @ away))

"""Training runs of a second or two, and what they leave."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import torch
from same_state import assert_same

from tempest_agent.config import Config, load_config
from tempest_agent.training.session import Session

SETTINGS = (
    "run.steps=960", "run.num_envs=16", "run.log_interval=80", "run.checkpoint_interval=240",
    "run.keep_checkpoints=9", "run.device=cpu", "network.hidden=[8]", "learner.batch_size=16",
    "learner.gradient_steps=1", "replay.capacity=2000", "replay.learning_starts=100",
    "teacher.score=5000", "game.max_ticks=200",
)  # fmt: skip
GAMES = 2
"""Greedy games at each checkpoint."""


def settings(*overrides: str) -> Config:
    return load_config(None, [*SETTINGS, *overrides])


def new_run(folder: Path, *overrides: str, games: int = GAMES, **more: Any) -> dict[str, Any]:
    return Session.new(settings(*overrides), folder, games, publishes=False, **more).run()


def resume(path: Path, steps: int | None = None, games: int = GAMES) -> dict[str, Any]:
    return Session.resumed(path, steps, games, publishes=False).run()


def rows(path: Path) -> list[dict[str, str]]:
    """A log without the columns that tell the time."""
    with path.open(newline="") as file:
        return [
            {name: text for name, text in row.items() if not name.endswith("per_second")}
            for row in csv.DictReader(file)
        ]


def content(path: Path) -> dict[str, Any]:
    """A checkpoint without what two runs that are alike differ in."""
    loaded: dict[str, Any] = torch.load(path, weights_only=True)
    del loaded["snapshot"]
    for line in loaded["guard"]["series"]["lines"]:
        line.pop("env_steps_per_second", None)
    return loaded


def names(run: Path) -> set[str]:
    return {path.name for path in (run / "checkpoints").iterdir()}


def assert_same_run(one: Path, other: Path, step: int = 960) -> None:
    """Both runs ended after ``step`` decisions, and are the same in all that they left."""
    assert names(one) == names(other)
    for name in (f"step_{step}.pt", "best.pt", "good.pt"):
        assert (one / "checkpoints" / name).exists() == (other / "checkpoints" / name).exists()
        if (one / "checkpoints" / name).exists():
            assert_same(*(content(run / "checkpoints" / name) for run in (one, other)))
    for name in ("metrics.csv", "evaluations.csv"):
        assert rows(one / name) == rows(other / name)

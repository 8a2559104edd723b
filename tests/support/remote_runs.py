"""Runs whose games are played by actors inside this process."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import torch
from fake_games import SMALL, FakeGames, FakeTeacher
from inline_executor import InlineExecutor

from tempest_agent.actors.games_player import GamesPlayer
from tempest_agent.actors.messages import ActorShare, Chunk, Order
from tempest_agent.actors.remote_games import RemoteGames
from tempest_agent.actors.snapshot import Snapshot
from tempest_agent.agent.replay.rows import EPISODE_START, TERMINATED, TRUNCATED
from tempest_agent.config import Config, load_config
from tempest_agent.training.trainer import Trainer

SYNCHRONOUS = "actors.synchronous=true"


def arcade(actors: int, *overrides: str) -> Config:
    """A short run on the arcade's games: lives are lost and games cut."""
    return load_config(
        "smoke",
        ["run.device=cpu", "learner.precision=float32", "run.steps=1200", "game.max_ticks=100",
         "game.frame_skip=2", "game.start_levels=[1, 2, 9]",
         "teacher.score=20000", f"actors.count={actors}", *overrides],
    )  # fmt: skip


def fake(actors: int, *overrides: str) -> Config:
    """A short run on a small problem."""
    return load_config(None, [*SMALL, "run.steps=800", f"actors.count={actors}", *overrides])


def fake_player(config: Config, part: ActorShare) -> GamesPlayer:
    games = len(range(config.run.num_envs)[part.actor :: part.actors])
    seed = 100 * part.incarnation + part.actor
    return GamesPlayer(config, part, FakeGames(games, seed), FakeTeacher())


class FailsOnce(GamesPlayer):
    """Actor 1 fails in the middle of its fifth order."""

    def play(self, order: Order, snapshot: Snapshot) -> Chunk:
        chunk = super().play(order, snapshot)
        if (self.part.actor, self.part.incarnation, order.number) == (1, 0, 4):
            raise RuntimeError("out of coins")
        return chunk


def failing_player(config: Config, part: ActorShare) -> GamesPlayer:
    games = len(range(config.run.num_envs)[part.actor :: part.actors])
    seed = 100 * part.incarnation + part.actor
    return FailsOnce(config, part, FakeGames(games, seed), FakeTeacher())


def games_of(config: Config, make_player: object = fake_player) -> RemoteGames:
    player = partial(make_player, config)  # type: ignore[arg-type]
    return RemoteGames(config, InlineExecutor, player, FakeGames.layout)


class Run:
    """A run to its end, and what is left of it."""

    def __init__(self, trainer: Trainer) -> None:
        self.lines: list[dict[str, float]] = []
        trainer.loop.on_metrics = self.lines.append
        trainer.run()
        self.trainer, self.loop = trainer, trainer.loop
        self.weights = trainer.loop.learner.state_dict()
        self.replay = trainer.loop.replay

    def figures(self) -> list[dict[str, float]]:
        """The lines of metrics without those of time and of the actors."""
        return [
            {k: v for k, v in line.items() if not k.endswith("per_second") and "actors" not in k}
            for line in self.lines
        ]

    def assert_equals(self, other: Run) -> None:
        for network in ("online", "target", "average"):
            for name, value in self.weights[network].items():
                assert torch.equal(value, other.weights[network][name]), (network, name)
        ours, theirs = self.replay.arrays(), other.replay.arrays()
        for name, column in ours.items():
            np.testing.assert_array_equal(column, theirs[name], err_msg=name)
        assert self.replay.state_dict() == other.replay.state_dict()
        assert self.figures() == other.figures()


def inline(config: Config, folder: Path) -> Trainer:
    return Trainer(config, folder, games=RemoteGames(config, InlineExecutor))


def joined(run: Run) -> list[tuple[int, int]]:
    """Places ``(t, game)`` where an episode goes on although another begins, or the other way."""
    flags = run.replay.flags[: run.replay.filled]
    starts = flags[1:] & EPISODE_START > 0
    ends = flags[:-1] & (TERMINATED | TRUNCATED) > 0
    return [(int(t), int(game)) for t, game in np.argwhere(starts != ends)]

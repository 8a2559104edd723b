"""Play one game tick by tick, to be shown: the same game that the evaluation plays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import numpy as np

from tempest_agent.envs.api.backend import make_batch
from tempest_agent.envs.engine.batch import GameBatch
from tempest_agent.envs.game_state.controls import needs_no_input
from tempest_agent.evaluation.games import EvaluationGames
from tempest_agent.evaluation.players import PlayerChoice


def play_ticks(choice: PlayerChoice, games: EvaluationGames, number: int) -> Iterator[GameBatch]:
    """Play game ``number`` of ``games``, yielding its batch of one after every tick.

    It is byte for byte the game that the evaluation plays.
    """
    settings = games.settings(1, skip_idle=False)
    with closing(make_batch(1, settings, games.machine, observe=choice.sees_features)) as batch:
        yield from play_ticks_of(batch, choice, games, number)


def play_ticks_of(
    batch: GameBatch, choice: PlayerChoice, games: EvaluationGames, number: int
) -> Iterator[GameBatch]:
    """Play game ``number`` as ``play_ticks`` on a batch of one game that steps tick by tick.

    The evaluation skips ticks that need no decision.  Here every tick is yielded, so those get
    neutral inputs, which is what skipping does.
    """
    games.begin(batch, number)
    player = choice.make(np.array([number]), games.seed)
    rest = np.zeros(1, np.int8), np.zeros(1, np.uint8)
    action, held = rest, 0
    yield batch
    while not (batch.terminated[0] or batch.truncated[0]):
        if needs_no_input(batch.ram[0]):
            action, held = rest, 0
        elif held == 0:
            action, held = player.act(batch), choice.frame_skip
        batch.step(*action)
        held = max(held - 1, 0)
        yield batch

"""Scenes for players that look ahead."""

from __future__ import annotations

import numpy as np
from arena import start_batch, tick_batch
from numpy.typing import NDArray

from tempest_agent.envs.machine.memory import RAM_DTYPE, STATE_PLAY
from tempest_agent.envs.machine.randomness import new_streams
from tempest_agent.envs.machine.switches import Switches
from tempest_agent.experts import ScriptedExpert


def scenes(games: int = 5, ticks: int = 150, level: int = 20) -> NDArray[np.void]:
    """Games in the middle of a level, played there by the expert with a shaky hand."""
    dice = np.random.default_rng(4)
    expert = ScriptedExpert()
    rams = np.zeros(games, RAM_DTYPE)
    sources = new_streams([np.random.SeedSequence((9, game)) for game in range(games)])
    start_batch(rams, sources, Switches(start_level=level).record())
    over, scores = np.zeros(games, np.bool_), np.zeros(games, np.int64)
    for _ in range(ticks):
        spins, buttons = (part.astype(np.int16) for part in expert.act(rams))
        spins[dice.random(games) < 0.8] = 0
        tick_batch(rams, sources, spins, buttons, over, scores, np.zeros(5, np.int64))
    alive = (rams["game_state"] == STATE_PLAY) & (rams["player_lane_ccw"] < 0x80)
    assert alive.sum() >= 3
    return rams[alive]

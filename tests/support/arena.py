"""Games of one teacher in the simulator, for measuring and tuning it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.arcade.player import DEAD_VISIBLE
from tempest_agent.envs.arcade.score import score_of
from tempest_agent.envs.arcade.start import start_game
from tempest_agent.envs.arcade.tick import tick
from tempest_agent.envs.game_state.death_cause import DEATH_CAUSES, death_cause
from tempest_agent.envs.machine.compiled import int64, kernel
from tempest_agent.envs.machine.inputs import FIRE, ZAP, set_inputs
from tempest_agent.envs.machine.memory import RAM_DTYPE, STATE_HIGH_SCORE_CHECK
from tempest_agent.envs.machine.randomness import new_streams
from tempest_agent.envs.machine.switches import Switches
from tempest_agent.experts import Teacher

SCORE_WRAP = 1_000_000


@dataclass(frozen=True)
class ArenaResult:
    """What came of N games."""

    scores: NDArray[np.int64]
    """Points of each game, counted on beyond 999,999."""
    ticks: NDArray[np.int64]
    levels: NDArray[np.int64]
    finished: NDArray[np.bool_]
    """Whether the game was over before the cap."""
    deaths: dict[str, int]
    """Lives lost in all games, by cause."""

    @property
    def deaths_per_1000_ticks(self) -> float:
        return 1000.0 * sum(self.deaths.values()) / max(int(self.ticks.sum()), 1)


def start_batch(rams: NDArray[np.void], sources: NDArray[np.void], switches: np.void) -> None:
    """Start every game."""
    for ram, source in zip(rams, sources, strict=True):
        start_game(ram, source, switches)


@kernel
def tick_batch(
    rams: NDArray[np.void],
    sources: NDArray[np.void],
    spins: NDArray[np.int16],
    buttons: NDArray[np.int16],
    over: NDArray[np.bool_],
    scores: NDArray[np.int64],
    deaths: NDArray[np.int64],
) -> None:
    """One tick of every game that is not over; points and causes of death are added up."""
    for game in range(len(rams)):
        if over[game]:
            continue
        ram = rams[game]
        before = score_of(ram)
        alive = ram.player_lane_ccw < DEAD_VISIBLE
        held = int64(buttons[game])
        set_inputs(ram, int64(spins[game]), (held & FIRE) != 0, (held & ZAP) != 0)
        tick(ram, sources[game])
        scores[game] += (score_of(ram) - before) % SCORE_WRAP
        if alive and ram.player_lane_ccw >= DEAD_VISIBLE:
            deaths[death_cause(ram)] += 1
        over[game] = ram.game_state == STATE_HIGH_SCORE_CHECK


def press(ram: NDArray[np.void], source: NDArray[np.void], spin: int, buttons: int) -> None:
    """One tick of one game, shape (1,)."""
    controls = np.array([spin], np.int16), np.array([buttons], np.int16)
    counts = np.zeros(1, np.bool_), np.zeros(1, np.int64), np.zeros(5, np.int64)
    tick_batch(ram, source, *controls, *counts)


def play_games(
    teacher: Teacher,
    games: int = 100,
    max_ticks: int = 30_000,
    switches: Switches | None = None,
    seed: int = 0,
    delay: int = 0,
) -> ArenaResult:
    """Play ``games`` games side by side, each to its end or to ``max_ticks``.

    With a ``delay`` every input acts that many ticks later, and the teacher is told which inputs
    are under way.
    """
    rams = np.zeros(games, RAM_DTYPE)
    sources = new_streams([np.random.SeedSequence((seed, game)) for game in range(games)])
    start_batch(rams, sources, (switches or Switches()).record())
    pending = np.zeros((games, delay, 2), np.int16)
    over = np.zeros(games, np.bool_)
    scores = np.zeros(games, np.int64)
    ticks = np.zeros(games, np.int64)
    deaths = np.zeros(len(DEATH_CAUSES), np.int64)
    for _ in range(max_ticks):
        spins, buttons = teacher.act(rams, pending if delay else None)
        chosen = np.stack([spins.astype(np.int16), buttons.astype(np.int16)], axis=1)
        queue = np.concatenate([pending, chosen[:, None]], axis=1)
        acting, pending = queue[:, 0].T.copy(), np.ascontiguousarray(queue[:, 1:])
        ticks += ~over
        tick_batch(rams, sources, *acting, over, scores, deaths)
        if over.all():
            break
    levels = rams["cur_wave"].astype(np.int64) + 1
    counts = {cause: int(count) for cause, count in zip(DEATH_CAUSES, deaths, strict=True)}
    return ArenaResult(scores, ticks, levels, over, counts)

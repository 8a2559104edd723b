"""Greedy games from a fixed set of starts, each played to its end, and what they say.

Taking the first games to finish of an endless batch prefers short games: here a fixed set of
games is started, and every one is played until it is over or reaches the tick limit.  Each game
has a random stream of its own, drawn from the seed and the game's number, so that the scores do
not depend on how many games are played side by side or on how many threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, fields
from hashlib import blake2b
from threading import Event, Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.api.backend import make_batch
from tempest_agent.envs.engine.batch import GameBatch
from tempest_agent.envs.engine.game_step import LOST
from tempest_agent.envs.engine.saved_states import SAVED_SIZE
from tempest_agent.envs.engine.settings import GameSettings
from tempest_agent.envs.free_memory import too_large
from tempest_agent.envs.game_state.death_cause import DEATH_CAUSES
from tempest_agent.envs.machine.memory import CONTRACT_ADDRESSES, as_bytes
from tempest_agent.envs.mame.mame_batch import MameBatch
from tempest_agent.envs.mame.mame_options import MameOptions
from tempest_agent.envs.mame.protocol import RANDOM_CYCLE
from tempest_agent.errors import UserError
from tempest_agent.evaluation.players import PlayerChoice
from tempest_agent.evaluation.statistics import bootstrap_interval, interquartile_mean

STANDARD_EPISODES = 100
STANDARD_MAX_TICKS = 30_000
"""18 minutes of play: good players do not die, so a game must be cut somewhere."""

PROGRESS_STEPS = 256
"""Decisions between two reports of progress."""


@dataclass(frozen=True)
class EvaluationGames:
    """Which games are played: ``episodes`` of them, cut after ``max_ticks`` ticks each.

    ``bonus_life``: points between bonus lives, or ``"none"``.  ``machine``: the real machines they
    are played on, ``None`` for the simulator.

    Raises ``UserError`` for more games than memory holds.
    """

    episodes: int = STANDARD_EPISODES
    seed: int = 0
    level: int = 1
    max_ticks: int = STANDARD_MAX_TICKS
    input_delay: int = 0
    bonus_life: int | str = 20_000
    machine: MameOptions | None = None

    def __post_init__(self) -> None:
        problem = too_large(self.episodes * SAVED_SIZE)
        if problem is not None:
            raise UserError(f"episodes={self.episodes} {problem}: play fewer games")

    def settings(self, frame_skip: int, skip_idle: bool = True) -> GameSettings:
        """Return the same for a batch whose decisions last ``frame_skip`` ticks."""
        return GameSettings(
            skip_idle=skip_idle,
            start_level=self.level,
            bonus_life=self.bonus_life,
            frame_skip=frame_skip,
            max_ticks=self.max_ticks,
            input_delay=self.input_delay,
        )

    def expected_ticks(self, lengths: Sequence[int]) -> int:
        """Ticks of all the games, of which those of ``lengths`` are over."""
        mean = sum(lengths) / len(lengths) if lengths else self.max_ticks
        return sum(lengths) + round(mean * (self.episodes - len(lengths)))

    def begin(self, batch: GameBatch, number: int) -> None:
        """Begin game ``number`` in ``batch``, which has room for one."""
        if isinstance(batch, MameBatch):
            batch.moments[:] = self.moment(number)
        batch.reset(seeds=[self.game_seed(number)])

    def moment(self, number: int) -> int:
        """When game ``number`` begins on a real machine; no other game of this seed begins then."""
        stride, start = np.random.SeedSequence(self.seed).generate_state(2, np.uint64).tolist()
        stride = 1 + stride % (RANDOM_CYCLE - 1)
        return int((stride * number + start) % RANDOM_CYCLE)  # Which is a prime number.

    def game_seed(self, number: int) -> int:
        """Return the seed of one game; neighbouring values of ``seed`` share none."""
        child = np.random.SeedSequence(self.seed, spawn_key=(number,))
        return int(child.generate_state(1, np.uint64)[0])


@dataclass(frozen=True)
class Outcomes:
    """How the games ended; every array has one row a game, in the order of the games' numbers.

    ``deaths`` has a column for each of ``DEATH_CAUSES``; ``levels`` is the level a game ended on.
    ``traces`` are digests of all that happened in a game on a real machine, and empty for the
    simulator's games.
    """

    scores: NDArray[np.int64]
    levels: NDArray[np.int64]
    ticks: NDArray[np.int64]
    truncated: NDArray[np.bool_]
    deaths: NDArray[np.int64]
    traces: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))

    @property
    def repeated(self) -> list[int]:
        """Places of the games that are another one before them once more, tick by tick."""
        _, first = np.unique(self.traces, return_index=True)
        return sorted(set(range(len(self.traces))) - set(first.tolist()))


def play_games(
    player: PlayerChoice,
    games: EvaluationGames,
    threads: int = 1,
    on_progress: Callable[[int], None] | None = None,
    complete: list[Outcomes] | None = None,
) -> Outcomes:
    """Play all ``games`` to their ends and return how they ended.

    The games are divided over ``threads`` threads, each with a player of its own, and with a real
    machine of its own where ``games`` asks for one.
    ``on_progress`` is told the number of ticks done.  Of the simulator's games, which are played
    side by side, one that is over counts as ``max_ticks``; of a real machine's as its own ticks.
    ``complete`` gets the outcomes of games that are complete: on real machines of each one as it
    ends, and on the simulator, in the end or when an exception breaks the evaluation off, of all.
    """
    numbers = np.array_split(np.arange(games.episodes), min(threads, games.episodes))
    done, lock, stop = [0] * len(numbers), Lock(), Event()
    found: list[list[Outcomes]] = [[] for _ in numbers]

    def report(share: int, ticks: int) -> None:
        with lock:
            done[share] = ticks
            if on_progress is not None:
                on_progress(sum(done))

    def keep(share: int, outcomes: Outcomes) -> None:
        found[share].append(outcomes)
        if complete is not None:
            complete.append(outcomes)

    def play(share: int) -> None:
        play_share = _play_share if games.machine is None else _play_share_in_turn
        try:
            play_share(
                player,
                games,
                numbers[share],
                stop,
                lambda ticks: report(share, ticks),
                lambda outcomes: keep(share, outcomes),
            )
        except BaseException:
            stop.set()  # The other threads need not finish.
            raise

    with ThreadPoolExecutor(len(numbers), "evaluation") as pool:
        tasks = [pool.submit(play, share) for share in range(len(numbers))]
        try:
            for task in tasks:
                task.result()
        except BaseException:
            stop.set()  # Ctrl-C arrives in this thread only.
            raise
    return joined([part for parts in found for part in parts])


def _play_share(
    choice: PlayerChoice,
    games: EvaluationGames,
    numbers: NDArray[np.int64],
    stop: Event,
    report: Callable[[int], None],
    keep: Callable[[Outcomes], None],
) -> None:
    """Play the games of these ``numbers``, until all are over or ``stop`` is set."""
    player = choice.make(numbers, games.seed)
    batch = GameBatch(len(numbers), games.settings(choice.frame_skip), observe=choice.sees_features)
    batch.reset(seeds=[games.game_seed(int(number)) for number in numbers])
    over = np.zeros(len(numbers), np.bool_)
    steps = 0
    try:
        while not over.all() and not stop.is_set():
            _, terminated, truncated = batch.step(*player.act(batch))
            over = terminated | truncated
            steps += 1
            if steps % PROGRESS_STEPS == 0:
                ticks = np.where(over, games.max_ticks, batch.games["ticks"])
                report(int(ticks.sum(dtype=np.float64)))
    finally:
        keep(_outcomes(batch, over))


def _play_share_in_turn(
    choice: PlayerChoice,
    games: EvaluationGames,
    numbers: NDArray[np.int64],
    stop: Event,
    report: Callable[[int], None],
    keep: Callable[[Outcomes], None],
) -> None:
    """The same on one real machine, one game after the other."""
    batch = make_batch(
        1, games.settings(choice.frame_skip), games.machine, observe=choice.sees_features
    )
    waiting = numbers.tolist()
    done = 0
    with closing(batch):
        while waiting and not stop.is_set():
            player = choice.make(np.array(waiting[:1]), games.seed)
            games.begin(batch, waiting[0])
            trace = blake2b(digest_size=8)
            while not (batch.terminated[0] or batch.truncated[0] or stop.is_set()):
                batch.step(*player.act(batch))
                trace.update(as_bytes(batch.ram)[0, CONTRACT_ADDRESSES])
                if batch.games["steps"][0] % PROGRESS_STEPS == 0:
                    report(done + int(batch.games["ticks"][0]))
            # A game whose machine failed says nothing: it is played again.
            over = (batch.terminated | batch.truncated) & (batch.games["status"] != LOST)
            if over[0]:
                done += int(batch.games["ticks"][0])
                keep(_outcomes(batch, over, np.frombuffer(trace.digest(), np.uint64)))
                del waiting[0]


def _outcomes(batch: GameBatch, over: NDArray[np.bool_], *traces: NDArray[np.uint64]) -> Outcomes:
    return Outcomes(
        batch.games["score"][over],
        batch.ram["cur_wave"][over].astype(np.int64) + 1,
        batch.games["ticks"][over],
        batch.truncated[over],
        batch.games["deaths"][over].astype(np.int64),
        *traces,
    )


def joined(parts: Sequence[Outcomes]) -> Outcomes:
    """Return the outcomes of all ``parts``, one after the other."""
    names = [each.name for each in fields(Outcomes)]
    return Outcomes(
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    )


def summary(outcomes: Outcomes) -> dict[str, Any]:
    """Return the figures of ``outcomes`` as plain Python types, ready for JSON.

    A game that repeats another one counts once in the interval.
    """
    scores = outcomes.scores
    low, high = bootstrap_interval([np.delete(scores, outcomes.repeated)])
    per_thousand = 1000.0 / max(int(outcomes.ticks.sum()), 1)
    deaths = outcomes.deaths.sum(axis=0)
    return {
        "scores": [int(score) for score in scores],
        "truncated": int(outcomes.truncated.sum()),
        "score_mean": float(scores.mean()),
        "score_iqm": interquartile_mean(scores),
        "score_iqm_ci95": [low, high],
        "score_median": float(np.median(scores)),
        "score_max": int(scores.max()),
        "level_mean": float(outcomes.levels.mean()),
        "level_max": int(outcomes.levels.max()),
        "ticks_mean": float(outcomes.ticks.mean()),
        "points_per_1000_ticks": float(scores.sum()) * per_thousand,
        "deaths_per_1000_ticks": float(deaths.sum()) * per_thousand,
        "deaths": {cause: int(n) for cause, n in zip(DEATH_CAUSES, deaths, strict=True)},
    }

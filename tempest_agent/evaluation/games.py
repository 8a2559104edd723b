"""Play a fixed set of greedy games, each to its end.

Taking the first games to finish of an endless batch would favour short games, so a fixed set of
games is started and each is played until it is over or reaches the tick limit.  Each game has its
own random stream, from the seed and the game's number, so that scores depend neither on the batch
size nor on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from hashlib import blake2b
from threading import Event, Lock

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.api.backend import make_batch
from tempest_agent.envs.engine.batch import GameBatch
from tempest_agent.envs.engine.game_step import LOST
from tempest_agent.envs.engine.saved_states import SAVED_SIZE
from tempest_agent.envs.engine.settings import GameSettings
from tempest_agent.envs.free_memory import too_large
from tempest_agent.envs.machine.memory import CONTRACT_ADDRESSES, as_bytes
from tempest_agent.envs.mame.mame_batch import MameBatch
from tempest_agent.envs.mame.mame_options import MameOptions
from tempest_agent.envs.mame.protocol import RANDOM_CYCLE
from tempest_agent.errors import UserError
from tempest_agent.evaluation.bands import BandCounts
from tempest_agent.evaluation.outcomes import Outcomes, joined
from tempest_agent.evaluation.players import PlayerChoice

STANDARD_EPISODES = 100
STANDARD_MAX_TICKS = 30_000
"""18 minutes of play: good players do not die, so games must be truncated."""

ENDURANCE_MAX_TICKS = 300_000
"""Three hours of play without bonus lives."""

LIMIT_TICKS = 30_000
LIMIT_POINTS = 755_000
"""Estimate of the most points that ``LIMIT_TICKS`` from level 1 allow.

The pace of the rules is the limit: 64 to 71 ticks between waves, 33 to 41 in the dive, at least 220
(levels 1 to 8) and 247 to 252 (later ones, measured with every enemy removed as it hatches) until
the last enemy has hatched, 20 to 25 for the last kill.  At 340 ticks a level at first and 370
later, that is 82 levels, and 740,000 to 770,000 points by the points a level that strong players
make; this is the middle.
"""

PROGRESS_STEPS = 256
"""Steps between two reports of progress."""


@dataclass(frozen=True)
class EvaluationGames:
    """The games of an evaluation: ``episodes`` of them, truncated after ``max_ticks`` ticks each.

    ``level``: where they start, or with ``to_level`` the lowest of the start levels, from which
    every game draws its own.  ``bonus_life``: points between bonus lives, or ``"none"``.
    ``machine``: options of the real machines, None for the simulator.

    Raises ``UserError`` for more games than fit in memory.
    """

    episodes: int = STANDARD_EPISODES
    seed: int = 0
    level: int = 1
    max_ticks: int = STANDARD_MAX_TICKS
    input_delay: int = 0
    bonus_life: int | str = 20_000
    machine: MameOptions | None = None
    to_level: int | None = None

    def __post_init__(self) -> None:
        problem = too_large(self.episodes * SAVED_SIZE)
        if problem is not None:
            raise UserError(f"episodes={self.episodes} {problem}: play fewer games")

    @property
    def most_ticks(self) -> int:
        """Ticks of all games if none ends before it is truncated."""
        return self.episodes * self.max_ticks

    def limit_share(self, score: float) -> float | None:
        """Return ``score`` as a share of ``LIMIT_POINTS``; None where that is not the limit."""
        from_level_1 = (self.level, self.to_level) == (1, None)
        return score / LIMIT_POINTS if from_level_1 and self.max_ticks == LIMIT_TICKS else None

    def settings(self, frame_skip: int, skip_idle: bool = True) -> GameSettings:
        """Return the settings of a batch whose steps last ``frame_skip`` ticks."""
        return GameSettings(
            skip_idle=skip_idle,
            start_level=(
                self.level if self.to_level is None else range(self.level, self.to_level + 1)
            ),
            bonus_life=self.bonus_life,
            frame_skip=frame_skip,
            max_ticks=self.max_ticks,
            input_delay=self.input_delay,
        )

    def expected_ticks(self, lengths: Sequence[int]) -> int:
        """Return the estimated ticks of all games, given the ``lengths`` of the finished ones."""
        mean = sum(lengths) / len(lengths) if lengths else self.max_ticks
        return sum(lengths) + round(mean * (self.episodes - len(lengths)))

    def begin(self, batch: GameBatch, number: int) -> None:
        """Start game ``number`` in ``batch``, a batch of one game."""
        if isinstance(batch, MameBatch):
            batch.moments[:] = self.moment(number)
        batch.reset(seeds=[self.game_seed(number)])

    def moment(self, number: int) -> int:
        """Return when game ``number`` starts on a real machine, unique among games of this seed."""
        stride, start = np.random.SeedSequence(self.seed).generate_state(2, np.uint64).tolist()
        stride = 1 + stride % (RANDOM_CYCLE - 1)
        return int((stride * number + start) % RANDOM_CYCLE)  # A prime, so no moment repeats.

    def game_seed(self, number: int) -> int:
        """Return the seed of one game; neighbouring values of ``seed`` share none."""
        child = np.random.SeedSequence(self.seed, spawn_key=(number,))
        return int(child.generate_state(1, np.uint64)[0])


def play_games(
    player: PlayerChoice,
    games: EvaluationGames,
    threads: int = 1,
    on_progress: Callable[[int], None] | None = None,
    complete: list[Outcomes] | None = None,
) -> Outcomes:
    """Play all ``games`` to their ends and return how they ended.

    Args:
        player: who plays.
        games: which games.
        threads: the games are divided over so many, each with its own player (and real machine).
        on_progress: called with the number of ticks done.  A finished game counts as ``max_ticks``
            on the simulator, where games run in parallel, and as its own ticks on a real machine.
        complete: gets the outcomes of complete games: of each as it ends on a real machine, of all
            at the end or at an exception on the simulator.
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
            stop.set()  # End the other threads.
            raise

    with ThreadPoolExecutor(len(numbers), "evaluation") as pool:
        tasks = [pool.submit(play, share) for share in range(len(numbers))]
        try:
            for task in tasks:
                task.result()
        except BaseException:
            stop.set()  # Ctrl-C is raised in this thread only.
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
    bands = BandCounts(batch)
    over = np.zeros(len(numbers), np.bool_)
    steps = 0
    try:
        while not over.all() and not stop.is_set():
            _, terminated, truncated = batch.step(*player.act(batch))
            bands.note_step()
            over = terminated | truncated
            steps += 1
            if steps % PROGRESS_STEPS == 0:
                ticks = np.where(over, games.max_ticks, batch.games["ticks"])
                report(int(ticks.sum(dtype=np.float64)))
    finally:
        keep(_outcomes(batch, bands, over))


def _play_share_in_turn(
    choice: PlayerChoice,
    games: EvaluationGames,
    numbers: NDArray[np.int64],
    stop: Event,
    report: Callable[[int], None],
    keep: Callable[[Outcomes], None],
) -> None:
    """Play the games of these ``numbers`` on one real machine, one after the other."""
    batch = make_batch(
        1, games.settings(choice.frame_skip), games.machine, observe=choice.sees_features
    )
    waiting = numbers.tolist()
    done = 0
    with closing(batch):
        while waiting and not stop.is_set():
            player = choice.make(np.array(waiting[:1]), games.seed)
            games.begin(batch, waiting[0])
            bands, trace = BandCounts(batch), blake2b(digest_size=8)
            while not (batch.terminated[0] or batch.truncated[0] or stop.is_set()):
                batch.step(*player.act(batch))
                bands.note_step()
                trace.update(as_bytes(batch.ram)[0, CONTRACT_ADDRESSES])
                if batch.games["steps"][0] % PROGRESS_STEPS == 0:
                    report(done + int(batch.games["ticks"][0]))
            # A game whose machine failed is played again.
            over = (batch.terminated | batch.truncated) & (batch.games["status"] != LOST)
            if over[0]:
                done += int(batch.games["ticks"][0])
                keep(_outcomes(batch, bands, over, np.frombuffer(trace.digest(), np.uint64)))
                del waiting[0]


def _outcomes(
    batch: GameBatch, bands: BandCounts, over: NDArray[np.bool_], *traces: NDArray[np.uint64]
) -> Outcomes:
    return Outcomes(
        batch.games["score"][over],
        batch.ram["cur_wave"][over].astype(np.int64) + 1,
        batch.games["ticks"][over],
        batch.truncated[over],
        batch.games["deaths"][over].astype(np.int64),
        bands.counts()[over],
        *traces,
    )

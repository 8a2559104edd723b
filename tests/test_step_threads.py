"""The threads of a batch: every game once, whoever is late, fails or is gone."""

from __future__ import annotations

import gc
import os
import pickle
import threading
import weakref
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tempest_agent.envs import batch as batch_module
from tempest_agent.envs.arcade.compiled import kernel
from tempest_agent.envs.batch import GameBatch
from tempest_agent.envs.settings import GameSettings
from tempest_agent.envs.shares import CHUNK, claim, finish, finished, linger, new_shares
from tempest_agent.envs.threads import StepThreads


@kernel
def take(shares: NDArray[np.int64], share: int, total: int) -> tuple[int, int]:
    return claim(shares, share, total)


@kernel
def play(
    shares: NDArray[np.int64], share: int, total: int, played: NDArray[np.int64], work: int
) -> None:
    while True:
        start, stop = claim(shares, share, total)
        if start == stop:
            break
        for game in range(start, stop):
            for _ in range(work):
                played[game] += 1
        finish(shares, stop - start)
    if share == 0:
        linger(shares, total)


def thread_count() -> int:
    return sum(thread.name.startswith("tempest-games") for thread in threading.enumerate())


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("total", [1, 7, 8, 64, 1000])
def test_a_list_is_given_out_once_own_share_first(threads: int, total: int) -> None:
    shares = new_shares(total, threads)
    random = np.random.default_rng(total)
    first = [take(shares, share, total) for share in range(threads)]
    own = [(total * share // threads, total * (share + 1) // threads) for share in range(threads)]
    for (start, stop), (low, high) in zip(first, own, strict=True):
        if total >= threads:
            assert (start, stop) == (low, min(low + CHUNK, high))
    games = [game for start, stop in first for game in range(start, stop)]
    while True:
        start, stop = take(shares, int(random.integers(threads)), total)
        if start == stop:
            break
        games += range(start, stop)
    assert sorted(games) == list(range(total))
    assert all(take(shares, share, total) == (0, 0) for share in range(threads))


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_every_game_is_played_once_in_every_step(threads: int) -> None:
    crew = StepThreads(threads)
    played = np.zeros(500, np.int64)
    for step in range(1, 401):
        crew.run(lambda shares, share: play(shares, share, 500, played, 5), 500)
        assert (played == 5 * step).all()
    crew.close()


def test_a_thread_that_never_comes_holds_nobody_up() -> None:
    crew = StepThreads(2)
    played = np.zeros(50, np.int64)
    free = threading.Event()
    lists = []

    def work(shares: NDArray[np.int64], share: int) -> None:
        if share != 0:
            free.wait()
        else:
            lists.append(shares)
        play(shares, share, 50, played, 1)

    crew.run(work, 50)
    crew.run(work, 50)
    assert (played == 2).all()
    free.set()
    crew.close()
    # What it found when it came was a list with nothing left.
    assert (played == 2).all()
    assert [finished(shares) for shares in lists] == [50, 50]


def test_the_caller_waits_for_games_that_another_plays() -> None:
    crew = StepThreads(2)
    began, release = threading.Event(), threading.Event()

    def work(shares: NDArray[np.int64], share: int) -> None:
        if share == 0:
            assert began.wait(30)
            threading.Timer(0.05, release.set).start()
            return
        take(shares, 1, 2 * CHUNK)
        took_other = take(shares, 1, 2 * CHUNK)
        assert took_other == (0, CHUNK)
        began.set()
        assert release.wait(30)
        shares[-8] = 2 * CHUNK

    crew.run(work, 2 * CHUNK)
    assert release.is_set()
    crew.close()


def test_what_a_thread_raises_comes_to_the_caller_and_the_next_step_works() -> None:
    crew = StepThreads(2)

    def work(shares: NDArray[np.int64], share: int) -> None:
        if share == 1:
            raise MemoryError("no room in thread 1")

    with pytest.raises(MemoryError, match="no room in thread 1"):
        crew.run(work, 50)
    played = np.zeros(50, np.int64)
    crew.run(lambda shares, share: play(shares, share, 50, played, 1), 50)
    assert (played == 1).all()
    crew.close()


def test_an_interrupted_step_is_finished_before_the_interrupt_is_raised() -> None:
    crew = StepThreads(2)
    played = np.zeros(50, np.int64)
    pressed = []

    def work(shares: NDArray[np.int64], share: int) -> None:
        if share == 0 and not pressed:
            pressed.append(True)
            raise KeyboardInterrupt
        play(shares, share, 50, played, 1)

    with pytest.raises(KeyboardInterrupt):
        crew.run(work, 50)
    assert (played == 1).all()
    crew.close()


def settled(batch: GameBatch) -> GameBatch:
    batch.reset(seeds=1)
    batch.step(np.zeros(batch.num_games, np.int8), np.zeros(batch.num_games, np.uint8))
    return batch


def test_threads_end_with_their_batch() -> None:
    before = thread_count()
    batches = [settled(GameBatch(20, num_threads=3)) for _ in range(3)]
    assert thread_count() == before + 6
    batches[0].close()
    assert thread_count() == before + 4
    gone = weakref.ref(batches[1])
    workers = [each for each in threading.enumerate() if each.name.startswith("tempest-games")]
    del batches
    gc.collect()
    for worker in workers:
        worker.join(30)
    assert gone() is None
    assert thread_count() == before


def test_a_pickled_batch_and_a_forked_one_make_threads_of_their_own() -> None:
    settings = GameSettings(start_level=range(1, 20))
    batch = settled(GameBatch(40, settings, num_threads=2))
    again = pickle.loads(pickle.dumps(batch))
    action = np.ones(40, np.int8), np.ones(40, np.uint8)
    child = os.fork()
    if child == 0:
        batch.step(*action)
        batch.close()
        os._exit(hash(batch.clone().tobytes()) % 251)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    for each in (batch, again):
        each.step(*action)
        each.close()
    assert batch.clone().tobytes() == again.clone().tobytes()
    assert status == hash(batch.clone().tobytes()) % 251


def test_a_failing_kernel_is_the_callers_error(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = settled(GameBatch(40, num_threads=2))

    def broken(*_arguments: Any) -> None:
        raise RuntimeError("the kernel failed")

    action = np.ones(40, np.int8), np.ones(40, np.uint8)
    with monkeypatch.context() as patch:
        patch.setattr(batch_module, "step_games", broken)
        with pytest.raises(RuntimeError, match="the kernel failed"):
            batch.step(*action)
    batch.close()

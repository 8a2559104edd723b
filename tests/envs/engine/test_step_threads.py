"""The threads of a batch: their life, and what happens when one fails."""

from __future__ import annotations

import gc
import os
import pickle
import threading
import weakref
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tempest_agent.envs.engine import threads
from tempest_agent.envs.engine.batch import GameBatch
from tempest_agent.envs.engine.settings import GameSettings
from tempest_agent.envs.engine.step_kernels import ENDED


def thread_count() -> int:
    return sum(thread.name.startswith("tempest-games") for thread in threading.enumerate())


def settled(batch: GameBatch) -> GameBatch:
    batch.reset(seeds=1)
    batch.step(np.zeros(batch.num_games, np.int8), np.zeros(batch.num_games, np.uint8))
    return batch


def test_threads_end_with_their_batch() -> None:
    gc.collect()  # Batches of other tests, which would end at any time.
    before = thread_count()
    batches = [settled(GameBatch(20, num_threads=2)) for _ in range(3)]
    assert thread_count() == before + 3
    batches[0].close()
    assert thread_count() == before + 2
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


def test_threads_that_cannot_all_start_leave_none(monkeypatch: pytest.MonkeyPatch) -> None:
    batch, reference = (settled(GameBatch(40, num_threads=count)) for count in (4, 1))
    action = np.ones(40, np.int8), np.ones(40, np.uint8)
    before = threading.active_count()
    begun: list[threading.Thread] = []

    def start(thread: threading.Thread) -> None:
        if len(begun) == 2:
            raise RuntimeError("can't start new thread")
        begun.append(thread)
        real(thread)

    real = threading.Thread.start
    batch.close()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        with pytest.raises(RuntimeError, match="new thread"):
            batch.step(*action)
    assert not any(thread.is_alive() for thread in begun)
    for each in (batch, reference):
        each.step(*action)
        each.close()
    assert threading.active_count() <= before
    assert batch.clone().tobytes() == reference.clone().tobytes()


def test_a_failing_kernel_is_the_callers_error(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = settled(GameBatch(40, num_threads=2))
    before = batch.clone()

    def broken(_job: Any, *_arrays: Any) -> int:
        raise RuntimeError("the kernel failed")

    action = np.ones(40, np.int8), np.ones(40, np.uint8)
    with monkeypatch.context() as patch:
        patch.setattr(threads, "open_step", broken)
        with pytest.raises(RuntimeError, match="the kernel failed"):
            batch.step(*action)
    np.testing.assert_array_equal(batch.clone(), before)
    batch.step(*action)
    assert (batch.games["ticks"] == 2).all()
    batch.close()


def test_an_interrupt_ends_a_step_only_when_no_thread_plays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    batch = settled(GameBatch(40, num_threads=2))
    answers = [False, False, True]

    def interrupted(_seconds: float) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(threads, "finished", lambda _job: answers.pop(0))
        # Only here: other threads of this process may be asleep.
        patch.setattr(threads, "time", SimpleNamespace(sleep=interrupted))
        with pytest.raises(KeyboardInterrupt):
            batch.step(np.ones(40, np.int8), np.ones(40, np.uint8))
    assert answers == []
    assert (batch.games["ticks"] == 2).all()
    batch.close()


def test_any_number_of_threads_plays_the_same() -> None:
    settings = GameSettings(start_level=range(1, 30), skip_idle=False)
    random = np.random.default_rng(2)
    batches = [GameBatch(90, settings, num_threads=number) for number in (1, 2, 3, 7)]
    for batch in batches:
        batch.reset(seeds=5)
    for _ in range(60):
        action = random.integers(-31, 32, 90, np.int8), random.integers(0, 4, 90, np.uint8)
        for batch in batches:
            batch.step(*action)
    for batch in batches[1:]:
        np.testing.assert_array_equal(batch.clone(), batches[0].clone())
        np.testing.assert_array_equal(batch.codes, batches[0].codes)
        batch.close()


def test_the_caller_plays_the_share_of_a_thread_that_never_wakes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alone, late = GameBatch(50), GameBatch(50, num_threads=2)
    for batch in (alone, late):
        batch.reset(seeds=4)
    with monkeypatch.context() as patch:
        patch.setattr(threads._Worker, "wake", lambda _worker: None)
        for _ in range(5):
            for batch in (alone, late):
                batch.step(np.full(50, 9, np.int8), np.ones(50, np.uint8))
    np.testing.assert_array_equal(late.clone(), alone.clone())
    late.close()


def test_what_happened_in_a_step_is_gathered_from_all_threads() -> None:
    settings = GameSettings(lives=2, start_level=range(20, 90), frame_skip=4)
    batches = [GameBatch(30, settings, num_threads=number) for number in (1, 3)]
    for batch in batches:
        batch.reset(seeds=6)
    told = []
    for _ in range(200):
        for batch in batches:
            batch.step(np.zeros(30, np.int8), np.zeros(30, np.uint8))
        one, three = batches
        assert one.happened == three.happened
        assert bool(three.happened & ENDED) == bool((three.terminated | three.truncated).any())
        told.append(three.happened)
    batches[1].close()
    assert {0, ENDED} == set(told)


def test_start_levels_can_change_between_steps_of_threads() -> None:
    settings = GameSettings(max_ticks=2)
    batches = [GameBatch(40, settings, autoreset=True, num_threads=number) for number in (1, 2)]
    for batch in batches:
        batch.reset(seeds=7)
    for level in (3, 40, 77):
        for batch in batches:
            batch.set_start_levels([level])
            for _ in range(3):
                batch.step(np.zeros(40, np.int8), np.zeros(40, np.uint8))
            assert (batch.ram["cur_wave"] == level - 1).all()
    np.testing.assert_array_equal(batches[0].clone(), batches[1].clone())
    batches[1].close()

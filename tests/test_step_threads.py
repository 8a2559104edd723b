"""The threads of a batch: their life, and what happens when one fails."""

from __future__ import annotations

import gc
import os
import pickle
import threading
import weakref
from typing import Any

import numpy as np
import pytest

from tempest_agent.envs import batch as batch_module
from tempest_agent.envs.batch import GameBatch
from tempest_agent.envs.settings import GameSettings


def thread_count() -> int:
    return sum(thread.name.startswith("tempest-games") for thread in threading.enumerate())


def settled(batch: GameBatch) -> GameBatch:
    batch.reset(seeds=1)
    batch.step(np.zeros(batch.num_games, np.int8), np.zeros(batch.num_games, np.uint8))
    return batch


def test_threads_end_with_their_batch() -> None:
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

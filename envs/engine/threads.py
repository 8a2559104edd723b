"""``StepThreads``: threads that play the steps of a batch together with their caller."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .step_kernels import NOTHING, REFUSED, open_step, step_games
from .work_sharing import finished, happened_in, leave_no_games

_NAP = 50e-6
# Seconds between two checks of a thread that something else keeps from its last games.


class StepThreads:
    """The caller and ``num_threads - 1`` more, which sleep between two steps.

    The caller wakes them, starts with its own share of the games at once, and plays those of a
    thread that is late as well.  The threads start with the first step and end with ``close``.

    ``arrays``: those whose addresses are in ``job``; they live as long as the threads.
    """

    def __init__(self, job: NDArray[np.int64], arrays: Any, num_threads: int) -> None:
        self._job = job
        self._arrays = arrays
        self._num_threads = num_threads
        self._held: Any = None
        self._workers: list[_Worker] = []
        self._process = 0

    def step(self, *arrays: Any) -> int:
        """Play a step with ``arrays`` as ``step_games`` takes them; return what happened in it."""
        # Threads do not survive a fork: a child process starts its own.
        if self._process != os.getpid():
            self._start()
        # Kept for the threads, should an interrupt end this function before they have finished.
        self._held = arrays
        try:
            if open_step(self._job, *arrays) == REFUSED:
                return REFUSED
            for worker in self._workers:
                worker.wake()
        finally:
            self._play()
        self._held = None
        return happened_in(self._job)

    def close(self) -> None:
        """End the threads; the next step starts new ones."""
        if self._process != os.getpid():
            return
        workers = self._workers
        for worker in workers:
            worker.over = True
            worker.wake()
        # Not before: after an interrupt in the lines above this can be called again.
        self._process = 0
        for worker in workers:
            if worker is not threading.current_thread() and worker.ident is not None:
                worker.join()

    def _start(self) -> None:
        leave_no_games(self._job)
        self._workers = []
        self._process = os.getpid()
        try:
            for share in range(1, self._num_threads):
                self._workers.append(_Worker(share, self._job, self._arrays))
                self._workers[-1].start()
        except BaseException:
            self.close()
            raise

    def _play(self) -> None:
        """Play the caller's part of an open step, and wait for the others; whole in any case."""
        interrupted = None
        while not finished(self._job):
            try:
                step_games(self._job, 0, *NOTHING)
                if not finished(self._job):
                    time.sleep(_NAP)
            except KeyboardInterrupt as pressed:
                interrupted = pressed
        if interrupted is not None:
            raise interrupted


class _Worker(threading.Thread):
    """One thread; it knows the job and its arrays alone, so that it keeps no batch alive."""

    def __init__(self, share: int, job: NDArray[np.int64], arrays: Any) -> None:
        super().__init__(name=f"tempest-games-{share}", daemon=True)
        self.over = False
        self._share = share
        self._job = job
        self._arrays = arrays
        self._asleep = threading.Lock()
        self._asleep.acquire()

    def wake(self) -> None:
        """End its sleep, or the next one if it is awake; one thread may call this at a time."""
        if self._asleep.locked():
            self._asleep.release()

    def run(self) -> None:
        while self._asleep.acquire() and not self.over:
            step_games(self._job, self._share, *NOTHING)

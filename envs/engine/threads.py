"""``StepThreads``: threads that play the steps of a batch together with their caller."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .step_job import HAPPENED
from .step_kernels import NOTHING, UNFINISHED, step_games
from .work_sharing import clear_shares, dismiss, dismissed, finished, take_sleeper

_NAP = 50e-6
# Seconds between two looks at a thread that something else keeps from its last games.


class StepThreads:
    """The caller and ``num_threads - 1`` more.

    Nobody waits for a thread to begin: the caller starts with its own share of the games at once,
    and plays those of a thread that is late as well.  After a step the threads stay awake inside
    compiled code for a while, so that steps that follow each other closely wake nobody.

    They begin with the first step, and end with ``close``.

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
        """Play a step with ``arrays`` as ``step_games`` takes them; what happened in it."""
        job = self._job
        # Threads do not survive a fork: a child process makes its own.
        if self._process != os.getpid():
            self._start()
        # Kept for the threads, should an interrupt end this function before they are through.
        self._held = arrays
        for worker in self._workers:
            if take_sleeper(job, worker.share):
                worker.wake()
        try:
            happened = step_games(job, 0, *arrays)
        finally:
            self._wait()
        self._held = None
        return job.item(HAPPENED) if happened & UNFINISHED else happened

    def close(self) -> None:
        """End the threads; the next step starts new ones."""
        if self._process != os.getpid():
            return
        workers = self._workers
        for worker in workers:
            worker.over = True
        dismiss(self._job)
        for worker in workers:
            worker.wake()
        # Not before: who interrupts the lines above can call this again.
        self._process = 0
        for worker in workers:
            if worker is not threading.current_thread() and worker.ident is not None:
                worker.join()

    def _start(self) -> None:
        clear_shares(self._job)
        self._workers = []
        self._process = os.getpid()
        try:
            for share in range(1, self._num_threads):
                self._workers.append(_Worker(share, self._job, self._arrays))
                self._workers[-1].start()
        except BaseException:
            self.close()
            raise

    def _wait(self) -> None:
        interrupted = None
        while not finished(self._job):
            try:
                time.sleep(_NAP)
            except KeyboardInterrupt as pressed:
                interrupted = pressed
        if interrupted is not None:
            raise interrupted


class _Worker(threading.Thread):
    """One thread; it knows the job and its arrays alone, so that it keeps no batch alive."""

    def __init__(self, share: int, job: NDArray[np.int64], arrays: Any) -> None:
        super().__init__(name=f"tempest-games-{share}", daemon=True)
        self.share = share
        self.over = False
        """Set once it is to end: the job's own word may be taken back by threads begun later."""
        self._job = job
        self._arrays = arrays
        self._asleep = threading.Lock()
        self._asleep.acquire()

    def wake(self) -> None:
        """End its sleep, or the next one if it is awake; one thread may call this at a time."""
        if self._asleep.locked():
            self._asleep.release()

    def run(self) -> None:
        while not self._ends():
            # The arrays of every step it finds in the job.
            step_games(self._job, self.share, *NOTHING)
            if not self._ends():
                self._asleep.acquire()

    def _ends(self) -> bool:
        return self.over or dismissed(self._job)

"""``StepThreads``: threads that wait for the next step of a batch."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .shares import finished, new_shares

Work: TypeAlias = Callable[[NDArray[np.int64], int], None]
"""``work(shares, share)``: play games of the list ``shares``, those of number ``share`` first."""


class StepThreads:
    """The caller and ``num_threads - 1`` more, which play the steps of a batch together.

    Waking a thread costs more than handing it a game, so nobody ever waits for one to begin: the
    caller starts with its own games at once, and plays those of a thread that is late as well.
    The threads end when the object is collected or ``close`` is called.
    """

    def __init__(self, num_threads: int) -> None:
        self._board = _Board()
        self._others = [_Worker(share, self._board) for share in range(1, num_threads)]
        for worker in self._others:
            worker.start()

    def run(self, work: Work, total: int) -> None:
        """Let all threads ``work`` until ``total`` games are finished; raises what one raised."""
        board = self._board
        shares = new_shares(total, len(self._others) + 1)
        board.error = None
        board.job = (work, shares)
        for worker in self._others:
            worker.wake()
        interrupted = None
        try:
            try:
                work(shares, 0)
            except KeyboardInterrupt as pressed:
                # A step that is half played would be lost: it is finished first.
                interrupted = pressed
                work(shares, 0)
            interrupted = board.wait(shares, total) or interrupted
        finally:
            board.job = None
        board.raise_error()
        if interrupted is not None:
            raise interrupted

    def close(self) -> None:
        """End the threads."""
        self._dismiss()
        for worker in self._others:
            worker.join()

    def __del__(self) -> None:
        self._dismiss()

    def _dismiss(self) -> None:
        self._board.closed = True
        for worker in self._others:
            worker.wake()


class _Board:
    """What the threads know of each other."""

    def __init__(self) -> None:
        self.job: tuple[Work, NDArray[np.int64]] | None = None
        self.closed = False
        self.error: BaseException | None = None
        self.awaited = False
        self.progress = threading.Event()

    def raise_error(self) -> None:
        """Raise what a thread raised in this step."""
        if self.error is not None:
            raise self.error

    def wait(self, shares: NDArray[np.int64], total: int) -> KeyboardInterrupt | None:
        """Until all games are finished or a thread has failed; an interrupt is put off."""
        interrupted = None
        self.awaited = True
        while self.error is None:
            self.progress.clear()
            # After the clearing: who finishes from now on sets it again.
            if finished(shares) == total:
                break
            try:
                self.progress.wait()
            except KeyboardInterrupt as pressed:
                interrupted = pressed
        self.awaited = False
        return interrupted


class _Worker(threading.Thread):
    """One thread; it knows the board alone, so that it keeps no batch alive."""

    def __init__(self, share: int, board: _Board) -> None:
        super().__init__(name=f"tempest-games-{share}", daemon=True)
        self._share = share
        self._board = board
        self._asleep = threading.Lock()
        self._asleep.acquire()

    def wake(self) -> None:
        """Let it look at the board; only one thread may call this at a time."""
        if self._asleep.locked():
            self._asleep.release()

    def run(self) -> None:
        board = self._board
        while not board.closed:
            self._asleep.acquire()
            job = board.job
            if job is not None:
                try:
                    job[0](job[1], self._share)
                except BaseException as error:
                    board.error = error
                    board.progress.set()
            if board.awaited:
                board.progress.set()
            job = None

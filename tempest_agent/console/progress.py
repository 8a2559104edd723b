"""Show progress on stderr: a bar on a terminal, otherwise a plain line now and then."""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from tqdm import tqdm

PLAIN_INTERVAL = 10.0
"""Seconds between two lines if stderr is not a terminal."""

FOLLOWING_INTERVAL = 1.0
"""Seconds between two updates of ``following``."""

RATE_WINDOW = 30.0
"""The rate covers this many last seconds, because it changes during a long run."""


class Progress:
    """Shows how much of ``total`` is done, with the rate and the remaining time.

    ``start`` was done before (a resumed run): it counts as done but not for the rate, which covers
    the last ``window`` seconds.  Use it in a ``with`` block.
    """

    def __init__(
        self,
        total: int,
        unit: str,
        label: str,
        start: int = 0,
        stream: TextIO | None = None,
        window: float = RATE_WINDOW,
    ) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._total, self._unit, self._label = total, unit, label
        self._start = self._done = min(start, total)
        self._window = window
        self._recent: deque[tuple[float, int]] = deque()
        self._next_line = time.monotonic() + PLAIN_INTERVAL
        self._bar: tqdm[Any] | None = None
        if self._stream.isatty():
            self._bar = tqdm(
                total=total,
                initial=self._start,
                unit=f" {unit}",
                unit_scale=True,
                desc=label,
                file=self._stream,
                dynamic_ncols=True,
                leave=False,
            )

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def rename(self, label: str) -> None:
        """Show ``label`` from now on."""
        self._label = label
        if self._bar is not None:
            self._bar.set_description(label)

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.close()

    def update(self, done: int, total: int | None = None) -> None:
        """Show that ``done`` of the total are finished, at most all of them.

        ``total`` is a new estimate of the total.
        """
        now = time.monotonic()
        if total is not None:
            self._total = max(total, done)
        done = min(done, self._total)
        if done < self._done:
            self._go_back(done)
        if self._bar is not None:
            self._bar.total = self._total
            self._bar.update(done - self._done)
        elif done > self._start:
            # Compiling and loading before the first step do not count for the rate.
            self._recent.append((now, done))
            while len(self._recent) > 2 and self._recent[1][0] <= now - self._window:
                self._recent.popleft()
        self._done = done
        if self._bar is None and now >= self._next_line:
            self._next_line = now + PLAIN_INTERVAL
            self._write(self._line(now))

    def _go_back(self, done: int) -> None:
        """Go back to ``done``, because work is repeated, and restart the measurement."""
        self._start = self._done = done
        self._recent.clear()
        if self._bar is not None:
            self._bar.initial = 0  # Read by reset().
            self._bar.reset()
            self._bar.initial = self._bar.n = self._bar.last_print_n = done

    def message(self, text: str, stream: TextIO | None = None) -> None:
        """Print ``text`` on a line of its own, above the bar; to stderr, or to ``stream``."""
        tqdm.write(text, file=stream or self._stream)

    def _line(self, now: float) -> str:
        share = 100.0 * self._done / max(self._total, 1)
        line = f"{self._label}: {self._done:,}/{self._total:,} {self._unit} ({share:.0f} %)"
        if not self._recent:
            return f"{line}, starting"
        then, before = self._recent[0]
        if self._done == before:
            return f"{line}, waiting" if now > then else line
        rate = (self._done - before) / max(now - then, 1e-9)
        return f"{line}, {speed(rate)}/s, {duration((self._total - self._done) / rate)} left"

    def _write(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()


@contextmanager
def following(
    progress: Progress, done: Callable[[], int], lost: Callable[[], None]
) -> Iterator[None]:
    """Update ``progress`` from ``done`` in a thread while the block runs.

    If nothing can be written any more, the thread calls ``lost`` and ends.
    """
    finished = threading.Event()

    def watch() -> None:
        while not finished.wait(FOLLOWING_INTERVAL):
            try:
                progress.update(done())
            except OSError:
                lost()
                return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        finished.set()
        thread.join()


def speed(rate: float) -> str:
    """Return ``rate`` as text, with one decimal below 10 and two digits below 1.

    >>> speed(12_345.6), speed(10.4), speed(9.87), speed(0.5), speed(0.0123), speed(0)
    ('12,346', '10', '9.9', '0.50', '0.012', '0')
    """
    if rate >= 9.95 or rate == 0:
        return f"{rate:,.0f}"
    return f"{rate:.1f}" if rate >= 0.995 else f"{rate:#.2g}"


def duration(seconds: float) -> str:
    """Return ``seconds`` as text for people.

    >>> duration(42), duration(200), duration(7300)
    ('42 s', '3 min 20 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"

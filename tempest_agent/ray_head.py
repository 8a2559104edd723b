"""Whether Ray still runs: its processes here, and the head of its cluster.

Ray itself tries to reach a lost head for a minute, and then ends the process whatever it is at:
nothing could be saved.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tempest_agent.errors import UserError, one_line
from tempest_agent.ray_cluster import require_listening, without_colours

INTERVAL = 2.0
"""Seconds between two looks."""

GRACE = 20.0
"""Seconds for which a head may be silent: some clusters begin theirs anew."""


class HeadWatch:
    """Knocks at the head's port now and then, from a thread of its own.

    One that has never answered does not count as lost: it may be out of sight from here.

    Args:
        address: ``"host:port"``.
        knock: raises ``OSError`` where nobody answers.
        grace: seconds after which a silent head is lost.
        clock: seconds.
    """

    def __init__(
        self,
        address: str,
        knock: Callable[[str], None] = require_listening,
        grace: float = GRACE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._address, self._knock, self._grace, self._clock = address, knock, grace, clock
        self._answered: float | None = None
        self._lost = ""
        self._closed = threading.Event()

    @property
    def lost(self) -> str:
        """Why the head counts as lost, in one line; empty if it does not."""
        return self._lost

    def begin(self, interval: float = INTERVAL) -> None:
        """Look every ``interval`` seconds until ``close``, from a thread."""
        threading.Thread(target=self._watch, args=(interval,), name="ray-head", daemon=True).start()

    def close(self) -> None:
        """Look no longer."""
        self._closed.set()

    def look(self) -> bool:
        """Knock once; whether somebody answers, or never has."""
        try:
            self._knock(self._address)
        except OSError as error:
            silent = 0.0 if self._answered is None else self._clock() - self._answered
            if silent >= self._grace:
                self._lost = (
                    f"the head of the Ray cluster at {self._address} has not answered for "
                    f"{silent:.0f} s ({one_line(error)}): the cluster was stopped, or the machine "
                    "of its head is lost"
                )
            return self._answered is None
        self._answered, self._lost = self._clock(), ""
        return True

    @contextmanager
    def guard(self, ray: Any, kind: type[UserError]) -> Iterator[None]:
        """For what is asked of the module ``ray``: fails as ``kind`` where Ray has ended."""
        if self._lost:
            raise kind(self._lost)
        with failing_as(kind, ray):
            yield

    def _watch(self, interval: float) -> None:
        while not self._closed.is_set():
            self.look()
            self._closed.wait(interval)


@contextmanager
def failing_as(kind: type[UserError], ray: Any) -> Iterator[None]:
    """For what is asked of the module ``ray``: its own failures become a ``kind``, in one line."""
    try:
        yield
    except (OSError, RuntimeError, ray.exceptions.RayError) as error:
        raise kind(
            f"Ray has ended on this machine ({without_colours(one_line(error))[:200]}): see its "
            "logs in /tmp/ray/session_latest/logs"
        ) from error


def watch_head(ray: Any) -> HeadWatch:
    """A watch, at work, on the head of the cluster that the module ``ray`` is connected to."""
    head = HeadWatch(ray.get_runtime_context().gcs_address, grace=GRACE)
    head.look()
    head.begin()
    return head

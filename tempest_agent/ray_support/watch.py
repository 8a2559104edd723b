"""Watch whether Ray still runs: its raylet on this machine, and the head of its cluster.

If one of them is lost, Ray kills this process after a while, and nothing could be saved: after a
minute without the head, a quarter of one without the raylet.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tempest_agent.errors import UserError, one_line
from tempest_agent.ray_support.cluster import LOGS, reason_of, require_listening

INTERVAL = 1.0
"""Seconds between two checks."""

HEAD_GRACE = 20.0
"""Seconds for which a head may be silent: some clusters restart theirs."""

RAYLET_GRACE = 2.0
"""The same for a raylet, which is never restarted."""


@dataclass
class Post:
    """A server of Ray.

    One that has never answered does not count as lost: it may be unreachable from here.

    Attributes:
        address: ``"host:port"``.
        grace: seconds of silence after which it counts as lost.
        patience: seconds for which Ray surely keeps this process alive after that.
        line: the message, with placeholders for the time and the reason.
    """

    address: str
    grace: float
    patience: float
    line: str
    answered: float | None = None
    lost: str = ""

    def look(self, knock: Callable[[str], None], clock: Callable[[], float]) -> bool:
        """Knock once; return whether it answers or has never answered."""
        try:
            knock(self.address)
        except OSError as error:
            if self.answered is None:
                return True
            silent = clock() - self.answered
            if silent >= self.grace:
                self.lost = self.line.format(seconds=f"{silent:.0f} s", reason=one_line(error))
            return False
        self.answered, self.lost = clock(), ""
        return True


def head_at(address: str) -> Post:
    """Return the head of a cluster as a post to watch."""
    line = (
        f"the head of the Ray cluster at {address} has not answered for {{seconds}} ({{reason}}): "
        "the cluster was stopped, or the machine of its head is lost"
    )
    return Post(address, HEAD_GRACE, 15.0, line)


def raylet_at(address: str) -> Post:
    """Return the raylet of this machine as a post to watch."""
    line = (
        f"Ray has ended on this machine: its raylet at {address} has not answered for {{seconds}} "
        f"({{reason}}); {LOGS}"
    )
    return Post(address, RAYLET_GRACE, 3.0, line)


class RayWatch:
    """Checks the ports of Ray's servers periodically, from its own thread.

    Args:
        posts: the servers.
        knock: raises ``OSError`` if nobody answers.
        clock: returns seconds.
    """

    def __init__(
        self,
        posts: Sequence[Post],
        knock: Callable[[str], None] = require_listening,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._posts, self._knock, self._clock = posts, knock, clock
        self._closed = threading.Event()

    @property
    def lost(self) -> str:
        """Why Ray counts as lost, in one line; empty if it runs."""
        return next((post.lost for post in self._posts if post.lost), "")

    @property
    def patience(self) -> float:
        """Seconds for which Ray keeps this process alive after a loss was found."""
        return min((post.patience for post in self._posts if post.lost), default=0.0)

    def begin(self, interval: float = INTERVAL) -> None:
        """Check every ``interval`` seconds in a thread, until ``close``."""
        threading.Thread(
            target=self._watch, args=(interval,), name="ray-watch", daemon=True
        ).start()

    def close(self) -> None:
        """Stop checking."""
        self._closed.set()

    def look(self) -> bool:
        """Check all posts once; return whether every one answers or has never answered."""
        return all([post.look(self._knock, self._clock) for post in self._posts])

    @contextmanager
    def guard(self, ray: Any, kind: type[UserError]) -> Iterator[None]:
        """Guard calls to the module ``ray``: raise ``kind`` if Ray is lost."""
        if self.lost:
            raise kind(self.lost)
        with failing_as(kind, ray):
            yield

    def _watch(self, interval: float) -> None:
        while not self._closed.is_set():
            self.look()
            self._closed.wait(interval)


@contextmanager
def failing_as(kind: type[UserError], ray: Any) -> Iterator[None]:
    """Guard calls to the module ``ray``: turn its failures into a ``kind`` of one line."""
    try:
        yield
    except (OSError, RuntimeError, ray.exceptions.RayError) as error:
        why = reason_of(error)
        raise kind(f"Ray has ended on this machine ({why}): {LOGS}") from error


def watch_over(ray: Any) -> RayWatch:
    """Start and return a watch over the cluster that the module ``ray`` is connected to."""
    context = ray.get_runtime_context()
    here = context.get_node_id()
    posts = [head_at(context.gcs_address)]
    posts += [
        raylet_at(f"{node['NodeManagerAddress']}:{node['NodeManagerPort']}")
        for node in ray.nodes()
        if node["NodeID"] == here
    ]
    watch = RayWatch(posts)
    watch.look()
    watch.begin()
    return watch

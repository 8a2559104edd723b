"""An executor whose actors die, delay, repeat and hang as a script says, on a clock of its own.

Every row of play carries who made it: actor, incarnation, and how many steps that incarnation had
played before.  So a test can see what was handed on twice, out of order or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tempest_agent.actors.executor import ActorLostError, ChunkLostError, Host
from tempest_agent.actors.messages import ActorShare, Chunk, Order
from tempest_agent.actors.snapshot import Snapshot

FATES = ("fine", "slow", "dies", "dies_after", "hangs", "lost", "repeats")
"""What can become of an order: answered (at once or late), the actor dies before or after playing
it, never answers, the answer is lost on its way, or the answer before it comes again."""


def snapshot(version: int) -> Snapshot:
    return Snapshot.of(version, version, None, np.full(3, version, np.float32))


class CountingPlayer:
    """Rows that tell where they come from: ``games`` games, ``serial`` counts the steps."""

    def __init__(self, part: ActorShare, games: int = 2) -> None:
        self.part, self.games, self.played = part, games, 0

    def play(self, order: Order, snapshot: Snapshot) -> Chunk:
        snapshot.check()
        shape = (order.steps, self.games)
        serial = self.played + np.arange(order.steps)
        self.played += order.steps
        columns = {
            "incarnation": np.full(shape, self.part.incarnation),
            "serial": np.broadcast_to(serial[:, None], shape),
            "weights": np.full(shape, snapshot.values[0]),
        }
        part = self.part
        return Chunk(part.actor, part.incarnation, order.number, snapshot.version, columns)


class _Worker:
    def __init__(self, host: Host, part: ActorShare) -> None:
        self.host, self.part = host, part
        self.free_at = 0.0
        self.stuck = self.dead = False
        self.before: Chunk | None = None


class FakeExecutor:
    """``fate()`` is asked once per order sent; ``now`` moves only while the pool waits."""

    def __init__(self, fate: Callable[[], str], games: int = 2) -> None:
        self.fate, self.games = fate, games
        self.now = 0.0
        self.workers: list[_Worker] = []
        self.answers: dict[int, tuple[_Worker, float, Any]] = {}
        self.closed = False
        self.highest = -1
        """Number of the last order of any actor."""
        self._tickets = 0

    def clock(self) -> float:
        return self.now

    def put(self, snapshot: Snapshot) -> Any:
        return snapshot

    def start(self, part: ActorShare) -> Any:
        worker = _Worker(Host(lambda each: CountingPlayer(each, self.games), part), part)
        worker.free_at = self.now
        self.workers.append(worker)
        return worker

    def submit(self, worker: Any, order: Order, weights: Any) -> int:
        self._tickets += 1
        self.highest = max(self.highest, order.number)
        self.answers[self._tickets] = (worker, *self._answer(worker, order, weights))
        return self._tickets

    def _answer(self, worker: _Worker, order: Order, weights: Any) -> tuple[float, Any]:
        fate = self.fate()
        worker.free_at = max(worker.free_at, self.now) + (5.0 if fate == "slow" else 0.1)
        if worker.dead:
            return worker.free_at, ActorLostError("it is dead")
        if fate == "hangs" or worker.stuck:
            worker.stuck = True
            return float("inf"), None
        if fate == "dies":
            worker.dead = True
            return worker.free_at, ActorLostError("killed", "Traceback of the actor")
        chunk = worker.host.play(order, weights)
        if fate == "dies_after":
            worker.dead = True
            return worker.free_at, ActorLostError("killed", "Traceback of the actor")
        before, worker.before = worker.before, chunk
        if fate == "lost":
            return worker.free_at, ChunkLostError("the store was full")
        if fate == "repeats" and before is not None:
            return worker.free_at, before
        return worker.free_at, chunk

    def wait(self, tickets: Sequence[Any], timeout: float) -> list[Any]:
        first = min(self.answers[ticket][1] for ticket in tickets)
        self.now = max(self.now, min(first, self.now + timeout))
        return [ticket for ticket in tickets if self.answers[ticket][1] <= self.now]

    def result(self, ticket: Any) -> Chunk:
        _, _, answer = self.answers.pop(ticket)
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, Chunk)
        return answer

    def kill(self, worker: Any) -> None:
        worker.dead = True

    def close(self) -> None:
        self.closed = True

"""Actors without Ray and without processes."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from typing import Any

from tempest_agent.actors.executor import (
    ActorLostError,
    Handle,
    Host,
    MakePlayer,
    Ticket,
    Worker,
)
from tempest_agent.actors.messages import ActorShare, Chunk, Order
from tempest_agent.actors.snapshot import Snapshot


class InlineExecutor:
    """Actors in this process, each played while ``wait`` waits for it.

    Args:
        make_player: builds the players.
    """

    def __init__(self, make_player: MakePlayer) -> None:
        self._make_player = make_player
        self._hosts: dict[int, Host] = {}
        self._started = self._submitted = 0
        self._waiting: dict[int, tuple[int, ActorShare, Order, Snapshot]] = {}
        self._done: dict[int, Chunk | ActorLostError] = {}
        self._parts: dict[int, ActorShare] = {}

    def put(self, snapshot: Snapshot) -> Handle:
        return snapshot

    def start(self, part: ActorShare) -> Worker:
        self._started += 1
        self._parts[self._started] = part
        return self._started

    def submit(self, worker: Any, order: Order, weights: Handle) -> Ticket:
        self._submitted += 1
        self._waiting[self._submitted] = (worker, self._parts[worker], order, weights)
        return self._submitted

    def wait(self, tickets: Sequence[Any], timeout: float) -> list[Ticket]:
        if not any(ticket in self._done for ticket in tickets):
            first = min((ticket for ticket in tickets if ticket in self._waiting), default=None)
            if first is not None:
                self._done[first] = self._play(*self._waiting.pop(first))
        return [ticket for ticket in tickets if ticket in self._done]

    def _play(
        self, worker: int, part: ActorShare, order: Order, snapshot: Snapshot
    ) -> Chunk | ActorLostError:
        if worker not in self._parts:
            return ActorLostError(f"actor {part.actor} was ended")
        try:
            if worker not in self._hosts:
                self._hosts[worker] = Host(self._make_player, part)
            return self._hosts[worker].play(order, snapshot)
        except Exception as error:
            self.kill(worker)
            return ActorLostError.of(error, traceback.format_exc())

    def result(self, ticket: Any) -> Chunk:
        found = self._done.pop(ticket)
        if isinstance(found, ActorLostError):
            raise found
        return found

    def kill(self, worker: Any) -> None:
        self._parts.pop(worker, None)
        self._hosts.pop(worker, None)

    def close(self) -> None:
        self._parts.clear()
        self._hosts.clear()
        self._waiting.clear()
        self._done.clear()

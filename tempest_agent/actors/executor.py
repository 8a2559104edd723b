"""Where actors run: an executor starts them, sends them orders and returns their chunks.

It knows nothing about games or learning, and decides nothing: ``ActorPool`` decides who is
restarted and what counts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol

from tempest_agent.errors import UserError

from .messages import ActorShare, Chunk, Order
from .snapshot import Snapshot

Handle = Any
"""A snapshot in the executor's store."""
Worker = Hashable
"""A running actor."""
Ticket = Hashable
"""An order that was sent to an actor."""


class Player(Protocol):
    """What runs inside an actor."""

    def play(self, order: Order, snapshot: Snapshot) -> Chunk:
        """Play ``order.steps`` steps of every game with the weights of ``snapshot``.

        Called once per order number: ``Host`` answers repeated orders.
        """


MakePlayer = Callable[[ActorShare], Player]
"""Builds a player in the actor's process; it is sent there, so it must be picklable."""


class ActorLostError(Exception):
    """An actor has failed or vanished, and its orders are lost with it.

    Args:
        reason: one line.
        details: the original traceback if there is one, else all that is known.
        mistake: one line for the user if the actor reports a mistake of theirs.
    """

    def __init__(self, reason: str, details: str = "", mistake: str = "") -> None:
        super().__init__(" ".join(reason.split()))
        self.details, self.mistake = details, mistake

    @classmethod
    def of(cls, error: Exception, details: str) -> ActorLostError:
        """Wrap what the player raised, with its traceback."""
        mistake = str(error) if isinstance(error, UserError) else ""
        return cls(f"{type(error).__name__}: {error}", details, mistake)


class ChunkLostError(Exception):
    """A chunk did not arrive although its actor lives; send the same order again."""


class Executor(Protocol):
    """Runs actors."""

    def put(self, snapshot: Snapshot) -> Handle:
        """Store a snapshot once for all actors; it is freed with its last handle."""

    def start(self, part: ActorShare) -> Worker:
        """Start an actor.  Its failures surface when orders are sent."""

    def submit(self, worker: Worker, order: Order, weights: Handle) -> Ticket:
        """Send an order.  A worker processes its orders one by one, in the order sent."""

    def wait(self, tickets: Sequence[Ticket], timeout: float) -> list[Ticket]:
        """Return the ``tickets`` that are done, failed ones included, in the given order.

        Blocks until there is one, for at most ``timeout`` seconds.
        """

    def result(self, ticket: Ticket) -> Chunk:
        """Return the chunk of a ticket that is done.

        Raises:
            ActorLostError: the actor failed or vanished.
            ChunkLostError: the actor lives, but the chunk is lost.
        """

    def kill(self, worker: Worker) -> None:
        """End an actor at once, whatever it is doing; no effect if it has ended."""

    def close(self) -> None:
        """End everything; no process and no shared memory is left."""


class Host:
    """Runs a player inside an actor: checks the weights and plays no order twice.

    An actor's process imports this module and what its player needs: keep what is imported here
    small, and actors start quickly.

    Args:
        make_player: builds the player.
        part: its share of the games.
    """

    def __init__(self, make_player: MakePlayer, part: ActorShare) -> None:
        self._player = make_player(part)
        self._version: int | None = None
        self._answers: dict[int, Chunk] = {}
        self._next = 0

    def play(self, order: Order, snapshot: Snapshot) -> Chunk:
        """Play as ``Player.play``; a repeated order gets the same chunk again.

        Raises:
            MixedWeightsError: the snapshot is not what was published.
            ValueError: a new order with a lower number than an earlier one.
        """
        for number in [each for each in self._answers if each < order.oldest]:
            del self._answers[number]
        if order.number not in self._answers:
            if order.number < self._next:
                raise ValueError(f"order {order.number} came after order {self._next - 1}")
            if snapshot.version != self._version:
                snapshot.check()
                self._version = snapshot.version
            self._next = order.number + 1
            self._answers[order.number] = self._player.play(order, snapshot)
        return self._answers[order.number]

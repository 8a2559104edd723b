"""Where actors run.  An executor starts them, brings orders to them and chunks back.

It knows nothing about games or learning, and decides nothing: who is begun anew, and what counts,
is ``ActorPool``'s business.
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
"""An order that an actor has been given."""


class Player(Protocol):
    """What runs inside an actor."""

    def play(self, order: Order, snapshot: Snapshot) -> Chunk:
        """Play ``order.steps`` decisions of every game with the weights of ``snapshot``.

        It is called once per order number: ``Host`` answers repeated ones.
        """


MakePlayer = Callable[[ActorShare], Player]
"""Builds a player where it will play; it is sent there, so it must be picklable."""


class ActorLostError(Exception):
    """An actor has failed or vanished, and all it was told to do with it.

    Args:
        reason: one line.
        details: the original traceback where there is one, else all that is known.
        mistake: what the user did wrong, where the actor says that it is that: a line for them.
    """

    def __init__(self, reason: str, details: str = "", mistake: str = "") -> None:
        super().__init__(" ".join(reason.split()))
        self.details, self.mistake = details, mistake

    @classmethod
    def of(cls, error: Exception, details: str) -> ActorLostError:
        """What the player raised, with its traceback."""
        mistake = str(error) if isinstance(error, UserError) else ""
        return cls(f"{type(error).__name__}: {error}", details, mistake)


class ChunkLostError(Exception):
    """A chunk did not arrive although its actor lives; ask again with the same order."""


class Executor(Protocol):
    """Runs actors."""

    def put(self, snapshot: Snapshot) -> Handle:
        """Store a snapshot once, for all actors; it is freed after its last handle."""

    def start(self, part: ActorShare) -> Worker:
        """Return a new actor.  Its failures show when it is given orders."""

    def submit(self, worker: Worker, order: Order, weights: Handle) -> Ticket:
        """Send an order.  A worker takes its orders one by one, as they were sent."""

    def wait(self, tickets: Sequence[Ticket], timeout: float) -> list[Ticket]:
        """Those of ``tickets`` that are done, failures among them, in the order given.

        Returns as soon as there is one, or with none after ``timeout`` seconds.
        """

    def result(self, ticket: Ticket) -> Chunk:
        """Return the chunk of a ticket that is done.

        Raises:
            ActorLostError: the actor failed or is gone.
            ChunkLostError: it lives, but the chunk is gone.
        """

    def kill(self, worker: Worker) -> None:
        """End an actor at once, whatever it is doing; nothing if it has ended."""

    def close(self) -> None:
        """End everything.  No process and no shared memory is left."""


class Host:
    """A player where it plays: checks the weights and plays no order twice.

    Args:
        make_player: builds it.
        part: its share.
    """

    def __init__(self, make_player: MakePlayer, part: ActorShare) -> None:
        self._player = make_player(part)
        self._version: int | None = None
        self._answers: dict[int, Chunk] = {}
        self._next = 0

    def play(self, order: Order, snapshot: Snapshot) -> Chunk:
        """As ``Player.play``.  An order that is repeated gets the chunk that it got before.

        Raises:
            MixedWeightsError: the snapshot is not what was published.
            ValueError: the order was left out when later ones were played.
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

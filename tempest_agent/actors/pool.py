"""Keeps actors playing and collects their chunks into rounds: one chunk of every actor each.

Round r consists of the chunks that answer order number r.  What happens to a chunk:

- It arrives: kept until the chunks of all other actors for its round are there.
- It arrives twice, or answers an order that was not sent: dropped and counted.
- It is lost on the way: the same order is sent again, and answered with the same chunk.
- Its actor fails, vanishes, or is silent past the deadline: the actor is killed and restarted as
  the next incarnation, which gets the unanswered orders.  What the old one was playing is lost and
  counted, and so are its chunks of rounds after the first lost one, because the steps of a game
  must be consecutive.

An actor has at most ``queue`` orders that are not yet part of a taken round, whether it is playing
them or their chunks wait here.  Without an order it does not play, so nothing piles up if the
learner is slower than the actors, and no chunk is much older than its weights.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tempest_agent.agent.collect.source import PlayFailedError

from .executor import ActorLostError, ChunkLostError, Executor, Handle, Ticket, Worker
from .messages import ActorShare, Chunk, Order
from .pool_counts import PoolCounts
from .snapshot import Snapshot

POLL_SECONDS = 1.0
"""Longest single wait, so that signals are handled."""
STARTUP_SECONDS = 900.0
"""Deadline of an actor's first order, which may have to compile the games."""
MAX_RETRIES = 3
"""How often one order is sent again before its actor counts as broken."""

MakeOrder = Callable[[ActorShare], Order]
"""Makes an actor's next order; the pool fills in its number."""


@dataclass(frozen=True)
class ActorEvent:
    """An actor was lost; it is restarted unless that happened too often.

    Attributes:
        part: the actor as it was.
        reason: one line.
        details: the original traceback if there is one.
        lost_samples: rows that it may have played in vain, those of its current order.  An earlier
            answer still on its way is lost too, and not counted.
    """

    part: ActorShare
    reason: str
    details: str
    lost_samples: int

    def __str__(self) -> str:
        line = (
            f"actor {self.part.actor} (incarnation {self.part.incarnation}) lost: {self.reason}; "
            f"about {self.lost_samples} samples lost"
        )
        return f"{line}\n{self.details}" if self.details else line


class ActorsFailedError(PlayFailedError):
    """An actor fails repeatedly; ``details`` is the last traceback."""

    def __init__(self, message: str, details: str) -> None:
        super().__init__(message)
        self.details = details


@dataclass(frozen=True)
class Round:
    """The answers to one order of every actor.

    Attributes:
        number: of the round, from 0.
        chunks: one per actor, in order.
        restarted: actors restarted since the previous round; their unfinished games were abandoned.
    """

    number: int
    chunks: list[Chunk]
    restarted: tuple[int, ...]

    @property
    def samples(self) -> int:
        """Rows of the replay that it makes."""
        return sum(chunk.samples for chunk in self.chunks)


@dataclass
class _Sent:
    order: Order
    retries: int = 0


@dataclass
class _Actor:
    part: ActorShare
    worker: Worker
    sent: dict[Ticket, _Sent] = field(default_factory=dict)
    """Unanswered orders, in the order sent."""
    arrived: dict[int, Chunk] = field(default_factory=dict)
    """Chunks of rounds not yet taken, by number."""
    since: float = 0.0
    """When it could start on the first of ``sent``."""
    answered: bool = False
    """Whether this incarnation has answered an order."""
    failures: int = 0
    """How often in a row it was lost without an answer."""
    taken: int | None = None
    """Incarnation of its chunk in the last round."""
    games: int = 0
    """Games of its last chunk."""


class ActorPool:
    """The actors of a run.

    Args:
        executor: where they run; the pool closes it.
        actors: how many.
        queue: most orders of an actor that are not yet part of a taken round, at least 1.
        deadline_seconds: longest time for one order; after it the actor counts as hung.
        max_restarts: how often in a row an actor is restarted without an answer in between.
        on_event: notified of every lost actor.
        synchronous: send orders only inside ``next_round``, so that no actor plays while the
            learner learns and all steps are played with the newest weights; ``queue`` is then 1.
        incarnations: initial ones, one per actor; all 0 by default.  A resumed run gives higher
            ones than before, for new games.
        startup_seconds: like ``deadline_seconds``, for the first order of an actor.
        on_silence: called about every second in which no actor answers.  If it raises, the wait
            ends and the round can be requested again.
        clock: returns seconds.

    Raises:
        ValueError: fewer than one actor or order.
    """

    def __init__(
        self,
        executor: Executor,
        actors: int,
        *,
        queue: int = 2,
        deadline_seconds: float = 120.0,
        max_restarts: int = 5,
        on_event: Callable[[ActorEvent], None] | None = None,
        synchronous: bool = False,
        incarnations: Sequence[int] | None = None,
        startup_seconds: float = STARTUP_SECONDS,
        on_silence: Callable[[], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if actors < 1 or queue < 1:
            raise ValueError(f"need at least 1 actor and 1 order, not {actors} and {queue}")
        self._executor, self._clock = executor, clock
        self._queue = 1 if synchronous else queue
        self._deadline = deadline_seconds
        self._startup = max(startup_seconds, deadline_seconds)
        self._max_restarts, self._on_event = max_restarts, on_event
        self._synchronous, self._on_silence = synchronous, on_silence
        self._weights: Handle = None
        self._version = 0
        self._round = 0
        self.counts = PoolCounts(clock)
        parts = [
            ActorShare(i, actors, incarnations[i] if incarnations else 0) for i in range(actors)
        ]
        self._actors = [_Actor(part, executor.start(part)) for part in parts]

    @property
    def incarnations(self) -> list[int]:
        """The present incarnation of every actor."""
        return [actor.part.incarnation for actor in self._actors]

    def publish(self, snapshot: Snapshot) -> None:
        """Use these weights for all orders sent from now on."""
        self._weights = self._executor.put(snapshot)
        self._version = snapshot.version

    def next_round(self, make_order: MakeOrder) -> Round:
        """Wait until every actor has answered its next order.

        Args:
            make_order: makes the orders that are sent meanwhile.

        Raises:
            ActorsFailedError: an actor was lost more than ``max_restarts`` times in a row, or could
                not start because of a mistake of the user.
            RuntimeError: nothing has been published yet.
        """
        if self._weights is None:
            raise RuntimeError("publish weights before the first round")
        began = self._clock()
        self._send(make_order)
        while any(self._round not in actor.arrived for actor in self._actors):
            self._collect()
            self._send(make_order)
        taken = self._take()
        self.counts.take(taken.chunks, self._version, self._clock() - began)
        if not self._synchronous:
            self._send(make_order)
        return taken

    def close(self) -> None:
        """End all actors."""
        self._executor.close()

    def _take(self) -> Round:
        number, chunks, restarted = self._round, [], []
        for actor in self._actors:
            chunk = actor.arrived.pop(number)
            if actor.taken not in (None, chunk.incarnation):
                restarted.append(chunk.actor)
            actor.taken = chunk.incarnation
            chunks.append(chunk)
        self._round += 1
        return Round(number, chunks, tuple(restarted))

    def _send(self, make_order: MakeOrder) -> None:
        """Send every actor the orders that it has room for."""
        for actor in self._actors:
            known = {sent.order.number for sent in actor.sent.values()} | set(actor.arrived)
            for number in range(self._round, self._round + self._queue):
                if number not in known:
                    order = dataclasses.replace(make_order(actor.part), number=number)
                    self._submit(actor, _Sent(order))

    def _submit(self, actor: _Actor, sent: _Sent) -> None:
        sent.order = dataclasses.replace(sent.order, oldest=self._round)
        if not actor.sent:
            actor.since = self._clock()
        actor.sent[self._executor.submit(actor.worker, sent.order, self._weights)] = sent

    def _collect(self) -> None:
        """Wait for answers, receive them, and restart actors past their deadline."""
        owners = {ticket: actor for actor in self._actors for ticket in actor.sent}
        left = min(self._time_left(actor) for actor in self._actors if actor.sent)
        done = self._executor.wait(list(owners), min(max(left, 0.0), POLL_SECONDS))
        if not done and self._on_silence:
            self._on_silence()
        for ticket in done:
            actor = owners.get(ticket)
            # Ignore orders of an actor that was lost meanwhile.
            if actor is not None and ticket in actor.sent:
                self._receive(actor, ticket)
        for actor in self._actors:
            if actor.sent and self._time_left(actor) <= 0.0:
                limit = self._limit(actor)
                self._restart(actor, f"no answer within {limit:g} s", "")

    def _limit(self, actor: _Actor) -> float:
        return self._deadline if actor.answered else self._startup

    def _time_left(self, actor: _Actor) -> float:
        return actor.since + self._limit(actor) - self._clock()

    def _receive(self, actor: _Actor, ticket: Ticket) -> None:
        sent = actor.sent[ticket]
        try:
            chunk = self._executor.result(ticket)
        except ActorLostError as error:
            if error.mistake and self._round == 0 and not actor.answered:
                # A restart would fail the same way.
                raise ActorsFailedError(error.mistake, error.details) from error
            self._restart(actor, str(error), error.details)
            return
        except ChunkLostError as error:
            self._again(actor, ticket, str(error))
            return
        asked = (actor.part.actor, actor.part.incarnation, sent.order.number)
        if (chunk.actor, chunk.incarnation, chunk.number) != asked:
            self.counts.duplicates += 1
            self._again(actor, ticket, f"order {sent.order.number} got the answer to another")
        elif chunk.steps != sent.order.steps:
            self._restart(actor, f"{chunk.steps} steps played, not {sent.order.steps}", "")
        else:
            del actor.sent[ticket]
            actor.arrived[chunk.number] = chunk
            actor.since, actor.answered, actor.failures = self._clock(), True, 0
            actor.games = chunk.games
            self.counts.received += chunk.samples

    def _again(self, actor: _Actor, ticket: Ticket, reason: str) -> None:
        """Send an order again: its actor still has the answer."""
        sent = actor.sent[ticket]
        sent.retries += 1
        if sent.retries > MAX_RETRIES:
            self._restart(actor, f"{reason}, {sent.retries} times", "")
            return
        del actor.sent[ticket]
        self._submit(actor, sent)

    def _restart(self, actor: _Actor, reason: str, details: str) -> None:
        """Kill a lost actor, and restart it unless that happened too often."""
        self._executor.kill(actor.worker)
        event = ActorEvent(actor.part, reason, details, self._lose(actor))
        if self._on_event:
            self._on_event(event)
        actor.failures += 1
        if actor.failures > self._max_restarts:
            raise ActorsFailedError(
                f"actor {actor.part.actor} was lost {actor.failures} times in a row, the last time "
                f"because of: {reason}; repair the cause, or allow more with actors.max_restarts",
                details,
            )
        self.counts.restarts += 1
        actor.part = dataclasses.replace(actor.part, incarnation=actor.part.incarnation + 1)
        actor.worker, actor.answered = self._executor.start(actor.part), False

    def _lose(self, actor: _Actor) -> int:
        """Drop an actor's open orders and return the rows lost with them."""
        orders = sorted((sent.order for sent in actor.sent.values()), key=lambda each: each.number)
        made = {sent.order.number for sent in actor.sent.values() if sent.retries}
        # Orders are played in sequence: lost are those being sent again, and the current one.
        playing = next((order.number for order in orders if order.number not in made), None)
        lost = sum(order.steps for order in orders if order.number in made | {playing})
        samples = lost * actor.games
        # Steps must be consecutive: chunks after the first lost order are useless.
        for number in [each for each in actor.arrived if each > orders[0].number]:
            samples += actor.arrived.pop(number).samples
        actor.sent.clear()
        self.counts.lost += samples
        return samples

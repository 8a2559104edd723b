"""Actors as Ray actors: processes of this machine, or of a cluster.

Ray moves the bytes, shares one copy of a snapshot among the processes of a machine, and detects
lost processes and machines.  It restarts nothing: that is left to the pool.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from tempest_agent.agent.collect.source import PlayFailedError
from tempest_agent.errors import one_line
from tempest_agent.ray_support import cluster as ray_cluster
from tempest_agent.ray_support.cluster import keeping_sigterm, without_colours
from tempest_agent.ray_support.watch import RayWatch, watch_over

from .executor import ActorLostError, ChunkLostError, Handle, Host, MakePlayer, Ticket, Worker
from .messages import ActorShare, Chunk, Order
from .snapshot import Snapshot

STORE_BYTES = 256 * 2**20
"""Shared memory of a cluster started here; Ray's default is 30 % of all memory."""


log = logging.getLogger("tempest_agent")


class RayExecutor:
    """Runs every actor in a process of its own.

    Args:
        make_player: builds the players; it is sent to the actors.
        address: cluster to join, ``"auto"`` or ``"host:port"``; None starts one on this machine,
            which ends with ``close`` or with this process.  A process that is already connected
            to a cluster uses that one and stays connected.
        store_bytes: shared memory of a cluster started here, at least 80 MB.  What does not fit
            is spilled to disk, which is slower.

    Raises:
        UserError: Ray is not installed, or the cluster cannot be joined or started.
        PlayFailedError: from all methods: Ray has ended on this machine, or the head of the
            cluster is lost.
    """

    def __init__(
        self, make_player: MakePlayer, address: str | None = None, store_bytes: int = STORE_BYTES
    ) -> None:
        self._ray = ray = import_ray()
        self._is_ours = not ray.is_initialized()
        if self._is_ours:
            keeping_sigterm(ray, lambda: _connect(ray, address, store_bytes))
        self._watch: RayWatch = watch_over(ray)
        # Sent once, however often actors are restarted.
        self._make_player = ray.put(make_player)
        self._actor = ray.remote(max_restarts=0, max_task_retries=0)(Host)
        self._workers: set[Any] = set()
        self._begun: set[int] = set()

    def put(self, snapshot: Snapshot) -> Handle:
        """Store a snapshot, see ``Executor``.

        Raises:
            PlayFailedError: neither the shared memory nor the disk has room.
        """
        with self._guard():
            try:
                handle: Handle = self._ray.put(snapshot)
            except self._without_room as error:
                size = snapshot.values.nbytes / 2**20
                raise PlayFailedError(
                    f"no room for {size:.0f} MB of weights in Ray's object store, nor on the disk: "
                    f"{_reason(error)}; make less wait there (actors.queue, actors.chunk_steps), "
                    "or free some of the disk"
                ) from error
        return handle

    def _guard(self) -> AbstractContextManager[None]:
        return self._watch.guard(self._ray, PlayFailedError)

    @property
    def _without_room(self) -> tuple[type[Exception], ...]:
        errors = self._ray.exceptions
        return errors.ObjectLostError, errors.ObjectStoreFullError, errors.OutOfDiskError

    def start(self, part: ActorShare) -> Worker:
        """Start an actor, see ``Executor``.

        Actors reserve one CPU each if the cluster has enough; otherwise they share.  A restarted
        actor reserves nothing, because its machine may be gone: slow is better than waiting.
        """
        is_first = part.actor not in self._begun
        self._begun.add(part.actor)
        with self._guard():
            # Not for a restarted one: without the head, this query is never answered.
            share = 1 if is_first and self._cpus() >= part.actors else 0
            options = self._actor.options(num_cpus=share, scheduling_strategy="SPREAD")
            worker: Worker = options.remote(self._make_player, part)
        self._workers.add(worker)
        return worker

    def _cpus(self) -> float:
        nodes = [node for node in self._ray.nodes() if node["Alive"]]
        return float(sum(node["Resources"].get("CPU", 0.0) for node in nodes))

    def submit(self, worker: Any, order: Order, weights: Handle) -> Ticket:
        """See ``Executor``."""
        with self._guard():
            ticket: Ticket = worker.play.remote(order, weights)
        return ticket

    def wait(self, tickets: Sequence[Any], timeout: float) -> list[Ticket]:
        """See ``Executor``."""
        tickets = list(tickets)
        with self._guard():
            done, _ = self._ray.wait(tickets, num_returns=1, timeout=timeout)
            if done:
                done, _ = self._ray.wait(tickets, num_returns=len(tickets), timeout=0)
        return list(done)

    def result(self, ticket: Any) -> Chunk:
        """See ``Executor``."""
        errors = self._ray.exceptions
        try:
            chunk: Chunk = self._ray.get(ticket)
        except errors.RayTaskError as error:
            # The player raised: it lives, but in an unknown state.
            cause = error.cause if isinstance(error.cause, Exception) else error
            raise ActorLostError.of(cause, without_colours(str(error))) from error
        except self._without_room as error:
            raise ChunkLostError(_reason(error)) from error
        except errors.RayError as error:
            raise ActorLostError(_reason(error), without_colours(str(error))) from error
        return chunk

    def kill(self, worker: Any) -> None:
        """See ``Executor``."""
        self._workers.discard(worker)
        self._ray.kill(worker, no_restart=True)

    def close(self) -> None:
        """End all actors; a cluster that was joined stays up.

        If the head of the cluster is lost, actors end with Ray on their machines, within a minute.
        """
        self._watch.close()
        if not self._ray.is_initialized():
            return
        try:
            # A lost Ray would not answer.
            for worker in [] if self._watch.lost else list(self._workers):
                self.kill(worker)
            if self._is_ours:
                self._ray.shutdown()
        except (OSError, RuntimeError, self._ray.exceptions.RayError) as error:
            log.warning("Ray could not end the actors (%s): look for them", one_line(error))


def import_ray() -> Any:
    """Return the module Ray.

    Raises:
        UserError: it is not installed.
    """
    return ray_cluster.import_ray("actors need", "train in one process with actors.count=0")


def _connect(ray: Any, address: str | None, store_bytes: int) -> None:
    # By default Ray lowers its workers' priority, and they starve on a busy machine.
    os.environ.setdefault("RAY_worker_niceness", "0")
    ray_cluster.connect(ray, address or ray_cluster.LOCAL, store_bytes)


def _reason(error: Exception) -> str:
    """Return the line of a Ray error that names the cause."""
    lines = [line.strip() for line in without_colours(str(error)).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    if "creation task" in lines[0]:
        # A traceback follows; the exception is its last line.
        return lines[-1]
    cause = next((line for line in lines if line.startswith("The actor is dead")), lines[0])
    return cause.split(" Some common causes")[0]

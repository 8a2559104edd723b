"""Players for tests with real processes: cheap, and some of them misbehave."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np

from tempest_agent.actors.messages import ActorShare, Chunk, Order
from tempest_agent.actors.snapshot import Snapshot


class HonestPlayer:
    """Counts its steps, checks the weights at every order, and says where it runs."""

    def __init__(self, part: ActorShare, games: int = 2, row_bytes: int = 8) -> None:
        import ray

        self.part, self.games, self.row_bytes = part, games, row_bytes
        self.played = 0
        node = ray.get_runtime_context().get_node_id()
        self.last = {"pid": np.array(os.getpid()), "node": np.array(node)}

    def play(self, order: Order, snapshot: Snapshot) -> Chunk:
        snapshot.check()
        shape = (order.steps, self.games)
        serial = self.played + np.arange(order.steps)
        self.played += order.steps
        columns = {
            "incarnation": np.full(shape, self.part.incarnation),
            "serial": np.repeat(serial[:, None], self.games, axis=1),
            # All of a version's values are its number.
            "lowest": np.full(shape, snapshot.values.min()),
            "highest": np.full(shape, snapshot.values.max()),
            "bulk": np.full((*shape, self.row_bytes), self.part.actor, np.uint8),
        }
        part = self.part
        return Chunk(
            part.actor, part.incarnation, order.number, snapshot.version, columns, self.last
        )


class FaultyPlayer(HonestPlayer):
    """Actor 1 raises instead of playing order 2; begun anew it kills its process at order 4; begun
    anew again it hangs at order 6, and makes the file ``hangs`` before.

    ``folder``: files ``takenN`` appear there once the answers to orders N have been taken.
    """

    def __init__(self, folder: str, part: ActorShare) -> None:
        super().__init__(part)
        self.folder = Path(folder)

    def play(self, order: Order, snapshot: Snapshot) -> Chunk:
        if self.part.actor == 1 and order.number == 2 * (self.part.incarnation + 1):
            # The answer before this one is sent in the background, and must not be lost as well.
            while not (self.folder / f"taken{order.number - 1}").exists():
                time.sleep(0.01)
            if self.part.incarnation == 0:
                raise ZeroDivisionError("no more credits")
            if self.part.incarnation == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            if self.part.incarnation == 2:
                (self.folder / "hangs").touch()
                time.sleep(1000.0)
        return super().play(order, snapshot)


class SlowPlayer(HonestPlayer):
    """Actor 1 takes its time over every order."""

    def play(self, order: Order, snapshot: Snapshot) -> Chunk:
        if self.part.actor == 1:
            time.sleep(0.5)
        return super().play(order, snapshot)


class UnbuildablePlayer(HonestPlayer):
    def __init__(self, part: ActorShare) -> None:
        raise FileNotFoundError("no such cabinet")

"""Pools of actors on a real Ray, for the tests with real processes."""

from __future__ import annotations

from typing import Any

import numpy as np
import ray
import ray_players
from fake_executor import snapshot

from tempest_agent.actors.messages import ActorShare, Order
from tempest_agent.actors.pool import ActorPool, Round
from tempest_agent.actors.ray_executor import RayExecutor

# The actors cannot import what lies in this folder.
ray.cloudpickle.register_pickle_by_value(ray_players)

STORE = 100 * 2**20


def make_order(part: ActorShare) -> Order:
    return Order(steps=3)


def pool_of(player: Any, actors: int = 2, **others: Any) -> ActorPool:
    pool = ActorPool(RayExecutor(player, store_bytes=STORE), actors, **others)
    pool.publish(snapshot(1))
    return pool


def rows_of(rounds: list[Round], actor: int) -> list[tuple[int, int]]:
    """Incarnation and serial of every step of an actor that was handed on, as it came."""
    columns = [each.chunks[actor].columns for each in rounds]
    joined = [
        np.concatenate([each[name][:, 0] for each in columns]) for name in ("incarnation", "serial")
    ]
    return list(zip(*(each.tolist() for each in joined), strict=True))


def steps_of(*lengths: int) -> list[tuple[int, int]]:
    """Rows of incarnation 0, 1, ... of so many steps each."""
    return [(number, step) for number, length in enumerate(lengths) for step in range(length)]


def pid_of(taken: Round, actor: int) -> int:
    return int(taken.chunks[actor].last["pid"])

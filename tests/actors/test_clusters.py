"""Actors on clusters of their own, whose driver or machine is lost."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import ray
from fake_executor import snapshot
from places import SUPPORT
from processes import Process, eventually, process
from ray.cluster_utils import Cluster
from ray_players import HonestPlayer
from ray_pools import STORE, make_order, rows_of, steps_of

from tempest_agent.actors.pool import ActorEvent, ActorPool
from tempest_agent.actors.ray_executor import RayExecutor

pytestmark = pytest.mark.xdist_group("ray")

DRIVER = """
import os, signal, sys
# A shell starts its background jobs with the signal of Ctrl-C ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, {tests!r})
import ray_players
from processes import below
from ray_pools import make_order, pool_of
pool = pool_of(ray_players.HonestPlayer)
try:
    pool.next_round(make_order)
    print(*(each.pid for each in below(os.getpid())), flush=True)
    while True:
        pool.next_round(make_order)
finally:
    pool.close()
"""


class Family:
    """The processes that a driver of its own had started when it got a signal."""

    def __init__(self, number: int) -> None:
        script = DRIVER.format(tests=str(SUPPORT))
        driver = subprocess.Popen(
            [sys.executable, "-c", script],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert driver.stdout is not None
            self.all = [process(int(pid)) for pid in driver.stdout.readline().split()]
            names = [each.read("cmdline") for each in self.all]
            assert any("raylet" in name for name in names)
            assert sum("ray::_Actor" in name for name in names) == 2
            self.shared = set().union(*map(shared_memory, self.all))
            assert self.shared
            driver.send_signal(number)
            driver.communicate()
        finally:
            driver.kill()
            driver.communicate()

    def alive(self) -> list[Process]:
        """Those that are left."""
        return [each for each in self.all if each.alive]


def shared_memory(one: Process) -> set[str]:
    """The files of shared memory that it holds."""
    found = (line.split(maxsplit=5) for line in one.read("maps").splitlines())
    return {parts[5] for parts in found if parts[5:] and "/dev/shm" in parts[5]}


@pytest.fixture(scope="module")
def orphans() -> Family:
    """What is left of a driver that was killed."""
    return Family(signal.SIGKILL)


def test_actors_and_shared_memory_are_gone_after_the_driver_is_killed(orphans: Family) -> None:
    # Two helpers of Ray's wait for a minute; they hold nothing.
    eventually(lambda: len(orphans.alive()) <= 2)
    assert not any(shared_memory(each) for each in orphans.alive())


def test_nothing_is_left_after_the_driver_is_interrupted() -> None:
    family = Family(signal.SIGINT)
    eventually(lambda: not family.alive())
    # The files of most are nameless from the beginning.
    assert not any(Path(name).exists() for name in family.shared)


def test_a_machine_that_is_lost_takes_its_actors_and_the_run_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ray.shutdown()
    # The head asks more often than every 3 seconds whether its machines are alive.
    monkeypatch.setenv("RAY_health_check_period_ms", "500")
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        lost, _ = (nodes.add_node(num_cpus=1, object_store_memory=STORE) for _ in range(2))
        events: list[ActorEvent] = []
        executor = RayExecutor(HonestPlayer, address=nodes.address)
        # Before Ray has noticed, it may begin the actor anew on the machine that is gone.
        pool = ActorPool(executor, 2, on_event=events.append, max_restarts=1000)
        pool.publish(snapshot(1))
        rounds = [pool.next_round(make_order) for _ in range(3)]
        places = [str(chunk.last["node"]) for chunk in rounds[0].chunks]
        assert len(set(places)) == 2
        victim = places.index(lost.node_id)
        nodes.remove_node(lost, allow_graceful=False)
        while str(rounds[-1].chunks[victim].last["node"]) == lost.node_id:
            rounds.append(pool.next_round(make_order))
        assert {actor for each in rounds for actor in each.restarted} == {victim}
        assert rows_of(rounds, 1 - victim) == steps_of(3 * len(rounds))
        assert {event.part.actor for event in events} == {victim}
        assert pool.counts.taken == sum(each.samples for each in rounds)
        pool.close()
        assert not ray.is_initialized()
    finally:
        ray.shutdown()
        nodes.shutdown()


def test_no_process_is_left_after_the_driver_was_killed(orphans: Family) -> None:
    eventually(lambda: not orphans.alive(), seconds=280.0)

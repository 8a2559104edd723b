"""Actors on a cluster of several machines, one of which is lost."""

from __future__ import annotations

import pytest
import ray
from fake_executor import snapshot
from ray.cluster_utils import Cluster
from ray_players import HonestPlayer
from ray_pools import STORE, make_order, rows_of, steps_of

from tempest_agent.actors.pool import ActorEvent, ActorPool
from tempest_agent.actors.ray_executor import RayExecutor

pytestmark = pytest.mark.xdist_group("ray")


@pytest.mark.usefixtures("no_shared_ray")
def test_a_machine_that_is_lost_takes_its_actors_and_the_run_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The head asks more often than every 3 seconds whether its machines are alive.
    monkeypatch.setenv("RAY_health_check_period_ms", "500")
    machine = {"num_cpus": 1, "object_store_memory": STORE}
    nodes = Cluster(initialize_head=True, head_node_args=machine)
    try:
        lost = nodes.add_node(**machine)
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

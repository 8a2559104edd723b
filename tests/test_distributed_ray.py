"""Actors in processes of their own: what Ray is asked to do, with players that cost nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import ray
import ray_players
from fake_engine import snapshot
from ray.cluster_utils import Cluster
from ray_players import FaultyPlayer, HonestPlayer, SlowPlayer, UnbuildablePlayer

from tempest_agent.distributed.order import Order, Part
from tempest_agent.distributed.pool import ActorEvent, ActorPool, ActorsFailedError, Round
from tempest_agent.distributed.ray_engine import RayEngine
from tempest_agent.distributed.snapshot import Snapshot
from tempest_agent.errors import UserError

# The actors cannot import what lies in this folder.
ray.cloudpickle.register_pickle_by_value(ray_players)

STORE = 100 * 2**20


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """One that the engines of this module find and leave running."""
    RayEngine(HonestPlayer, store_bytes=STORE)
    yield
    ray.shutdown()


def make_order(part: Part) -> Order:
    return Order(steps=3)


def pool_of(player: Any, actors: int = 2, **others: Any) -> ActorPool:
    pool = ActorPool(RayEngine(player, store_bytes=STORE), actors, **others)
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


def eventually(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def pid_of(taken: Round, actor: int) -> int:
    return int(taken.chunks[actor].last["pid"])


@pytest.mark.usefixtures("cluster")
def test_rounds_come_from_processes_of_their_own_that_end_with_the_pool() -> None:
    pool = pool_of(HonestPlayer)
    rounds = [pool.next_round(make_order) for _ in range(5)]
    pids = {pid_of(each, actor) for each in rounds for actor in range(2)}
    assert len(pids) == 2
    assert os.getpid() not in pids
    # They get their turn as often as this process.
    priorities = {os.getpriority(os.PRIO_PROCESS, pid) for pid in (*pids, os.getpid())}
    assert len(priorities) == 1
    for actor in range(2):
        assert rows_of(rounds, actor) == steps_of(15)
    pool.close()
    eventually(lambda: not any(map(alive, pids)))
    assert ray.is_initialized()


@pytest.mark.usefixtures("cluster")
def test_weights_are_whole_while_versions_are_published_as_fast_as_can_be() -> None:
    pool = pool_of(HonestPlayer, queue=2)
    stop = threading.Event()
    newest = 1

    def publish() -> None:
        nonlocal newest
        while not stop.is_set():
            values = np.full(100_000, newest + 1, np.float32)
            pool.publish(Snapshot.of(newest + 1, newest + 1, "bfloat16", values))
            newest += 1

    thread = threading.Thread(target=publish)
    thread.start()
    versions = set()
    try:
        for _ in range(40):
            taken = pool.next_round(make_order)
            for chunk in taken.chunks:
                versions.add(chunk.version)
                assert (chunk.columns["lowest"] == chunk.version).all()
                assert (chunk.columns["highest"] == chunk.version).all()
    finally:
        stop.set()
        thread.join()
    # An actor that saw a mixture would have been lost.
    assert pool.counts.restarts == 0
    assert len(versions) > 10
    assert pool.counts.read()["actors_version_lag_max"] < newest
    pool.close()


@pytest.mark.usefixtures("cluster")
def test_an_actor_that_raises_is_killed_or_hangs_is_begun_anew_and_the_reason_told() -> None:
    events: list[ActorEvent] = []
    pool = pool_of(FaultyPlayer, queue=2, deadline_seconds=8.0, on_event=events.append)
    rounds = [pool.next_round(make_order) for _ in range(8)]
    assert rows_of(rounds, 0) == steps_of(24)
    assert rows_of(rounds, 1) == steps_of(6, 6, 6, 6)
    assert [each.number for each in rounds if each.restarted == (1,)] == [2, 4, 6]
    assert len({pid_of(each, 0) for each in rounds}) == 1
    pids = [pid_of(each, 1) for each in rounds]
    assert len(set(pids)) == 4
    assert not any(map(alive, pids[:6:2]))
    raised, killed, hung = events
    assert [event.part for event in events] == [Part(1, 2, number) for number in range(3)]
    assert raised.reason == "ZeroDivisionError: no more credits"
    assert 'raise ZeroDivisionError("no more credits")' in raised.details
    assert killed.reason.startswith("The actor is dead because its worker process has died")
    assert str(pids[2]) in killed.details
    assert hung.reason == "no answer within 8 s"
    assert [event.lost_samples for event in events] == [6, 6, 6]
    assert pool.counts.lost == 18
    pool.close()


@pytest.mark.usefixtures("cluster")
def test_a_slow_actor_is_waited_for() -> None:
    events: list[ActorEvent] = []
    pool = pool_of(SlowPlayer, queue=2, deadline_seconds=60.0, on_event=events.append)
    rounds = [pool.next_round(make_order) for _ in range(4)]
    for actor in (0, 1):
        assert rows_of(rounds, actor) == steps_of(12)
    assert not events
    assert pool.counts.read()["actors_wait_share"] > 0.5
    pool.close()


@pytest.mark.usefixtures("cluster")
def test_an_actor_that_cannot_be_built_ends_the_run_with_its_traceback() -> None:
    pool = pool_of(UnbuildablePlayer, 1, max_restarts=1)
    with pytest.raises(ActorsFailedError, match="FileNotFoundError: no such cabinet") as caught:
        pool.next_round(make_order)
    assert 'raise FileNotFoundError("no such cabinet")' in caught.value.details
    pool.close()


@pytest.mark.usefixtures("cluster")
def test_more_than_the_store_holds_goes_to_the_disk_and_the_run_goes_on() -> None:
    # 8 MB a chunk: what is kept here of 20 rounds of 2 actors is three times the store.
    pool = pool_of(partial(HonestPlayer, row_bytes=8 * 2**20 // 6), queue=2)
    rounds = [pool.next_round(make_order) for _ in range(20)]
    assert sum(chunk.nbytes for each in rounds for chunk in each.chunks) > 3 * STORE
    for actor in range(2):
        assert rows_of(rounds, actor) == steps_of(60)
        assert all((each.chunks[actor].columns["bulk"] == actor).all() for each in rounds)
    assert pool.counts.restarts == 0
    pool.close()


@pytest.mark.usefixtures("cluster")
def test_no_room_at_all_ends_the_run_with_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(value: Any) -> Any:
        raise ray.exceptions.OutOfDiskError("9 GB of 9 GB")

    pool = pool_of(HonestPlayer, 1)
    monkeypatch.setattr(ray, "put", full)
    with pytest.raises(
        UserError, match=r"no room for 4 MB of weights .* 9 GB of 9 GB.*actors.queue"
    ):
        pool.publish(Snapshot.of(2, 2, None, np.zeros(2**20, np.float32)))
    pool.close()


# --- clusters of their own ----------------------------------------------------------------------

DRIVER = """
import sys, time
sys.path.insert(0, {tests!r})
import ray, ray_players
from fake_engine import snapshot
from test_distributed_ray import descendants, make_order, pool_of
ray.cloudpickle.register_pickle_by_value(ray_players)
pool = pool_of(ray_players.HonestPlayer)
try:
    pool.next_round(make_order)
    print(*descendants(), flush=True)
    while True:
        pool.next_round(make_order)
finally:
    pool.close()
"""


def descendants() -> list[int]:
    """All processes below this one."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    found = [os.getpid()]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found[1:]


def ended_driver(number: int) -> list[int]:
    """Processes that a driver of its own had started when it got a signal."""
    script = DRIVER.format(tests=str(Path(__file__).parent))
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as driver:
        assert driver.stdout is not None
        pids = [int(pid) for pid in driver.stdout.readline().split()]
        names = [Path(f"/proc/{pid}/cmdline").read_text() for pid in pids]
        assert any("raylet" in name for name in names)
        assert sum("ray::_Actor" in name for name in names) == 2
        driver.send_signal(number)
        driver.communicate()
    return pids


@pytest.fixture(scope="module")
def orphans() -> list[int]:
    """What is left of a driver that was killed."""
    return ended_driver(signal.SIGKILL)


def shared_memory(pids: list[int]) -> list[int]:
    """Those of the processes that hold shared memory."""
    maps = {pid: Path(f"/proc/{pid}/maps").read_text() for pid in pids if alive(pid)}
    return [pid for pid, text in maps.items() if "/dev/shm" in text]


def test_actors_and_shared_memory_are_gone_after_the_driver_is_killed(orphans: list[int]) -> None:
    # Two helpers of Ray's wait for a minute; they hold nothing.
    eventually(lambda: sum(map(alive, orphans)) <= 2)
    assert shared_memory(orphans) == []


def test_nothing_is_left_after_the_driver_is_interrupted() -> None:
    before = set(os.listdir("/dev/shm"))
    pids = ended_driver(signal.SIGINT)
    eventually(lambda: not any(map(alive, pids)))
    eventually(lambda: set(os.listdir("/dev/shm")) <= before)


def test_a_machine_that_is_lost_takes_its_actors_and_the_run_goes_on() -> None:
    ray.shutdown()
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        lost, _ = (nodes.add_node(num_cpus=1, object_store_memory=STORE) for _ in range(2))
        events: list[ActorEvent] = []
        engine = RayEngine(HonestPlayer, address=nodes.address)
        pool = ActorPool(engine, 2, on_event=events.append)
        pool.publish(snapshot(1))
        rounds = [pool.next_round(make_order) for _ in range(3)]
        places = [str(chunk.last["node"]) for chunk in rounds[0].chunks]
        assert len(set(places)) == 2
        victim = places.index(lost.node_id)
        nodes.remove_node(lost, allow_graceful=False)
        # Before Ray has noticed, it may begin the actor anew on the machine that is gone.
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


def test_a_cluster_that_is_not_there_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    ray.shutdown()

    def none_here(**_settings: Any) -> None:
        # Another's may run on the machine that tests.
        raise ConnectionError("Could not find any running Ray instance")

    monkeypatch.setattr(ray, "init", none_here)
    with pytest.raises(UserError, match=r"no Ray cluster at 'auto': .*ray start --head"):
        RayEngine(HonestPlayer, address="auto")


def test_without_ray_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r"pip install 'tempest-agent\[ray\]'"):
        RayEngine(HonestPlayer)


def test_the_handler_of_sigterm_stays() -> None:
    def handler(number: int, frame: Any) -> None:
        pass

    before = signal.signal(signal.SIGTERM, handler)
    try:
        RayEngine(HonestPlayer, store_bytes=STORE).close()
        assert signal.getsignal(signal.SIGTERM) is handler
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_sigterm_while_ray_begins_gets_the_handler_it_was_meant_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    got: list[int] = []
    tries: list[int] = []

    def exit_as_ray(number: int, frame: Any) -> None:
        sys.exit(number)

    def init(**_: Any) -> None:
        tries.append(len(got))
        signal.signal(signal.SIGTERM, exit_as_ray)
        if len(tries) == 1:
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setattr(ray, "put", lambda value: value)

    def handler(number: int, frame: Any) -> None:
        got.append(number)

    before = signal.signal(signal.SIGTERM, handler)
    try:
        RayEngine(HonestPlayer, store_bytes=STORE)
        assert signal.getsignal(signal.SIGTERM) is handler
    finally:
        signal.signal(signal.SIGTERM, before)
    assert got == [signal.SIGTERM]
    assert tries == [0, 1]


def test_that_ray_itself_is_gone_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise BrokenPipeError("Broken pipe")

    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    monkeypatch.setattr(ray, "put", lambda value: value)
    engine = RayEngine(HonestPlayer)
    words = r"^Ray has ended on this machine \(Broken pipe\): .* train --resume$"
    for name in ("wait", "put"):
        monkeypatch.setattr(ray, name, fail)
    worker = SimpleNamespace(play=SimpleNamespace(remote=fail))
    for use in (
        lambda: engine.wait([1], 1.0),
        lambda: engine.put(snapshot(1)),
        lambda: engine.submit(worker, Order(1), 1),
    ):
        with pytest.raises(UserError, match=words):
            use()


def test_no_process_is_left_after_the_driver_was_killed(orphans: list[int]) -> None:
    eventually(lambda: not any(map(alive, orphans)), seconds=200.0)

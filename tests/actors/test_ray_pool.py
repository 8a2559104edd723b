"""Actors in processes of their own: what Ray is asked to do, with players that cost nothing."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import ray
from fake_executor import snapshot
from processes import eventually, process
from ray_players import FaultyPlayer, HonestPlayer, SlowPlayer, UnbuildablePlayer
from ray_pools import STORE, make_order, pid_of, pool_of, rows_of, steps_of

from tempest_agent.actors import ray_executor
from tempest_agent.actors.messages import ActorShare, Order
from tempest_agent.actors.pool import ActorEvent, ActorsFailedError
from tempest_agent.actors.ray_executor import RayExecutor
from tempest_agent.actors.snapshot import Snapshot
from tempest_agent.agent.collect.source import PlayFailedError
from tempest_agent.errors import UserError
from tempest_agent.ray_support.watch import RayWatch

pytestmark = pytest.mark.xdist_group("ray")


@pytest.mark.usefixtures("shared_ray")
def test_rounds_come_from_processes_of_their_own_that_end_with_the_pool() -> None:
    pool = pool_of(HonestPlayer)
    rounds = [pool.next_round(make_order) for _ in range(5)]
    pids = {pid_of(each, actor) for each in rounds for actor in range(2)}
    actors = [process(pid) for pid in pids]
    assert len(pids) == 2
    assert os.getpid() not in pids
    # They get their turn as often as this process.
    priorities = {os.getpriority(os.PRIO_PROCESS, pid) for pid in (*pids, os.getpid())}
    assert len(priorities) == 1
    for actor in range(2):
        assert rows_of(rounds, actor) == steps_of(15)
    pool.close()
    eventually(lambda: not any(each.alive for each in actors))
    assert ray.is_initialized()


@pytest.mark.usefixtures("shared_ray")
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
    versions: set[int] = set()
    rounds = 0
    try:
        # On a busy machine several rounds may come between two versions.
        while rounds < 20 or (len(versions) <= 10 and rounds < 10_000):
            taken = pool.next_round(make_order)
            rounds += 1
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


class Clock:
    """That of this machine, but for the time that a hung actor is waited for."""

    def __init__(self) -> None:
        self.passed = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.passed


@pytest.mark.usefixtures("shared_ray")
def test_an_actor_that_raises_is_killed_or_hangs_is_begun_anew_and_the_reason_told(
    tmp_path: Path,
) -> None:
    events: list[ActorEvent] = []
    clock = Clock()

    def let_time_pass() -> None:
        # The other one has answered all orders, so that it is not late by that.
        if (tmp_path / "hangs").exists() and not pool._actors[0].sent:
            (tmp_path / "hangs").unlink()
            clock.passed += 1000.0

    pool = pool_of(
        partial(FaultyPlayer, str(tmp_path)), queue=2, deadline_seconds=500.0,
        on_event=events.append, on_silence=let_time_pass, clock=clock,
    )  # fmt: skip
    rounds = []
    for number in range(8):
        rounds.append(pool.next_round(make_order))
        (tmp_path / f"taken{number}").touch()
    assert rows_of(rounds, 0) == steps_of(24)
    assert rows_of(rounds, 1) == steps_of(6, 6, 6, 6)
    assert [each.number for each in rounds if each.restarted == (1,)] == [2, 4, 6]
    assert len({pid_of(each, 0) for each in rounds}) == 1
    pids = [pid_of(each, 1) for each in rounds]
    assert len(set(pids)) == 4
    lost = [process(pid) for pid in pids[:6:2]]
    eventually(lambda: not any(each.alive for each in lost))
    raised, killed, hung = events
    assert [event.part for event in events] == [ActorShare(1, 2, number) for number in range(3)]
    assert raised.reason == "ZeroDivisionError: no more credits"
    assert 'raise ZeroDivisionError("no more credits")' in raised.details
    assert killed.reason.startswith("The actor is dead because its worker process has died")
    assert str(pids[2]) in killed.details
    assert hung.reason == "no answer within 500 s"
    assert [event.lost_samples for event in events] == [6, 6, 6]
    assert pool.counts.lost == 18
    pool.close()


@pytest.mark.usefixtures("shared_ray")
def test_a_slow_actor_is_waited_for() -> None:
    events: list[ActorEvent] = []
    pool = pool_of(SlowPlayer, queue=2, on_event=events.append)
    rounds = [pool.next_round(make_order) for _ in range(4)]
    for actor in (0, 1):
        assert rows_of(rounds, actor) == steps_of(12)
    assert not events
    # Two seconds at least, of which few are spent elsewhere.
    assert pool.counts.read()["actors_wait_share"] > 0.1
    pool.close()


@pytest.mark.usefixtures("shared_ray")
def test_an_actor_that_cannot_be_built_ends_the_run_with_its_traceback() -> None:
    pool = pool_of(UnbuildablePlayer, 1, max_restarts=1)
    with pytest.raises(ActorsFailedError, match="FileNotFoundError: no such cabinet") as caught:
        pool.next_round(make_order)
    assert 'raise FileNotFoundError("no such cabinet")' in caught.value.details
    pool.close()


@pytest.mark.usefixtures("shared_ray")
def test_more_than_the_store_holds_goes_to_the_disk_and_the_run_goes_on() -> None:
    # 8 MB a chunk: what is kept here of 10 rounds of 2 actors is more than the store.
    pool = pool_of(partial(HonestPlayer, row_bytes=8 * 2**20 // 6), queue=2)
    rounds = [pool.next_round(make_order) for _ in range(10)]
    assert sum(chunk.nbytes for each in rounds for chunk in each.chunks) > 1.5 * STORE
    for actor in range(2):
        assert rows_of(rounds, actor) == steps_of(30)
        assert all((each.chunks[actor].columns["bulk"] == actor).all() for each in rounds)
    assert pool.counts.restarts == 0
    pool.close()


@pytest.mark.usefixtures("shared_ray")
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


def test_a_cluster_that_is_not_there_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_here(**_settings: Any) -> None:
        # Another's may run on the machine that tests.
        raise ConnectionError("Could not find any running Ray instance")

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", none_here)
    with pytest.raises(UserError, match=r"no Ray cluster at 'auto': .*ray start --head"):
        RayExecutor(HonestPlayer, address="auto")


def test_without_ray_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r"pip install 'tempest-agent\[ray\]'"):
        RayExecutor(HonestPlayer)


def test_a_sigterm_while_ray_begins_gets_the_handler_it_was_meant_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    got: list[int] = []
    tries: list[int] = []
    ended: list[int] = []

    def exit_as_ray(number: int, frame: Any) -> None:
        sys.exit(number)

    def init(**_: Any) -> None:
        tries.append(len(got))
        signal.signal(signal.SIGTERM, exit_as_ray)
        if len(tries) == 1:
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setattr(ray, "shutdown", lambda: ended.append(len(tries)))
    monkeypatch.setattr(ray_executor, "watch_over", lambda _: RayWatch([]))
    monkeypatch.setattr(ray, "put", lambda value: value)

    def handler(number: int, frame: Any) -> None:
        got.append(number)

    before = signal.signal(signal.SIGTERM, handler)
    try:
        RayExecutor(HonestPlayer, store_bytes=STORE)
        assert signal.getsignal(signal.SIGTERM) is handler
    finally:
        signal.signal(signal.SIGTERM, before)
    assert got == [signal.SIGTERM]
    assert tries == [0, 1]
    assert ended == [1]


def test_that_ray_itself_is_gone_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise BrokenPipeError("Broken pipe")

    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    monkeypatch.setattr(ray_executor, "watch_over", lambda _: RayWatch([]))
    monkeypatch.setattr(ray, "put", lambda value: value)
    executor = RayExecutor(HonestPlayer)
    words = r"^Ray has ended on this machine \(Broken pipe\): see its logs, "
    for name in ("wait", "put"):
        monkeypatch.setattr(ray, name, fail)
    worker = SimpleNamespace(play=SimpleNamespace(remote=fail))
    for use in (
        lambda: executor.wait([1], 1.0),
        lambda: executor.put(snapshot(1)),
        lambda: executor.submit(worker, Order(1), 1),
    ):
        with pytest.raises(PlayFailedError, match=words):
            use()

"""Whether Ray's servers are still there: without Ray, and on a clock of the test's."""

from __future__ import annotations

import socket
import time
from types import SimpleNamespace

import pytest

from tempest_agent.errors import UserError
from tempest_agent.ray_support.cluster import LOGS
from tempest_agent.ray_support.watch import RayWatch, failing_as, head_at, raylet_at

pytestmark = pytest.mark.xdist_group("ray")

HEAD, RAYLET = "host:6379", "here:10001"


class Cluster:
    """Servers that answer or not, and the time."""

    def __init__(self) -> None:
        self.silent: set[str] = set()
        self.now = 0.0
        posts = [head_at(HEAD), raylet_at(RAYLET)]
        self.watch = RayWatch(posts, self.knock, lambda: self.now)

    def knock(self, address: str) -> None:
        assert address in (HEAD, RAYLET)
        if address in self.silent:
            raise ConnectionRefusedError(111, "Connection refused")

    def looks(self, seconds: float) -> bool:
        self.now += seconds
        return self.watch.look()


def test_a_head_is_lost_once_it_has_been_silent_for_long_enough() -> None:
    cluster = Cluster()
    assert cluster.looks(0.0)
    assert cluster.looks(100.0)
    cluster.silent = {HEAD}
    assert not cluster.looks(19.0)
    assert cluster.watch.lost == ""
    assert not cluster.looks(1.0)
    assert cluster.watch.lost == (
        "the head of the Ray cluster at host:6379 has not answered for 20 s ([Errno 111] "
        "Connection refused): the cluster was stopped, or the machine of its head is lost"
    )
    assert cluster.watch.patience == 15.0


def test_a_raylet_is_lost_sooner() -> None:
    cluster = Cluster()
    cluster.looks(0.0)
    cluster.silent = {RAYLET}
    assert not cluster.looks(1.0)
    assert cluster.watch.lost == ""
    assert not cluster.looks(1.0)
    assert cluster.watch.lost == (
        "Ray has ended on this machine: its raylet at here:10001 has not answered for 2 s "
        f"([Errno 111] Connection refused); {LOGS}"
    )
    assert cluster.watch.patience == 3.0
    cluster.silent = {HEAD, RAYLET}
    cluster.looks(100.0)
    assert cluster.watch.patience == 3.0


def test_a_head_that_comes_back_is_not_lost() -> None:
    cluster = Cluster()
    cluster.looks(0.0)
    cluster.silent = {HEAD}
    cluster.looks(19.0)
    cluster.silent = set()
    assert cluster.looks(100.0)
    cluster.silent = {HEAD}
    cluster.looks(19.0)
    assert cluster.watch.lost == ""
    cluster.looks(1.0)
    assert cluster.watch.lost
    cluster.silent = set()
    cluster.looks(1.0)
    assert cluster.watch.lost == ""


def test_a_head_that_cannot_be_seen_from_here_is_not_lost() -> None:
    cluster = Cluster()
    cluster.silent = {HEAD}
    assert cluster.looks(1000.0)
    assert cluster.watch.lost == ""


def test_it_looks_by_itself_at_a_real_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        post = head_at(f"127.0.0.1:{server.getsockname()[1]}")
        post.grace = 0.0
        watch = RayWatch([post])
        watch.begin(interval=0.01)
        server.accept()[0].close()
        assert watch.look()
        assert watch.lost == ""
    while not watch.lost:
        time.sleep(0.01)
    watch.close()
    assert "Connection refused" in watch.lost


def test_what_ray_raises_is_one_line_and_what_others_raise_is_theirs() -> None:
    class RayError(Exception):
        pass

    ray = SimpleNamespace(exceptions=SimpleNamespace(RayError=RayError))
    cluster = Cluster()
    for error in (RayError, OSError, RuntimeError):
        with pytest.raises(UserError) as caught, cluster.watch.guard(ray, UserError):
            raise error("\x1b[36mno\x1b[39m\nraylet")
        assert str(caught.value).startswith("Ray has ended on this machine (no raylet): see its")
        assert isinstance(caught.value.__cause__, error)
    with pytest.raises(ZeroDivisionError), failing_as(UserError, ray):
        raise ZeroDivisionError
    with cluster.watch.guard(ray, UserError):
        pass
    cluster.looks(0.0)
    cluster.silent = {HEAD}
    cluster.looks(20.0)
    lost = pytest.raises(UserError, match="the head of the Ray cluster")
    with lost, cluster.watch.guard(ray, UserError):
        raise AssertionError("it is not asked")

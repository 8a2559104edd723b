"""Whether the head of a Ray cluster is still there: without Ray, and on a clock of the test's."""

from __future__ import annotations

import socket
import time
from types import SimpleNamespace

import pytest

from tempest_agent.errors import UserError
from tempest_agent.ray_head import HeadWatch, failing_as


class Head:
    """Answers or not, and the time."""

    def __init__(self, address: str = "host:6379") -> None:
        self.answers, self.now = True, 0.0
        self.watch = HeadWatch(address, self.knock, grace=20.0, clock=lambda: self.now)

    def knock(self, address: str) -> None:
        assert address == "host:6379"
        if not self.answers:
            raise ConnectionRefusedError(111, "Connection refused")

    def looks(self, seconds: float) -> bool:
        self.now += seconds
        return self.watch.look()


def test_a_head_is_lost_once_it_has_been_silent_for_long_enough() -> None:
    head = Head()
    assert head.looks(0.0)
    assert head.looks(100.0)
    head.answers = False
    assert not head.looks(19.0)
    assert head.watch.lost == ""
    assert not head.looks(1.0)
    assert head.watch.lost.startswith(
        "the head of the Ray cluster at host:6379 has not answered for 20 s "
        "([Errno 111] Connection refused): "
    )


def test_a_head_that_comes_back_is_not_lost() -> None:
    head = Head()
    head.looks(0.0)
    head.answers = False
    head.looks(19.0)
    head.answers = True
    assert head.looks(100.0)
    head.answers = False
    head.looks(19.0)
    assert head.watch.lost == ""
    head.looks(1.0)
    assert head.watch.lost
    head.answers = True
    head.looks(1.0)
    assert head.watch.lost == ""


def test_a_head_that_cannot_be_seen_from_here_is_not_lost() -> None:
    head = Head()
    head.answers = False
    assert head.looks(1000.0)
    assert head.watch.lost == ""


def test_it_looks_by_itself_at_a_real_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        watch = HeadWatch(f"127.0.0.1:{server.getsockname()[1]}", grace=0.0)
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
    head = Head()
    for error in (RayError, OSError, RuntimeError):
        with pytest.raises(UserError) as caught, head.watch.guard(ray, UserError):
            raise error("\x1b[36mno\x1b[39m\nraylet")
        assert str(caught.value).startswith("Ray has ended on this machine (no raylet): see its")
        assert isinstance(caught.value.__cause__, error)
    with pytest.raises(ZeroDivisionError), failing_as(UserError, ray):
        raise ZeroDivisionError
    with head.watch.guard(ray, UserError):
        pass
    head.looks(0.0)
    head.answers = False
    head.looks(20.0)
    with (
        pytest.raises(UserError, match="the head of the Ray cluster"),
        head.watch.guard(ray, UserError),
    ):
        raise AssertionError("it is not asked")

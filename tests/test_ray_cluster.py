"""An address of a Ray cluster is tried before Ray spends a minute on it."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from tempest_agent.config import load_config
from tempest_agent.distributed.games import remote_games
from tempest_agent.errors import UserError
from tempest_agent.ray_cluster import require_listening
from tempest_agent.sweep.ray_tasks import connect


@pytest.fixture
def deaf_port() -> Iterator[int]:
    """A port at which nobody listens; it is taken, so that nobody else begins to."""
    with socket.socket() as own:
        own.bind(("127.0.0.1", 0))
        yield int(own.getsockname()[1])


@pytest.mark.parametrize("form", ["127.0.0.1:{}", "ray://127.0.0.1:{}", "localhost:{}"])
def test_somebody_listens_or_nobody(form: str, deaf_port: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        require_listening(form.format(server.getsockname()[1]))
    with pytest.raises(ConnectionRefusedError):
        require_listening(form.format(deaf_port))


@pytest.mark.parametrize("address", ["auto", "local", "nonsense", "host:port", ""])
def test_what_is_no_host_and_port_is_left_to_ray(address: str) -> None:
    require_listening(address)


def test_a_port_that_cannot_be() -> None:
    with pytest.raises(OSError, match="70000 is no port"):
        require_listening("127.0.0.1:70000")


def test_a_run_and_a_sweep_say_so_in_one_line(deaf_port: int) -> None:
    address = f"127.0.0.1:{deaf_port}"
    words = f"^no Ray cluster at '{address}'.*refused.*ray start --head"
    with pytest.raises(UserError, match=words):
        remote_games(load_config("smoke", ["actors.count=1", f"actors.ray_address={address}"]))

    class Untouched:
        """A Ray that must not be asked."""

    with pytest.raises(UserError, match=words):
        connect(Untouched(), address)

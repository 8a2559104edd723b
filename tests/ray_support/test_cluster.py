"""How a Ray cluster is joined or started, and what is said if none comes up."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import ray
from click.testing import CliRunner

from tempest_agent.actors.remote_games import remote_games
from tempest_agent.cli import cli
from tempest_agent.config import load_config
from tempest_agent.errors import UserError
from tempest_agent.ray_support import cluster as ray_cluster
from tempest_agent.ray_support.cluster import connect, require_listening

pytestmark = pytest.mark.xdist_group("ray")


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
        connect(Untouched(), address, 0)


def slow_machine(**_: Any) -> None:
    raise Exception("The current node timed out during startup.")


def no_token(**_: Any) -> None:
    raise ray.exceptions.AuthenticationError("no token found")


@pytest.fixture
def without_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")  # Nothing is changed in this process.


TRAIN = ("train", "--config", "smoke", "--actors", "1", "--run-dir", "run")
SWEEP = ("sweep", "smoke", "--seeds", "1", "--out", "out", "--ray-address", "local")


@pytest.mark.usefixtures("without_ray")
@pytest.mark.parametrize("init", [slow_machine, no_token])
@pytest.mark.parametrize("command", [TRAIN, SWEEP])
def test_a_ray_that_does_not_come_up_is_one_line_and_leaves_no_run(
    monkeypatch: pytest.MonkeyPatch, init: Callable[..., None], command: tuple[str, ...]
) -> None:
    monkeypatch.setattr(ray, "init", init)
    for _ in range(2):  # The same command again is no other.
        result = CliRunner().invoke(cli, list(command))
        assert result.exit_code == 2
        assert "Traceback" not in result.stderr
        last = result.stderr.splitlines()[-1]
        assert last.startswith("tempest-agent: no Ray cluster on this machine: ")
        assert "give the same command again" in last
        assert not Path("run").exists()
        assert not Path("out", "base").exists()


def test_a_folder_of_strangers_is_not_rays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_cluster.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.delenv("RAY_TMPDIR", raising=False)
    own = tmp_path / f"ray-{os.getuid()}"
    assert ray_cluster._own_folder() == str(own / "ray")
    assert own.stat().st_mode & 0o777 == 0o700
    own.chmod(0o755)
    with pytest.raises(UserError, match=f"^Ray's files cannot be kept in {own}: .*RAY_TMPDIR"):
        ray_cluster._own_folder()
    monkeypatch.setenv("RAY_TMPDIR", "/elsewhere")
    assert ray_cluster._own_folder() is None


def test_a_slow_start_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(ray_cluster, "SLOW_SECONDS", 0.01)

    class Slow:
        def init(self, **_: Any) -> None:
            while not caplog.records:
                time.sleep(0.01)

    connect(Slow(), "auto", 0)
    assert caplog.messages == ["waiting for Ray, up to 3 minutes ..."]


def test_ray_has_more_time_than_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("RAY_raylet_start_wait_time_s", "RAY_gcs_server_port_wait_time_s")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    ray_cluster.import_ray("a test needs", "nothing")
    assert [os.environ[name] for name in names] == ["180", "180"]


def test_a_ray_that_listens_elsewhere_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setattr(ray, "init", lambda **_: None)
    monkeypatch.setattr(ray.util, "get_node_ip_address", lambda: "192.0.2.1")
    connect(ray, ray_cluster.LOCAL, 0)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "192.0.2.1" in record.message

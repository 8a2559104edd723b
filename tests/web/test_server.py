"""The local server: what it serves, and what it refuses."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tempest_agent.errors import UserError
from tempest_agent.web import server as server_module
from tempest_agent.web.server import SiteServer
from tempest_agent.web.site import Site

FILES = {"index.html": b"<!doctype html>", "main.js": b"//", "tempest.wasm": b"\0asm"}


@pytest.fixture
def server() -> Iterator[SiteServer]:
    with SiteServer(Site(FILES), None) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def answer(
    server: SiteServer, path: str = "/", method: str = "GET", host: str | None = None
) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=200)
    connection.putrequest(method, path, skip_host=True)
    connection.putheader("Host", f"127.0.0.1:{server.server_port}" if host is None else host)
    connection.endheaders()
    return connection.getresponse()


def test_it_serves_the_sites_files_with_their_types_and_nothing_from_elsewhere(
    server: SiteServer,
) -> None:
    for path, name, kind in (
        ("/", "index.html", "text/html; charset=utf-8"),
        ("/main.js?again", "main.js", "text/javascript; charset=utf-8"),
        ("/tempest.wasm", "tempest.wasm", "application/wasm"),
    ):
        found = answer(server, path)
        assert (found.status, found.read()) == (200, FILES[name])
        assert found.headers["Content-Type"] == kind
        policy = found.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'self'; script-src 'self' 'wasm-unsafe-eval';")
        assert found.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "path",
    [
        "/../pyproject.toml",
        "/..%2f..%2fetc/passwd",
        "//etc/passwd",
        "/static/../index.html",
        "/%2e%2e/main.js",
        "/main.js/",
        "http://elsewhere/main.js",
        "/" + "a" * 60_000,
    ],
)
def test_no_path_reaches_another_file(server: SiteServer, path: str) -> None:
    assert answer(server, path).status == 404


@pytest.mark.parametrize("host", ["", "evil.example", "evil.example:8765", "127.0.0.1.evil:1"])
def test_another_name_for_this_address_is_refused(server: SiteServer, host: str) -> None:
    found = answer(server, host=host)
    assert found.status == 403
    assert FILES["index.html"] not in found.read()


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "127.0.0.1", "[::1]:9000"])
def test_every_port_of_this_computer_is_its_own(server: SiteServer, host: str) -> None:
    """A tunnel may end at another port."""
    assert answer(server, host=host).status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "X"])
def test_only_reading_is_possible(server: SiteServer, method: str) -> None:
    assert answer(server, method=method).status == 501
    head = answer(server, method="HEAD")
    assert (head.status, head.read()) == (200, b"")


def test_clients_that_say_nothing_leave_room_for_others(
    server: SiteServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module._Handler, "timeout", 0.2)
    with ExitStack() as silent:
        for _ in range(3 * server_module.MOST_CONNECTIONS):
            connection = socket.create_connection(("127.0.0.1", server.server_port), timeout=200)
            silent.callback(connection.close)
        while True:
            try:
                assert answer(server).status == 200
                return
            except (ConnectionError, http.client.RemoteDisconnected):
                continue  # Every place is taken for a moment.


def test_a_taken_port_is_named_where_it_was_asked_for(server: SiteServer) -> None:
    with pytest.raises(UserError, match=f"--port {server.server_port}: .*leave it out"):
        SiteServer(Site(FILES), server.server_port)
    with SiteServer(Site(FILES)) as other:
        assert other.server_port != server.server_port
    assert server.address == f"http://127.0.0.1:{server.server_port}/"

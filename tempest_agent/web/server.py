"""A local server of the page: files from memory, read only, to this computer's own browsers.

The standard library's server is enough for a dozen files that never change.  No path of a client
reaches the file system: it is looked up among the names of the site.
"""

from __future__ import annotations

import socket
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import PurePosixPath
from typing import Any, Final, TypeAlias

from tempest_agent.errors import UserError
from tempest_agent.files.system_errors import system_reason

from .site import TYPES, Site

LOOPBACK: Final = "127.0.0.1"
PORT: Final = 8765
"""Tried first where no port is asked for, so that the address is mostly the same."""

OWN_NAMES = frozenset((LOOPBACK, "localhost", "[::1]"))
"""Hosts that a request may name.  Another site that points its name here is refused."""

MOST_CONNECTIONS = 64
PATIENCE = 10.0
"""Seconds that a client may take to send its request, or to take a part of an answer."""

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; object-src 'none'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}

_Request: TypeAlias = socket.socket | tuple[bytes, socket.socket]


class _Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD of the site's files, and refuses everything else."""

    server: SiteServer
    timeout = PATIENCE
    server_version = "tempest-agent"
    sys_version = ""

    def do_GET(self) -> None:
        self._answer(True)

    def do_HEAD(self) -> None:
        self._answer(False)

    def _answer(self, with_body: bool) -> None:
        host = self.headers.get("Host", "")
        if host.rpartition(":")[0] not in OWN_NAMES and host not in OWN_NAMES:
            self.send_error(HTTPStatus.FORBIDDEN, "this server answers to its own address only")
            return
        name = self.path.partition("?")[0].removeprefix("/") or "index.html"
        content = self.server.site.files.get(name)
        if content is None:
            self.send_error(HTTPStatus.NOT_FOUND, "no such file")
            return
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", TYPES[PurePosixPath(name).suffix])
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if with_body:
            self.wfile.write(content)

    def end_headers(self) -> None:
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the terminal belongs to the command."""


class SiteServer(ThreadingHTTPServer):
    """Serves ``site`` on the loopback interface until it is shut down.

    Args:
        site: the page.
        port: None for ``PORT``, or any free one if it is taken.

    Raises:
        UserError: the port is taken or not allowed.
    """

    daemon_threads = True
    request_queue_size = 128
    allow_reuse_address = True

    def __init__(self, site: Site, port: int | None = None) -> None:
        self.site = site
        self._room = threading.BoundedSemaphore(MOST_CONNECTIONS)
        try:
            super().__init__((LOOPBACK, PORT if port is None else port), _Handler)
        except OSError as error:
            if port is not None:
                raise UserError(
                    f"--port {port}: {system_reason(error)}; leave it out for a free one"
                ) from error
            super().__init__((LOOPBACK, 0), _Handler)

    @property
    def address(self) -> str:
        """The page's address."""
        return f"http://{LOOPBACK}:{self.server_port}/"

    def process_request(
        self, request: socket.socket | tuple[bytes, socket.socket], client: Any
    ) -> None:
        """Answer in a thread of its own; beyond ``MOST_CONNECTIONS`` at a time, hang up."""
        if self._room.acquire(blocking=False):
            super().process_request(request, client)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: _Request, client: Any) -> None:
        """Answer one request, and make room for the next."""
        try:
            super().process_request_thread(request, client)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that went away or was too slow."""

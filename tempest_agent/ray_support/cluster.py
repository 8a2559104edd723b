"""Import Ray, which is optional, and join or start its clusters, for actors and sweeps."""

from __future__ import annotations

import logging
import os
import re
import secrets
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from tempest_agent.envs.machine.code_cache import claim
from tempest_agent.envs.messages import printable, shown
from tempest_agent.errors import UserError

LOCAL = "local"
"""Address of a private cluster on this machine."""

PATIENCE = 10.0
"""Seconds within which a machine must answer."""

START_SECONDS = 180
"""Within which each of Ray's servers must start; Ray's 30 are too few on a busy machine."""

SLOW_SECONDS = 15.0
"""After which a log line says what is being waited for."""

LOGS = "see its logs, session_latest/logs in /tmp/ray-UID/ray or, if it was joined, in /tmp/ray"

_AUTHENTICATION = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")

log = logging.getLogger("tempest_agent")


def require_listening(address: str) -> None:
    """Check that ``address``, ``"host:port"``, accepts connections; other forms are left to Ray.

    Ray itself would try for a minute or more, with log lines of its own.

    Raises:
        OSError: nobody listens there, or there is no such machine.
    """
    found = re.fullmatch(r"(?:ray://)?\[?(.+?)\]?:(\d{1,5})", address)
    if found is None:
        return
    host, port = found[1], int(found[2])
    if port > 65_535:
        raise OSError(f"{port} is no port")
    socket.create_connection((host, port), PATIENCE).close()


def import_ray(who_needs: str, instead: str) -> Any:
    """Return the module Ray.

    Args:
        who_needs: start of the error message, such as "actors need".
        instead: end of the error message: what works without Ray.

    Raises:
        UserError: it is not installed.
    """
    # Ray would print paragraphs about every lost process; the pool and the sweep report these.
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", "^")
    for server in ("raylet_start", "gcs_server_port"):
        os.environ.setdefault(f"RAY_{server}_wait_time_s", str(START_SECONDS))
    try:
        import ray
    except ImportError as error:
        raise UserError(
            f"{who_needs} Ray, which is not installed: pip install 'tempest-agent[ray]', or "
            f"{instead}"
        ) from error
    return ray


def connect(ray: Any, address: str, store_bytes: int) -> None:
    """Join the cluster at ``address``, or start one with ``store_bytes`` of shared memory.

    A cluster started here listens on the loopback address only, requires a token that only the
    processes of this run have, and keeps its files in a private folder, unless Ray's environment
    variables say otherwise.

    Raises:
        UserError: there is none, or it cannot be started.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    require_cluster(address)
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    if address != LOCAL:
        _init(ray, address, **options)
        return
    if not any(os.environ.get(name) for name in _AUTHENTICATION):
        # Ray would keep one in a file that every user of the machine can read.
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
    options |= {"include_dashboard": False, "object_store_memory": store_bytes}
    with _on_loopback(ray):
        _init(ray, address, _temp_dir=_own_folder(), **options)


def _own_folder() -> str | None:
    """Return a private folder for Ray's sockets and logs; None for Ray's choice.

    Raises:
        UserError: the folder belongs to another user.
    """
    if sys.platform == "win32" or os.environ.get("RAY_TMPDIR"):
        return None
    # Paths of sockets must be short; macOS's temporary folder is too long.
    shared = "/tmp" if sys.platform == "darwin" else tempfile.gettempdir()
    folder = Path(shared, f"ray-{os.getuid()}")
    try:
        claim(folder)
    except OSError as error:
        raise UserError(
            f"Ray's files cannot be kept in {folder}: {error.strerror}; remove it, or name a "
            "folder of yours, with a short path, in RAY_TMPDIR"
        ) from error
    return str(folder / "ray")


def require_cluster(address: str) -> None:
    """Check that there may be a cluster at ``address``.

    Raises:
        UserError: nobody listens there.
    """
    try:
        require_listening(address)
    except OSError as error:
        raise _no_cluster(address, error) from error


def _no_cluster(address: str, error: Exception) -> UserError:
    where = "on this machine" if address == LOCAL else f"at {shown(address)}"
    hint = (
        f"if the machine is very busy, give the same command again; or {LOGS}"
        if address == LOCAL
        else "start one with 'ray start --head', or have one on this machine (train without "
        "--ray-address, sweep with --ray-address local)"
    )
    return UserError(f"no Ray cluster {where}: {reason_of(error)}; {hint}")


def _init(ray: Any, address: str, **options: Any) -> None:
    """Call ``ray.init`` and turn every failure into a ``UserError``."""
    slow = threading.Timer(
        SLOW_SECONDS, log.warning, ("waiting for Ray, up to %d minutes ...", START_SECONDS // 60)
    )
    slow.daemon = True
    slow.start()
    try:
        ray.init(address=address, **options)
    except Exception as error:  # Ray raises plain ``Exception`` if it does not start.
        raise _no_cluster(address, error) from error
    finally:
        slow.cancel()


@contextmanager
def _on_loopback(ray: Any) -> Iterator[None]:
    """Let a Ray that is started inside listen for this machine only, as on macOS and Windows."""
    from ray._private import ray_constants

    before = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before
    own = ray.util.get_node_ip_address()
    if not ip_address(own).is_loopback:
        log.warning("this version of Ray listens at %s: other machines can reach the run", own)


def keeping_sigterm(ray: Any, connect: Callable[[], None]) -> None:
    """Call ``connect`` and keep the SIGTERM handler, which ``ray.init`` replaces.

    A signal that arrives in between is passed to the original handler, and Ray is started again.
    """
    if threading.current_thread() is not threading.main_thread():
        connect()
        return
    before = signal.getsignal(signal.SIGTERM)
    while True:
        try:
            connect()
            return
        except SystemExit:
            if not callable(before):
                raise
            ray.shutdown()
            before(signal.SIGTERM, None)
        finally:
            signal.signal(signal.SIGTERM, before)


def reason_of(error: BaseException) -> str:
    """Return the message of ``error`` in one line, without terminal colours."""
    return printable(without_colours(str(error)).strip() or type(error).__name__, 200)


def without_colours(text: str) -> str:
    """Return ``text`` without terminal colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)

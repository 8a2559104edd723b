"""Ray, which is optional, and its clusters: what actors and sweeps have in common."""

from __future__ import annotations

import os
import re
import signal
import socket
import threading
from collections.abc import Callable
from typing import Any

from tempest_agent.errors import UserError

LOCAL = "local"
"""Address of a cluster of our own on this machine."""

PATIENCE = 10.0
"""Seconds in which a machine has to answer."""


def require_listening(address: str) -> None:
    """Nothing if somebody listens at ``address``, ``"host:port"``; other forms are left to Ray.

    Ray itself tries for a minute or more, with lines of its own, before it gives up.

    Raises:
        OSError: nobody does, or there is no such machine.
    """
    found = re.fullmatch(r"(?:ray://)?\[?(.+?)\]?:(\d{1,5})", address)
    if found is None:
        return
    host, port = found[1], int(found[2])
    if port > 65_535:
        raise OSError(f"{port} is no port")
    socket.create_connection((host, port), PATIENCE).close()


def import_ray(who_needs: str, instead: str) -> Any:
    """The module Ray.

    Args:
        who_needs: begins the message of the error, with its verb.
        instead: what can be done without Ray, for its end.

    Raises:
        UserError: it is not installed.
    """
    # Ray would print paragraphs about every process lost; those who gave it work tell it better.
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", "^")
    try:
        import ray
    except ImportError as error:
        raise UserError(
            f"{who_needs} Ray, which is not installed: pip install 'tempest-agent[ray]', or "
            f"{instead}"
        ) from error
    return ray


def connect(ray: Any, address: str, store_bytes: int) -> None:
    """Join the cluster at ``address``, or begin one with ``store_bytes`` of shared memory.

    Raises:
        OSError, RuntimeError, ValueError: there is none, or it cannot begin.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    require_listening(address)
    own = {"include_dashboard": False, "object_store_memory": store_bytes}
    ray.init(
        address=address,
        log_to_driver=False,
        logging_level="error",
        **(own if address == LOCAL else {}),
    )


def keeping_sigterm(ray: Any, connect: Callable[[], None]) -> None:
    """``connect``, and keep the handler of SIGTERM, which ``ray.init`` replaces by one that exits.

    A signal that comes in between gets the handler that it was meant for, and Ray another try.
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


def without_colours(text: str) -> str:
    """``text`` without the colours of a terminal."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)

"""Addresses of Ray clusters."""

from __future__ import annotations

import re
import socket

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

"""Settings of glibc's ``malloc``: freed memory stays with the process.

An update allocates and frees the activations of its batch, tens of megabytes.  By default glibc
returns such memory to the system at once, and the system clears every page of it for the next
update: several percent of a CPU's time.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Names of two settings in glibc's ``malloc.h``."""

KEPT = 1 << 30
"""Freed bytes at the end of the heap that are kept."""

SEPARATE = (1 << 26, 1 << 25)
"""Bytes above which a block is no part of the heap; the largest that glibc takes.  A replay's
arrays are larger, and go back to the system whole."""

_OWN_SETTINGS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


def keep_freed_memory(environment: Mapping[str, str] = os.environ) -> bool:
    """Make the process keep freed memory; return whether it does.

    Glibc only, and never against the user's own settings in ``environment``.
    """
    if any(name in environment for name in _OWN_SETTINGS):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False  # Another C library.
    return bool(
        mallopt(_TRIM_THRESHOLD, KEPT) and any(mallopt(_MMAP_THRESHOLD, n) for n in SEPARATE)
    )

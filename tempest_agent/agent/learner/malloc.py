"""Freed memory that stays with the process.

An update makes and frees the activations of its batch, tens of megabytes.  By default glibc hands
such memory back to the system at once, and the system clears every page of it when the next update
asks again: several percent of a CPU's time.
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
    """Whether the process now keeps freed memory: glibc only, and never against the user's own
    settings of it in ``environment``."""
    if any(name in environment for name in _OWN_SETTINGS):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False  # Another C library.
    return bool(
        mallopt(_TRIM_THRESHOLD, KEPT) and any(mallopt(_MMAP_THRESHOLD, n) for n in SEPARATE)
    )

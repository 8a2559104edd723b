"""Whether something fits into memory, checked before it is allocated.

Systems overcommit memory and kill the process that uses it, so that too large requests have to be
refused by their size.
"""

from __future__ import annotations

import os

USABLE = 0.9
"""Share of the free memory that may be used."""


def available_memory() -> int | None:
    """Return free physical memory in bytes; None if the system does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def too_large(needed: int) -> str | None:
    """Return ``None`` if ``needed`` bytes are free, else how much is needed and free, in words.

    >>> too_large(1)
    """
    free = available_memory()
    if free is None or needed <= USABLE * free:
        return None
    return f"needs {needed / 1e9:,.1f} GB of memory and {free / 1e9:,.1f} GB are free"

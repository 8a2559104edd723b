"""Errors of the machine: no memory, no space, an unreadable disk, a removed folder."""

from __future__ import annotations

import errno
import os

from tempest_agent.errors import one_line

MEMORY_SIGNS = (
    "allocate memory", "out of memory", "not enough memory", "bad_alloc", "can't start new thread",
)  # fmt: skip
"""Lower-case texts of RuntimeErrors that mean MemoryError, as torch raises them."""

FOLDER_IS_GONE = "the current folder has been removed: change to one that exists (cd)"


def machine_failure(error: BaseException) -> str | None:
    """Return what the machine could not do, in words; None if ``error`` is of another kind."""
    if is_out_of_memory(error):
        return f"not enough memory ({one_line(error)[:120]})"
    # EINVAL: a damaged archive refers to places before the start of the file.
    if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
        return system_reason(error)
    return None


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether ``error`` means that memory is exhausted."""
    if isinstance(error, MemoryError):
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    # torch has no such class for the CPU.
    words = str(error).lower()
    return isinstance(error, RuntimeError) and any(sign in words for sign in MEMORY_SIGNS)


def system_reason(error: OSError) -> str:
    """Return why the system refused; a removed current folder is named as such."""
    if error.errno == errno.ENOENT and current_folder_is_gone():
        return FOLDER_IS_GONE
    return error.strerror or one_line(error)


def current_folder_is_gone() -> bool:
    """Return whether the current folder has been removed."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False

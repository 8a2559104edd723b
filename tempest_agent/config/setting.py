"""Define a setting: its default, its sentence of help, and the allowed values."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from tempest_agent.errors import UserError


class ConfigError(UserError, ValueError):
    """A mistake in a configuration."""


def setting(
    default: Any,
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] | None = None,
    local: str | None = None,
) -> Any:
    """Return a dataclass field with its help sentence and the allowed values.

    ``local`` marks a program, a folder or an address of this machine, which no file may choose; it
    is the option of ``train`` that sets it (see ``local.py``).
    """
    metadata = {"help": help, "low": low, "high": high, "choices": choices, "local": local}
    return field(default=default, metadata=metadata)

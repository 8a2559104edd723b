"""What one setting is made of: its default, its sentence of help, and the values allowed."""

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
) -> Any:
    """A dataclass field with its help sentence and the values that are allowed."""
    metadata = {"help": help, "low": low, "high": high, "choices": choices}
    return field(default=default, metadata=metadata)

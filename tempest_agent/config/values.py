"""Single values: converted to the type of their setting, and compared with its limits."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any

from .setting import ConfigError
from .words import nearest

LARGEST = 2**62 - 1
"""Largest whole number where a setting has no limit of its own: sums of two still fit 64 bits."""


def checked(key: str, value: Any, wanted: Any, limits: Mapping[str, Any]) -> Any:
    if isinstance(wanted, types.GenericAlias):
        items = value if isinstance(value, list | tuple) else [value]
        if not items:
            raise ConfigError(f"{key}={value!r} is empty; give at least one value")
        return tuple(checked(key, item, int, limits) for item in items)
    if value is None:
        raise ConfigError(f"{key} is given no value; write {key}=VALUE, or leave it out")
    value = _converted(key, value, wanted)
    choices = limits["choices"]
    if choices and value not in choices:
        near = nearest(str(value), choices)
        raise ConfigError(f"{key}={value!r} is none of {', '.join(choices)}{near}")
    low, high = limits["low"], limits["high"]
    if high is None and isinstance(value, int):
        high = LARGEST if value > LARGEST else None
    if (low is not None and value < low) or (high is not None and value > high):
        bounds = f"at least {low}" if high is None else f"from {low} to {high}"
        raise ConfigError(f"{key}={value!r} is out of range; it must be {bounds}")
    return value


def _converted(key: str, value: Any, wanted: type) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if wanted is float:
        # YAML 1.1 reads 5e-4 (no dot) as text.
        if isinstance(value, str):
            try:
                value, is_number = float(value), True
            except ValueError:
                is_number = False
        if is_number and value == value and abs(value) != float("inf"):
            return float(value)
    elif wanted is int:
        if isinstance(value, str) and value.replace("_", "").isdecimal():
            return int(value)
        if is_number and (isinstance(value, int) or value.is_integer()):
            return int(value)
        if isinstance(value, str):
            try:
                return _converted(key, float(value), int)
            except (ValueError, OverflowError):
                pass
    elif isinstance(value, wanted):
        return value
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
    raise ConfigError(f"{key}={value!r} must be {names[wanted]}")

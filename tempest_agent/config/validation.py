"""Convert single values to the type of their setting, and check its limits."""

from __future__ import annotations

import re
import types
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

from tempest_agent.envs.messages import shown
from tempest_agent.errors import suggestion

from .setting import ConfigError

LARGEST = 2**62 - 1
"""Largest whole number of a setting without a limit: sums of two still fit 64 bits."""

MOST_ITEMS = 1_000
"""Most values of one setting."""

WHOLE = r"[-+]?(?:0|[1-9](?:_?[0-9]){0,39})"
"""Text that is a whole number, with ``_`` between two digits at most (1_000).  010 is none: it is 8
to some readers of YAML and 10 to others."""

POINTED = (
    r"[-+]?(?:(?:0|[1-9](?:_?[0-9]){0,60})\.(?:[0-9](?:_?[0-9]){0,59})?|\.[0-9](?:_?[0-9]){0,59})"
    r"(?:[eE][-+]?[0-9]{1,3})?"
)
"""Text that is a number with a decimal point."""

_WHOLE = re.compile(WHOLE)

_NUMBER = re.compile(rf"{POINTED}|[-+]?(?:0|[1-9](?:_?[0-9]){{0,60}})(?:[eE][-+]?[0-9]{{1,3}})?")

_DIGITS = re.compile(r"[-+]?[1-9](?:_?[0-9])*")

_SWITCHES = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}

_NEEDED = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text; write it in quotes",
}


def checked(key: str, value: Any, wanted: Any, limits: Mapping[str, Any]) -> Any:
    if isinstance(wanted, types.GenericAlias):
        items = value if isinstance(value, list | tuple) else [value]
        if not items:
            raise ConfigError(f"{key}={shown(value)} is empty; give at least one value")
        if len(items) > MOST_ITEMS:
            raise ConfigError(f"{key} is given {len(items):,} values; give at most {MOST_ITEMS:,}")
        return tuple(checked(key, item, int, limits) for item in items)
    if value is None:
        raise ConfigError(f"{key} is given no value; write {key}=VALUE, or leave it out")
    value = _converted(key, value, wanted)
    choices = limits["choices"]
    if choices and value not in choices:
        near = suggestion(value, choices)
        raise ConfigError(
            f"{key}={shown(value)} is none of {', '.join(choices)}" + (f"; {near}" if near else "")
        )
    low, high = limits["low"], limits["high"]
    if high is None and isinstance(value, int):
        high = LARGEST if value > LARGEST else None
    if (low is not None and value < low) or (high is not None and value > high):
        bounds = f"at least {low}" if high is None else f"from {low} to {high}"
        raise ConfigError(f"{key}={shown(value)} is out of range; it must be {bounds}")
    return value


def _converted(key: str, value: Any, wanted: type) -> Any:
    made: Any = None
    if wanted is bool and isinstance(value, str):
        made = _SWITCHES.get(value.lower())
    elif wanted is bool or wanted is str:
        made = value if isinstance(value, wanted) else None
    elif wanted is int:
        made = _whole_number(value)
    else:
        made = _number(value)
    if (
        made is None
        and wanted in (int, float)
        and isinstance(value, str)
        and _DIGITS.fullmatch(value)
    ):
        raise ConfigError(f"{key}={shown(value)} is out of range: it has too many digits")
    if made is None:
        raise ConfigError(f"{key}={shown(value)} must be {_NEEDED[wanted]}")
    return made


def _whole_number(value: object) -> int | None:
    if type(value) is not bool and isinstance(value, Integral):
        return int(value)
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        return int(value.replace("_", ""))
    number = _number(value)
    return int(number) if number is not None and number.is_integer() else None


def _number(value: object) -> float | None:
    """Return ``value`` as a finite number, or None."""
    # YAML 1.1 reads 5e-4 (no dot) as text.
    if isinstance(value, str):
        number = float(value.replace("_", "")) if _NUMBER.fullmatch(value) else float("nan")
    elif type(value) is not bool and isinstance(value, Real):
        try:
            number = float(value)
        except OverflowError:  # A whole number too large for a float.
            return None
    else:
        return None
    return number if number - number == 0.0 else None

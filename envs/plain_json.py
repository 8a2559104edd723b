"""JSON of foreign files, parsed into plain values."""

from __future__ import annotations

import json
import math
from typing import Any

_MOST_DIGITS = 40


def parse_json(text: str) -> Any:
    """Return the plain value of ``text``; every number in it is finite.

    Raises:
        ValueError: no JSON (NaN and Infinity are none), a whole number of more than 40 digits, or
            lists in lists without end.
    """
    try:
        return json.loads(
            text, parse_int=_whole_number, parse_float=_number, parse_constant=_number
        )
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _whole_number(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"it holds a number of {len(digits):,} digits")
    return int(digits)


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"it holds {text[:_MOST_DIGITS]}, which is no finite number")
    return number

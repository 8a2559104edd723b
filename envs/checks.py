"""Checks of single options: ``ValueError`` says in one line what would fit."""

from __future__ import annotations

import math
from collections.abc import Collection
from numbers import Real
from typing import TypeGuard

import numpy as np

from .messages import nearest, shown


def is_whole(value: object) -> TypeGuard[int]:
    """Return whether ``value`` is a whole number, Python's or NumPy's; True and False are none."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def check_whole(name: str, value: object, low: int, high: int, hint: str) -> None:
    """Raise ``ValueError`` unless ``value`` is a whole number from ``low`` to ``high``."""
    if not is_whole(value) or not low <= value <= high:
        raise ValueError(
            f"{name}={shown(value)}: a whole number from {low} to {high} is needed; {hint}"
        )


def check_number(name: str, value: object) -> None:
    """Raise ``ValueError`` unless ``value`` is a finite number."""
    finite = False
    if type(value) is not bool and isinstance(value, Real):
        try:
            finite = math.isfinite(value)
        except OverflowError:  # A whole number too large for a float.
            finite = False
    if not finite:
        raise ValueError(f"{name}={shown(value)}: a finite number is needed")


def check_one_of(name: str, value: object, known: Collection[str]) -> None:
    """Raise ``ValueError`` unless ``value`` is one of the words ``known``."""
    if not isinstance(value, str) or value not in known:
        near = nearest(value, known)
        advice = f"; did you mean {shown(near)}?" if near else ""
        raise ValueError(f"{name}={shown(value)}: one of {', '.join(known)}{advice}")


def check_flag(name: str, value: object) -> None:
    """Raise ``ValueError`` unless ``value`` is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name}={shown(value)}: True or False")


def check_side(name: str, value: object) -> None:
    """Raise ``ValueError`` unless ``value`` is a width or height that a picture can have."""
    check_whole(name, value, 16, 8192, "it is a side of a picture in pixels")

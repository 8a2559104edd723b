"""Checks of single values of a file, from which the schema of a checkpoint is built."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from tempest_agent.config import LARGEST
from tempest_agent.envs.messages import shown

Check = Callable[[str, Any], None]
"""Raises ``MisfitError`` if the named entry cannot have this value."""


class MisfitError(ValueError):
    """An invalid entry, described in one line."""


def quoted(value: Any) -> str:
    """Return ``value`` in a few words, whatever it is."""
    if isinstance(value, bool | float | int) or value is None:
        return f"{value!s:.40}"
    if isinstance(value, str):
        return shown(value[:40])
    if isinstance(value, Tensor):
        return f"a tensor of {str(value.dtype)[6:]} {list(value.shape)}"
    return f"a {type(value).__name__} of {len(value)}"


def wrong_value(name: str, value: Any, needed: str) -> MisfitError:
    return MisfitError(f"its entry {name or 'at the top'} is {quoted(value)}, not {needed}")


def whole(low: int = 0, high: int = LARGEST) -> Check:
    def check(name: str, value: Any) -> None:
        if type(value) is not int or not low <= value <= high:
            raise wrong_value(name, value, f"a whole number from {low} to {high}")

    return check


def number(low: float = -math.inf, high: float = math.inf) -> Check:
    """Accept a finite number."""

    def check(name: str, value: Any) -> None:
        any_number(name, value)
        if not math.isfinite(value) or not low <= value <= high:
            raise wrong_value(name, value, f"a finite number from {low} to {high}")

    return check


def any_number(name: str, value: Any) -> None:
    if type(value) not in (int, float) or (type(value) is int and abs(value) > LARGEST):
        raise wrong_value(name, value, "a number")


def flag(name: str, value: Any) -> None:
    if type(value) is not bool:
        raise wrong_value(name, value, "true or false")


def one_of(known: Collection[Any]) -> Check:
    def check(name: str, value: Any) -> None:
        if not isinstance(value, str) or value not in known:
            raise wrong_value(name, value, f"one of {', '.join(known)}")

    return check


def name_like(pattern: str) -> Check:
    def check(name: str, value: Any) -> None:
        if not isinstance(value, str) or re.fullmatch(pattern, value) is None:
            raise wrong_value(name, value, f"a name of the form {pattern}")

    return check


def optional(check: Check) -> Check:
    def check_given(name: str, value: Any) -> None:
        if value is not None:
            check(name, value)

    return check_given


def tensor(dtypes: str, *shape: int | None) -> Check:
    """Accept a tensor of one of ``dtypes``; None in ``shape`` is any length."""
    known = {getattr(torch, dtype) for dtype in dtypes.split()}

    def check(name: str, value: Any) -> None:
        fits = (
            isinstance(value, Tensor)
            and value.dtype in known
            and value.dim() == len(shape)
            and all(n is None or n == length for n, length in zip(shape, value.shape, strict=True))
        )
        if not fits:
            lengths = ["any" if n is None else n for n in shape]
            raise wrong_value(name, value, f"a tensor of {dtypes} {lengths}")

    return check


def require_table(name: str, value: Any) -> None:
    if not isinstance(value, dict):
        raise wrong_value(name, value, "a table of names and values")


def record(known: Mapping[str, Check], all_of: Iterable[str] = ()) -> Check:
    """Accept a table with the ``known`` entries; ``all_of`` are required, others are ignored."""
    needed = tuple(all_of)

    def check(name: str, value: Any) -> None:
        require_table(name, value)
        for key in needed:
            if key not in value:
                raise MisfitError(f"its entry {name} has no {shown(key)}")
        for key, part in known.items():
            if key in value:
                part(f"{name}.{key}".lstrip("."), value[key])

    return check


def table_of(part: Check, keys: Collection[str] | None = None) -> Check:
    """Accept a table of equal entries, with any names or some of ``keys``."""

    def check(name: str, value: Any) -> None:
        require_table(name, value)
        for key, item in value.items():
            if not isinstance(key, str) or (keys is not None and key not in keys):
                raise MisfitError(f"its entry {name} has an unknown name {quoted(key)}")
            part(f"{name}.{key[:80]}", item)

    return check


def list_of(part: Check, length: int | None = None) -> Check:
    def check(name: str, value: Any) -> None:
        if not isinstance(value, list | tuple) or length not in (None, len(value)):
            raise wrong_value(
                name, value, f"a list of {'any length' if length is None else length}"
            )
        for number, item in enumerate(value):
            part(f"{name}[{number}]", item)

    return check


def either(*checks: Check) -> Check:
    """Accept what one of ``checks`` accepts; otherwise the last one raises."""

    def check(name: str, value: Any) -> None:
        for each in checks[:-1]:
            try:
                each(name, value)
            except MisfitError:
                continue
            return
        checks[-1](name, value)

    return check

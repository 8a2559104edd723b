"""One measured value, and its ratio to a baseline measured in the same run."""

from __future__ import annotations

from typing import TypedDict


class Figure(TypedDict):
    """One measured value; ``baseline`` and ``ratio`` are None if there is no baseline."""

    value: float | None
    unit: str
    baseline: float | None
    ratio: float | None


def figure(value: float | None, unit: str, baseline: float | None = None) -> Figure:
    """Return ``value`` with its ratio to ``baseline``, if there is one."""
    ratio = None if baseline is None or value is None else value / baseline
    return {"value": value, "unit": unit, "baseline": baseline, "ratio": ratio}


def compared(ratio: float, unit: str, baseline: float | None, value: float | None = None) -> Figure:
    """Return a figure that is itself a ratio; ``value`` if its value is another number."""
    return {
        "value": ratio if value is None else value,
        "unit": unit,
        "baseline": baseline,
        "ratio": ratio,
    }

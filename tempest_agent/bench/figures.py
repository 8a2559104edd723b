"""One measured figure, and its ratio to a baseline of the same run."""

from __future__ import annotations

from typing import TypedDict

from tempest_agent.bench.figures import Figure, figure


class Figure(TypedDict):
    """One measured figure; ``baseline`` and ``ratio`` are None where there is no baseline."""

    value: float | None
    unit: str
    baseline: float | None
    ratio: float | None


def figure(value: float | None, unit: str, baseline: float | None = None) -> Figure:
    """A figure, with its ratio to ``baseline`` where there is one."""
    ratio = None if baseline is None or value is None else value / baseline
    return {"value": value, "unit": unit, "baseline": baseline, "ratio": ratio}


def compared(ratio: float, unit: str, baseline: float) -> Figure:
    """A figure that is a ratio of speeds; ``baseline`` is the slower way's steps/s."""
    return {"value": ratio, "unit": unit, "baseline": baseline, "ratio": ratio}

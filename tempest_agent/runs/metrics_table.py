"""Format a log row as a table for the terminal, grouped like the catalogue."""

from __future__ import annotations

import io
from collections.abc import Mapping

from stable_baselines3.common.logger import HumanOutputFormat

from tempest_agent.runs.metrics_catalogue import BY_NAME


def metrics_table(metrics: Mapping[str, float]) -> str:
    """Return ``metrics`` as Stable-Baselines3 prints them, without a trailing newline.

    Whole numbers and numbers from 1,000 on are written without decimals.
    """
    rows: dict[str, float | int] = {}
    for name, value in metrics.items():
        group = BY_NAME[name].group if name in BY_NAME else "others"
        whole = float(value).is_integer() or 999.5 <= abs(value) < float("inf")
        rows[f"{group}/{name}"] = round(value) if whole else value
    text = io.StringIO()
    HumanOutputFormat(text).write(rows, dict.fromkeys(rows, ()))
    return text.getvalue().rstrip("\n")

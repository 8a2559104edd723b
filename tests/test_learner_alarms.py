"""Symptoms are named; a healthy line is silent."""

from __future__ import annotations

import pytest

from tempest_agent.agent.alarms import alarms

HEALTHY = {
    "q_max": 20.0, "target_max": 25.0, "return_bound": 300.0, "target_clip_share": 0.0,
    "grad_norm": 2.0, "moves": 0.7,
}  # fmt: skip


def test_a_healthy_line_is_silent() -> None:
    assert alarms(HEALTHY) == []
    assert alarms({}) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"q_max": 324.0}, "q_max=324 is above 300"),
        ({"target_max": 1999.0}, "no return can exceed"),
        ({"target_clip_share": 0.01}, "1.00% of the targets were clamped"),
        ({"grad_norm": 0.0}, "gradient is 0"),
        ({"moves": 0.01}, "policy is frozen"),
    ],
)
def test_a_symptom_is_named_with_its_remedy(change: dict[str, float], words: str) -> None:
    (alarm,) = alarms({**HEALTHY, **change})
    assert words in alarm

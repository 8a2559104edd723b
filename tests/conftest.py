"""What all tests have in common."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# How long an example takes is a matter of what else the machine does.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

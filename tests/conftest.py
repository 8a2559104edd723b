"""What all tests have in common."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes is a matter of what else the machine does.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

MACHINES = (
    "test_actors_benchmark",
    "test_distributed_clusters",
    "test_distributed_ray",
    "test_distributed_train",
    "test_mame_",
    "test_ray_",
    "test_sweep_ray",
)
"""How the names of files begin whose tests use Ray or MAME: never two of them at the same time."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests of one file are run by one process, and share what its fixtures have made."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            name = nodeid.partition("::")[0].rpartition("/")[2]
            return "machines" if name.startswith(MACHINES) else name

    return ByFile(config, log)

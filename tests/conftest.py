"""What all tests have in common."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes is a matter of what else the machine does.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let one process run a whole file, so that its tests share what fixtures have made.

    Files marked ``xdist_group("machines")``, whose tests use Ray or MAME, all go to one process:
    never do two of them run at a time.
    """
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(
                pytest.mark.xdist_group(str(item.path.relative_to(item.config.rootpath)))
            )


@pytest.fixture(scope="session")
def end_of_ray() -> Iterator[None]:
    """Shut down the shared Ray cluster at the end of the session."""
    yield
    import ray

    ray.shutdown()


@pytest.fixture
def shared_ray(end_of_ray: None) -> None:
    """Connect to a Ray cluster of this machine, which all tests share and leave running."""
    import ray
    from ray_pools import STORE

    from tempest_agent.ray_support.cluster import LOCAL, connect

    if not ray.is_initialized():
        # On a busy machine Ray's workers would wait for everybody else.
        os.environ["RAY_worker_niceness"] = "0"
        connect(ray, LOCAL, STORE)

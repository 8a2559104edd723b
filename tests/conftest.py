"""What all tests have in common."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes is a matter of what else the machine does.
settings.register_profile(
    "any machine", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let one process run a whole file, so that its tests share what fixtures have made.

    Files marked ``xdist_group("machines")``, whose tests use Ray or MAME, all go to one process,
    one after the other.  (xdist 3.8 ignores its own marks with pytest 9.)
    """
    from xdist.scheduler import LoadScopeScheduling

    @cache
    def group(file: str) -> str:
        text = (config.rootpath / file).read_text(encoding="utf-8")
        return "machines" if 'xdist_group("machines")' in text else file

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group(nodeid.partition("::")[0])

    return ByFile(config, log)


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
        os.environ.update({"RAY_worker_niceness": "0"})
        connect(ray, LOCAL, STORE)

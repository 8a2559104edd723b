"""What all tests have in common."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from places import DATA

# How long an example takes is a matter of what else the machine does.
settings.register_profile(
    "any machine", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

# Test processes share the cores: threads of their own would wait for each other in circles.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# The command line is started many times here, and would be compiled each time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

RECORDING = DATA / "recordings" / "level01_random_101.npz"
COMPILES = (
    "from tempest_agent.envs.engine.batch import GameBatch\n"
    "batch = GameBatch(1)\n"
    "batch.reset(seeds=0)\n"
    "batch.step(numpy.zeros(1, numpy.int8), numpy.zeros(1, numpy.uint8))",
    "from tempest_agent.envs.machine.memory import RAM_DTYPE\n"
    "from tempest_agent.envs.recordings.recording import load_recording\n"
    "from tempest_agent.envs.recordings.verify import verify_recording\n"
    "from tempest_agent.experts import ScriptedExpert\n"
    "ScriptedExpert().act(numpy.zeros(1, RAM_DTYPE))\n"
    f"verify_recording(load_recording({str(RECORDING)!r}))",
)
"""Programs that compile most of what tests use, in about the same time."""

_compiling: list[subprocess.Popen[bytes]] = []
"""These programs, at work."""


def pytest_sessionstart(session: pytest.Session) -> None:
    """Begin to compile the simulator before a run of all tests, while they are collected."""
    config = session.config
    is_worker = hasattr(config, "workerinput")
    if config.args_source is not pytest.Config.ArgsSource.TESTPATHS or is_worker:
        return
    for program in COMPILES:
        started = subprocess.Popen(
            [sys.executable, "-c", f"import numpy\n{program}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        _compiling.append(started)


def pytest_collection_finish() -> None:
    """Let no search for garbage look through what has been imported, half a second each time."""
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Let no test begin before: no two processes shall compile the same."""
    for process in _compiling:
        process.wait()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let one process run a whole file, so that its tests share what fixtures have made.

    Files marked ``xdist_group("ray")`` all go to one process, one after the other, and so do
    those marked ``"mame"``, and ``"compiler"``: torch's, which takes seconds to import.  (xdist 3.8
    ignores its own marks with pytest 9.)
    """
    from xdist.scheduler import LoadScopeScheduling

    @cache
    def group(file: str) -> str:
        text = (config.rootpath / file).read_text(encoding="utf-8")
        mark = re.search(r'xdist_group\("(\w+)"\)', text)
        return mark[1] if mark else file

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group(nodeid.partition("::")[0])

    return ByFile(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the groups, which take longest; tests that end the shared cluster come late."""

    def place(item: pytest.Item) -> tuple[bool, bool]:
        has_group = item.get_closest_marker("xdist_group") is not None
        return not has_group, "no_shared_ray" in getattr(item, "fixturenames", ())

    items.sort(key=place)


@pytest.fixture(scope="session")
def end_of_ray() -> Iterator[None]:
    """Shut down the shared Ray cluster at the end of the session."""
    yield
    import ray

    ray.shutdown()


@pytest.fixture(scope="module")
def no_shared_ray(end_of_ray: None) -> None:
    """End the shared cluster: processes would join no other one beside it."""
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

"""A cluster for one run: who reaches it, and what is said when its raylet is killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from places import SUPPORT

pytestmark = pytest.mark.xdist_group("ray")

OWN = """
import json, os, pathlib, signal, subprocess, sys
sys.path.insert(0, sys.argv[1])
import ray
import ray_players
from processes import below, listening, process
from ray._raylet import GcsClient
from ray_pools import make_order, pool_of
from tempest_agent.agent.collect.source import PlayFailedError

def handler(number, frame):
    pass

signal.signal(signal.SIGTERM, handler)
pool = pool_of(ray_players.HonestPlayer, 1, max_restarts=1000)
pool.next_round(make_order)
family = below(os.getpid())
address = ray.get_runtime_context().gcs_address
ASKS = "GcsClient(address=address).internal_kv_keys(b'', None, timeout=20)"

def refused(token):
    # In a process of its own, because Ray remembers the token.
    code = f"import sys; from ray._raylet import GcsClient; address = sys.argv[1]; {ASKS}"
    environment = {**os.environ, "RAY_AUTH_TOKEN": token}
    return subprocess.run([sys.executable, "-c", code, address], env=environment,
                          capture_output=True, text=True).stderr

eval(ASKS)
print(json.dumps({
    "handler stays": signal.getsignal(signal.SIGTERM) is handler,
    "listening": sorted(listening([process(os.getpid()), *family])),
    "names": [each.read("cmdline") for each in family],
    "token": os.environ["RAY_AUTH_TOKEN"],
    "theirs": ray.get(ray.remote(num_cpus=0)(lambda: os.environ["RAY_AUTH_TOKEN"]).remote()),
    "refused": refused("0" * 64),
    "open": [folder.name for folder in pathlib.Path(sys.argv[2]).iterdir()
             if folder.stat().st_mode & 0o077],
}))
for each in family:
    if each.read("cmdline").split("\\0")[0].endswith("/raylet"):
        os.kill(each.pid, signal.SIGKILL)
try:
    while True:
        pool.next_round(make_order)
except PlayFailedError as error:
    pool.close()
    sys.exit(str(error))
"""
"""One actor on a cluster of its own, which is looked at, and whose raylet is then killed."""

PATIENT = {
    "RAY_gcs_rpc_server_reconnect_timeout_s": "600",
    "RAY_health_check_failure_threshold": "999",
}
"""Ray does not end our process first, however busy the machine is."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def own(home: Path) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("RAY_AUTH_")} | PATIENT
    environment.pop("RAY_TMPDIR", None)
    # Sockets have short paths.
    with TemporaryDirectory(ignore_cleanup_errors=True) as place:
        return subprocess.run(
            [sys.executable, "-c", OWN, str(SUPPORT), place],
            capture_output=True, text=True,
            env={**environment, "HOME": str(home), "TMPDIR": place},
        )  # fmt: skip


@pytest.fixture
def found(own: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert own.stdout, own.stderr
    # Ray may have words of its own about its end.
    seen: dict[str, Any] = json.loads(own.stdout.splitlines()[0])
    return seen


@pytest.mark.timeout(600)  # On a busy machine.
def test_a_cluster_for_one_run_is_out_of_reach_for_others(
    found: dict[str, Any], home: Path
) -> None:
    assert {"gcs_server", "raylet", "ray::Host"} <= {
        server for server in ("gcs_server", "raylet", "ray::Host")
        if any(server in name for name in found["names"])
    }  # fmt: skip
    assert found["listening"] == ["127.0.0.1"]
    assert found["theirs"] == found["token"]
    assert len(found["token"]) == 64
    words = found["refused"]
    assert "nauthenticated" in words or "token" in words, words
    assert found["open"] == []
    # Ray's own token, which others may read, is neither used nor made.
    assert not (home / ".ray").exists()


def test_the_handler_of_sigterm_stays(found: dict[str, Any]) -> None:
    assert found["handler stays"]


def test_a_raylet_that_is_lost_ends_the_play_before_ray_ends_the_process(
    own: subprocess.CompletedProcess[str],
) -> None:
    assert own.returncode == 1, own.stderr
    assert own.stderr.splitlines()[-1].startswith("Ray has ended on this machine"), own.stderr

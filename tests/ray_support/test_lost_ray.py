"""Runs and sweeps on a real Ray whose head is killed."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from inline_executor import InlineExecutor
from places import SUPPORT
from processes import Process, below, eventually
from ray.cluster_utils import Cluster
from ray_pools import STORE

from tempest_agent.actors.remote_games import RemoteGames
from tempest_agent.training.trainer import Trainer

pytestmark = pytest.mark.xdist_group("ray")

TRAIN = """
from tempest_agent.ray_support import watch
watch.HEAD_GRACE = 2.0
from tempest_agent.cli import main
main()
"""
SWEEP = """
import pathlib, sys
sys.path.insert(0, sys.argv[1])
from tempest_agent.ray_support import watch
watch.HEAD_GRACE = 2.0
from tempest_agent.errors import UserError
from tempest_agent.sweep.ray_executor import RayTasks
from ray_steps import SAVES, Steps
task = Steps(pathlib.Path.cwd(), "runs", SAVES)
try:
    RayTasks(sys.argv[2]).run([task], lambda: None, lambda *_: sys.exit("the command failed"))
except UserError as error:
    sys.exit(str(error))
"""
"""One command, which writes ``began`` and, when it is asked to end, ``saved``."""

PATIENT = {
    "RAY_gcs_rpc_server_reconnect_timeout_s": "600",
    "RAY_health_check_failure_threshold": "999",
}
"""Ray does not end our process first, however busy the machine is."""

SETTINGS = ("run.log_interval=256", "run.checkpoint_interval=1000000", "run.steps=4000000")


class Program:
    """A Python program at work in ``folder``."""

    def __init__(self, folder: Path, text: str, *arguments: str) -> None:
        folder.mkdir()
        self.process = subprocess.Popen(
            [sys.executable, "-c", text, *arguments], cwd=folder, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | PATIENT,
        )  # fmt: skip
        self.output = self.errors = ""

    def until(self, has_come: Callable[[], bool]) -> None:
        """Wait until it ``has_come`` so far; it may have to compile the games before."""
        eventually(lambda: has_come() or self.process.poll() is not None, seconds=1200.0)
        assert self.process.poll() is None, self.process.communicate()

    def ends(self) -> None:
        self.output, self.errors = self.process.communicate(timeout=300)

    @property
    def last_line(self) -> str:
        return self.errors.splitlines()[-1]


class Killed:
    """What a train and a sweep left and said after the head of their cluster was killed."""

    def __init__(self, folder: Path) -> None:
        # On a busy machine Ray's workers would else wait for everybody else.
        os.environ.update({"RAY_worker_niceness": "0"})
        before, cluster = started()
        self.address = cluster.address
        arguments = ["train", "--config", "smoke", "--actors", "1", "--run-dir", "run"]
        for each in SETTINGS:
            arguments += ["--set", each]
        self.folder = folder
        self.sweep = Program(folder / "sweep", SWEEP, str(SUPPORT), cluster.address)
        self.train = Program(folder / "train", TRAIN, *arguments, "--ray-address", cluster.address)
        try:
            self.sweep.until((folder / "sweep" / "began").exists)
            self.train.until(lambda: bool(self.logged_steps()))
            cluster.head_node.kill_gcs_server()
            self.sweep.ends()
            self.train.ends()
        finally:
            self.sweep.process.kill()
            self.train.process.kill()
            self.processes = [
                each for each in below(os.getpid()) if each not in before and not helps(each)
            ]
            cluster.shutdown()

    @property
    def run(self) -> Path:
        return self.folder / "train" / "run"

    def logged_steps(self) -> list[int]:
        """Decisions of every line of the run's metrics."""
        if not (self.run / "metrics.csv").exists():
            return []
        with (self.run / "metrics.csv").open(newline="") as file:
            return [int(row["steps"]) for row in csv.DictReader(file) if row["steps"]]


def started() -> tuple[list[Process], Cluster]:
    """The processes that were there before, and a cluster.

    Ray gives itself 30 seconds to begin, which can be too few where the machine is busy.
    """
    head = {"num_cpus": 2, "object_store_memory": STORE}
    for _ in range(3):
        before = below(os.getpid())
        try:
            return before, Cluster(initialize_head=True, head_node_args=head)
        except Exception as error:
            if "timed out during startup" not in str(error):
                raise
    raise AssertionError("Ray does not begin on this machine")


def helps(process: Process) -> bool:
    """Whether it is one of the two helpers of a cluster that wait for its head for a minute."""
    return "Agent" in process.read("cmdline")


@pytest.fixture(scope="module")
def killed(no_shared_ray: None, tmp_path_factory: pytest.TempPathFactory) -> Killed:
    return Killed(tmp_path_factory.mktemp("killed"))


@pytest.mark.timeout(1800)  # Where nothing is compiled yet and the machine is busy.
def test_a_run_saves_says_so_and_can_go_on(killed: Killed) -> None:
    train = killed.train
    assert train.process.returncode == 2, train.errors
    assert train.output == ""
    assert "fault of tempest-agent" not in train.errors
    resumed = Trainer.resume(
        killed.run,
        actors={"ray_address": ""},
        games=lambda config: RemoteGames(config, InlineExecutor),
    )
    assert train.last_line.startswith(
        f"tempest-agent: the head of the Ray cluster at {killed.address} has not answered for "
    )
    assert train.last_line.endswith(
        f"; saved run/checkpoints/step_{resumed.steps}.pt; "
        f"resume with: tempest-agent train --resume run --ray-address {killed.address}"
    )
    # All that was played up to the end, in whole rounds.
    assert resumed.steps >= max(killed.logged_steps())
    assert resumed.steps % (16 * 16) == 0
    replay = resumed.loop.replay
    assert replay.filled == min(resumed.steps // 16, replay.length)
    before = resumed.steps
    resumed.loop.on_metrics = lambda _: resumed.request_stop()
    assert resumed.run()["steps"] > before


@pytest.mark.timeout(1800)  # Where nothing is compiled yet and the machine is busy.
def test_a_sweep_lets_its_commands_save_and_says_how_to_go_on(killed: Killed) -> None:
    sweep = killed.sweep
    assert sweep.process.returncode == 1
    assert sweep.last_line.startswith(
        f"the head of the Ray cluster at {killed.address} has not answered for "
    )
    assert "--ray-address of another cluster" in sweep.last_line
    assert (killed.folder / "sweep" / "saved").exists()


@pytest.mark.timeout(1800)  # Where nothing is compiled yet and the machine is busy.
def test_no_process_is_left_once_the_cluster_is_gone(killed: Killed) -> None:
    assert killed.processes
    eventually(lambda: not any(each.alive for each in killed.processes))

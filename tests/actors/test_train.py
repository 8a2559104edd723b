"""``tempest-agent train --actors`` with actors in processes of their own, on Ray."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from processes import Process, below, eventually, shared_memory

from tempest_agent.actors.remote_games import remote_games
from tempest_agent.agent.checkpoints.checkpoint_files import read_checkpoint
from tempest_agent.agent.curriculum.schedules import Schedules
from tempest_agent.config import load_config
from tempest_agent.training.trainer import Trainer

pytestmark = pytest.mark.xdist_group("ray")

TRAIN = [sys.executable, "-m", "tempest_agent.cli", "train", "--json", "--eval-games", "0"]


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("shared_ray")
def test_one_synchronous_actor_in_a_process_of_its_own_changes_no_bit(tmp_path: Path) -> None:
    settings = ["run.device=cpu", "learner.precision=float32", "run.steps=800"]
    here = Trainer(load_config("smoke", settings), tmp_path / "here")
    here.run()
    config = load_config("smoke", [*settings, "actors.count=1", "actors.synchronous=true"])
    there = Trainer(config, tmp_path / "there", games=remote_games(config))
    try:
        there.run()
    finally:
        there.close()
    one, two = (each.loop.learner.state_dict() for each in (here, there))
    assert one["updates"] == two["updates"] > 10
    for network in ("online", "target", "average"):
        for name, value in one[network].items():
            assert torch.equal(value, two[network][name]), (network, name)
    ours, theirs = (each.loop.replay.arrays() for each in (here, there))
    for name, column in ours.items():
        np.testing.assert_array_equal(column, theirs[name], err_msg=name)


WAITS_TO_BE_KILLED = """
import pathlib, time
from tempest_agent.cli import main
from tempest_agent.training.session import Session
plain = Session._on_checkpoint
def save_and_wait(session, path):
    plain(session, path)
    pathlib.Path("saved").touch()
    time.sleep(1000)
Session._on_checkpoint = save_and_wait
main()
"""
"""The command line, which stays at its first checkpoint."""


class Ended:
    """A run with actors that got a signal: what it said, and the processes that it had started."""

    def __init__(
        self, folder: Path, command: list[str], number: int, has_come: Callable[[], bool]
    ) -> None:
        self.folder = folder
        with subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as run:
            try:
                eventually(lambda: has_come() or run.poll() is not None, 400.0)
                assert run.poll() is None, run.communicate()
                self.family = below(run.pid)
                names = [each.read("cmdline") for each in self.family]
                self.shared = set().union(*map(shared_memory, self.family))
                run.send_signal(number)
                self.output, self.said = run.communicate(timeout=200)
            finally:
                run.kill()
        self.code = run.returncode
        assert any("raylet" in name for name in names)
        assert sum("ray::Host" in name for name in names) == 2
        assert self.shared

    def alive(self) -> list[Process]:
        """Those that are left."""
        return [each for each in self.family if each.alive]


@pytest.fixture(scope="session")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """A run that was killed after its first checkpoint."""
    folder = tmp_path_factory.mktemp("killed")
    begin = ["train", "--eval-games", "0", "--config", "smoke", "--run-dir", "run"]
    begin += ["--steps", "400000", "--actors", "2"]
    command = [sys.executable, "-c", WAITS_TO_BE_KILLED, *begin]
    return Ended(folder, command, signal.SIGKILL, (folder / "saved").exists)


@pytest.mark.timeout(900)
def test_actors_and_shared_memory_are_gone_after_a_run_is_killed(killed: Ended) -> None:
    assert killed.code == -signal.SIGKILL, killed.said
    # Two helpers of Ray's wait for a minute; they hold nothing.
    eventually(lambda: len(killed.alive()) <= 2)
    assert not any(shared_memory(each) for each in killed.alive())


@pytest.mark.timeout(900)
def test_a_killed_run_with_actors_goes_on_and_is_interrupted(killed: Ended) -> None:
    folder = killed.folder
    checkpoints = folder / "run" / "checkpoints"
    stored = read_checkpoint(checkpoints / "step_2000.pt")
    # An update after each decision of 16 games as soon as 500 rows are there; the last is owed.
    assert (stored["step"], stored["learner"]["updates"]) == (2000, 2000 // 16 - 33)
    assert stored["collector"]["actors"]["incarnations"] == [0, 0]
    assert len(list(checkpoints.glob("step_*.pt"))) == 1

    later = checkpoints / "step_4000.pt"
    second = Ended(folder, [*TRAIN, "--resume", "run"], signal.SIGINT, later.exists)
    assert second.code == 130, second.said
    assert "Traceback" not in second.said
    assert "2 actors play on Ray" in second.said
    result = json.loads(second.output)
    assert result["stopped"]
    assert result["steps"] >= 4000
    assert result["updates"] == result["steps"] // 16 - 33
    last = read_checkpoint(folder / result["checkpoint"])
    assert last["collector"]["actors"]["incarnations"] == [1, 1]
    assert last["step"] == result["steps"]
    with (folder / "run" / "metrics.csv").open(newline="") as file:
        lines = [{k: float(v) for k, v in row.items() if v} for row in csv.DictReader(file)]
    assert [line["steps"] for line in lines[:4]] == [1008, 2000, 3008, 4000]
    schedules = Schedules.of(load_config("smoke", ["run.steps=400000"]))
    for line in lines:
        step = int(line["steps"])
        assert line["updates"] == max(0, step // 16 - 33)
        np.testing.assert_allclose(line["expert_ratio"], schedules.expert_ratio(step), rtol=1e-6)
        np.testing.assert_allclose(line["learning_rate"], schedules.learning_rate(step), rtol=1e-6)
        assert line["actors_taken"] >= step
        assert line["actors_lost"] == 0
    # Nothing is left of it; the files of most shared memory are nameless from the beginning.
    eventually(lambda: not second.alive())
    assert not any(Path(name).exists() for name in second.shared)


@pytest.mark.usefixtures("no_shared_ray")  # A minute after the kill, that is late.
def test_no_process_is_left_after_a_run_was_killed(killed: Ended) -> None:
    eventually(lambda: not killed.alive(), seconds=280.0)

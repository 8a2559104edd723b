"""``tempest-agent train --actors`` with actors in processes of their own, on Ray."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from processes import eventually

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


KILLED = """
import os, signal
from tempest_agent.cli import main
from tempest_agent.training.session import Session
plain = Session._on_checkpoint
def save_and_die(session, path):
    plain(session, path)
    os.kill(os.getpid(), signal.SIGKILL)
Session._on_checkpoint = save_and_die
main()
"""
"""The command line, killed after its first checkpoint."""


@pytest.mark.timeout(900)
def test_a_run_with_actors_is_killed_goes_on_and_is_interrupted(tmp_path: Path) -> None:
    checkpoints = tmp_path / "run" / "checkpoints"
    begin = ["train", "--eval-games", "0", "--config", "smoke", "--run-dir", "run"]
    begin += ["--steps", "400000", "--actors", "2"]
    first = subprocess.run(
        [sys.executable, "-c", KILLED, *begin],
        cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=600,
    )  # fmt: skip
    said = first.stderr
    assert first.returncode == -signal.SIGKILL, said
    assert (checkpoints / "step_2000.pt").exists(), said
    stored = read_checkpoint(checkpoints / "step_2000.pt")
    # An update after each decision of 16 games as soon as 500 rows are there; the last is owed.
    assert (stored["step"], stored["learner"]["updates"]) == (2000, 2000 // 16 - 33)
    assert stored["collector"]["actors"]["incarnations"] == [0, 0]
    assert len(list(checkpoints.glob("step_*.pt"))) == 1

    with subprocess.Popen(
        [*TRAIN, "--resume", "run"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    ) as second:  # fmt: skip
        later = checkpoints / "step_4000.pt"
        eventually(lambda: later.exists() or second.poll() is not None, 400.0)
        second.send_signal(signal.SIGINT)
        out, said = second.communicate(timeout=200)
    assert second.returncode == 130, said
    assert "Traceback" not in said
    assert "2 actors play on Ray" in said
    result = json.loads(out)
    assert result["stopped"]
    assert result["steps"] >= 4000
    assert result["updates"] == result["steps"] // 16 - 33
    last = read_checkpoint(tmp_path / result["checkpoint"])
    assert last["collector"]["actors"]["incarnations"] == [1, 1]
    assert last["step"] == result["steps"]
    with (tmp_path / "run" / "metrics.csv").open(newline="") as file:
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

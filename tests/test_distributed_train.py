"""``tempest-agent train --actors`` with actors in processes of their own, on Ray."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from tempest_agent.agent.checkpoint import read_checkpoint
from tempest_agent.agent.schedules import Schedules
from tempest_agent.agent.trainer import Trainer
from tempest_agent.config import load_config
from tempest_agent.distributed.games import remote_games

TRAIN = [sys.executable, "-m", "tempest_agent.cli", "train", "--json", "--eval-games", "0"]


@pytest.mark.timeout(900)
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
    one, two = (each.algorithm.learner.state_dict() for each in (here, there))
    assert one["updates"] == two["updates"] > 10
    for network in ("online", "target", "average"):
        for name, value in one[network].items():
            assert torch.equal(value, two[network][name]), (network, name)
    ours, theirs = (each.algorithm.replay.arrays() for each in (here, there))
    for name, column in ours.items():
        np.testing.assert_array_equal(column, theirs[name], err_msg=name)


def until(file: Path, process: subprocess.Popen[str]) -> None:
    """Wait until a run has written ``file``."""
    deadline = time.monotonic() + 400
    while not file.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)


@pytest.mark.timeout(900)
def test_a_run_with_actors_is_killed_goes_on_and_is_interrupted(tmp_path: Path) -> None:
    checkpoints = tmp_path / "run" / "checkpoints"
    begin = [*TRAIN, "--config", "smoke", "--run-dir", "run", "--steps", "400000", "--actors", "2"]
    with subprocess.Popen(
        begin, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as first:
        until(checkpoints / "step_2000.pt", first)
        first.kill()
        said = first.communicate()[1]
    assert (checkpoints / "step_2000.pt").exists(), said
    stored = read_checkpoint(checkpoints / "step_2000.pt")
    # An update after each decision of 16 games as soon as 500 rows are there; the last is owed.
    assert (stored["step"], stored["learner"]["updates"]) == (2000, 2000 // 16 - 33)
    assert stored["collector"]["actors"]["incarnations"] == [0, 0]
    for later in checkpoints.glob("step_[4-9]*.pt"):
        later.unlink()

    with subprocess.Popen(
        [*TRAIN, "--resume", "run"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    ) as second:  # fmt: skip
        until(checkpoints / "step_4000.pt", second)
        second.send_signal(signal.SIGINT)
        out, said = second.communicate(timeout=120)
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

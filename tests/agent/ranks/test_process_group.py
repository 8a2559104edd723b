"""Several processes that learn together: two of them on a CPU, against one."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import two_ranks
from click.testing import CliRunner
from fake_games import FakeGames, FakeTeacher
from places import SUPPORT
from processes import Process, below, eventually, kill
from torch.distributed import TCPStore

from tempest_agent.agent.checkpoints.checkpoint_files import newest_checkpoint, read_checkpoint
from tempest_agent.agent.collect.drivers import ladder, teacher_free_games
from tempest_agent.agent.ranks import process_group as data_parallel
from tempest_agent.agent.ranks.config_share import seed_of, share_of
from tempest_agent.agent.ranks.merge_states import merge_arrays, split_arrays
from tempest_agent.agent.ranks.process_group import (
    TIMEOUT_VARIABLE,
    RankLostError,
    Ranks,
    join,
    watching_torchrun,
)
from tempest_agent.agent.replay.buffer import ReplayBuffer
from tempest_agent.agent.replay.device_buffer import DeviceReplay
from tempest_agent.agent.replicas import ALONE
from tempest_agent.cli import cli
from tempest_agent.config import GameConfig, from_dict, load_config
from tempest_agent.demonstrations.dataset import Episode
from tempest_agent.demonstrations.prefill import prefill
from tempest_agent.envs.features.layout import NUM_FEATURES
from tempest_agent.errors import UserError
from tempest_agent.training import session as training
from tempest_agent.training.trainer import Trainer

HERE = SUPPORT
CPU = torch.device("cpu")


def start(
    folder: Path, store: TCPStore, *arguments: str, **variables: str
) -> list[subprocess.Popen[str]]:
    """Both ranks of ``two_ranks.py``, which meet at ``store``."""
    shared = {
        "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store.port),
        # As under torchrun, which listens for its ranks: a port that is free now and given to the
        # first of them could be another's by then.
        "TORCHELASTIC_USE_AGENT_STORE": "True", "OMP_NUM_THREADS": "1", **variables,
    }  # fmt: skip
    return [
        subprocess.Popen(
            [sys.executable, str(HERE / "two_ranks.py"), str(folder), *arguments],
            env={**os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip


def listener() -> TCPStore:
    """Where ranks meet, at a port that was free; it has to be kept as long as they run."""
    return TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)


def ended(processes: list[subprocess.Popen[str]], folder: Path) -> list[dict[str, Any]]:
    """What both have written; at last the second one is killed."""
    for process, code in zip(processes, (0, -signal.SIGKILL), strict=True):
        _, errors = process.communicate(timeout=250)
        assert process.returncode == code, errors
    return [torch.load(folder / f"rank{r}.pt", weights_only=False) for r in range(2)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ranks")


@pytest.fixture(scope="module")
def both(folder: Path) -> Iterator[list[dict[str, Any]]]:
    """What the two ranks came to."""
    two_ranks.run_of(folder / "one", ALONE, stop=True)
    store = listener()
    processes = start(folder, store)
    try:
        yield ended(processes, folder)
    finally:
        for process in processes:
            process.kill()


def assert_equal(one: Any, other: Any) -> None:
    """Bit for bit, trees of tensors, arrays and numbers."""
    if isinstance(one, dict):
        assert list(one) == list(other)
        for name in one:
            assert_equal(one[name], other[name])
    else:
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


def test_messages(both: list[dict[str, Any]]) -> None:
    for rank, found in enumerate(each["messages"] for each in both):
        assert found["stops before"] is False
        assert found["stops"] is True
        assert found["gather"] == [[0, ""], [1, "y" * 700]]
        assert found["broadcast"]["array"].tolist() == [0, 1, 2, 3]
        assert found["deal"] == {"to": rank}
        assert (found["total"], int(found["tensor"]), found["highest"]) == (4.0, 7, 2.0)
    assert both[1]["messages"]["collect"] is None
    collected = both[0]["messages"]["collect"]
    assert [each["array"].tolist() for each in collected] == [[0, 1, 2, 3], [1, 2, 3, 4]]
    assert [len(each["long"]) for each in collected] == [0, 1000]


@pytest.mark.parametrize("kind", [kind for kind in two_ranks.KINDS if kind != "float16"])
def test_the_gradient_of_two_ranks_is_that_of_one_large_batch(
    both: list[dict[str, Any]], kind: str
) -> None:
    """Weights and labels lie unevenly over the ranks; clipped together."""
    alone = two_ranks.gradients(two_ranks.learner_of(kind), two_ranks.whole_batch(9))
    for found in (each[f"gradients {kind}"] for each in both):
        torch.testing.assert_close(found["norm"], alone["norm"], rtol=1e-5, atol=0.0)
        assert found["gradients"].keys() == alone["gradients"].keys()
        for name, gradient in alone["gradients"].items():
            scale = gradient.abs().max().item()
            torch.testing.assert_close(
                found["gradients"][name], gradient, rtol=1e-5, atol=1e-5 * scale
            )


@pytest.mark.parametrize("kind", list(two_ranks.KINDS))
def test_weights_stay_equal_and_a_step_is_skipped_by_all(
    both: list[dict[str, Any]], kind: str
) -> None:
    """The row that spoils a gradient is only in the second rank's batch."""
    first, second = (each[f"updates {kind}"] for each in both)
    assert_equal(first, second)
    skips = len(two_ranks.SKIPPED)
    if kind != "float16":
        assert (first["updates"], first["skipped"]) == (two_ranks.UPDATES - skips, skips)
    alone = two_ranks.updated(two_ranks.learner_of(kind), slice(0, two_ranks.ROWS))
    assert (first["updates"], first["skipped"]) == (alone["updates"], alone["skipped"])
    tolerance = 1e-5 if kind != "float16" else 2e-3
    for name, weights in alone["online"].items():
        torch.testing.assert_close(first["online"][name], weights, rtol=1e-4, atol=tolerance)


def test_ranks_of_a_run_stay_in_step(both: list[dict[str, Any]]) -> None:
    first, second = (each["run"] for each in both)
    assert_equal(first["weights"], second["weights"])
    assert_equal(first["lines"], second["lines"])
    assert [line["steps"] for line in first["lines"]] == [208, 400, 608, 800]
    assert first["steps"] == second["steps"] == two_ranks.STEPS
    # One update a decision of all 16 games, once a share of 320 decisions had been played.
    assert first["updates"] == second["updates"] == two_ranks.STEPS // 16 - 320 // 16
    assert first["free_scores"] == second["free_scores"] != []
    assert first["schedules"] == second["schedules"]
    assert first["seed"] != second["seed"]
    assert not np.array_equal(first["rows"]["codes"], second["rows"]["codes"])
    assert first["one maximum"]
    line = first["lines"][-1]
    assert line["replay_size"] == two_ranks.STEPS - 16
    assert line["sample_age_max"] < two_ranks.STEPS
    shares = [line[f"share_{name}"] for name in ("agent", "exploration", "expert")]
    assert sum(shares) == pytest.approx(1)
    assert line["games"] > two_ranks.STEPS * 0.1


def test_together_they_have_the_ladder_of_one(both: list[dict[str, Any]]) -> None:
    config = load_config(None, two_ranks.RUN)
    rates = np.stack([each["run"]["rates"] for each in both], axis=1).reshape(-1)
    wanted = ladder(16, config.exploration.epsilon_max, config.exploration.epsilon_min)
    np.testing.assert_array_equal(rates, wanted)
    free = sum(int(each["run"]["free"].sum()) for each in both)
    assert free == teacher_free_games(16, config.teacher.free_share)


def test_a_stop_that_one_rank_is_asked_for_stops_all(both: list[dict[str, Any]]) -> None:
    first, second = (each["stopped"] for each in both)
    assert first["result"]["stopped"]
    assert second["result"]["stopped"]
    assert first["steps"] == second["steps"]
    assert two_ranks.STOP <= first["steps"] <= two_ranks.STOP + 64


def test_all_go_back_to_the_last_good_checkpoint_of_the_first(both: list[dict[str, Any]]) -> None:
    for each in both:
        assert each["rolled back"]["step"] == two_ranks.STEPS
        assert_equal(each["rolled back"]["weights"], each["run"]["weights"])


def test_as_many_ranks_go_on_exactly(both: list[dict[str, Any]]) -> None:
    for each in both:
        whole, rest = each["run"], each["resumed"]
        assert rest["begin"] == each["stopped"]["steps"]
        for name in ("weights", "steps", "updates", "rows", "codes", "free_scores", "schedules"):
            assert_equal(rest[name], whole[name])
        assert_equal({"lines": rest["lines"][-1]}, {"lines": whole["lines"][-1]})


def test_one_process_goes_on_with_a_run_of_two(
    both: list[dict[str, Any]], folder: Path, tmp_path: Path
) -> None:
    """The checkpoint is that of a run of one process with all the games."""
    path = folder / "stopped" / "checkpoints" / f"step_{both[0]['stopped']['steps']}.pt"
    content = read_checkpoint(path)
    config = load_config(None, two_ranks.RUN)
    assert from_dict(content["config"]) == config
    # The newest checkpoint alone still has its replay.
    newest = newest_checkpoint(folder / "stopped" / "checkpoints")
    trainer = Trainer.resume(newest, games=lambda _: FakeGames(16, 0), teacher=FakeTeacher())
    assert trainer.steps == both[0]["resumed"]["steps"]
    seen = two_ranks.view(trainer.loop)
    for name in ("weights", "updates", "free_scores", "schedules"):
        assert_equal(seen[name], both[0]["resumed"][name])
    np.testing.assert_array_equal(seen["codes"][0::2], both[0]["resumed"]["codes"])
    np.testing.assert_array_equal(seen["codes"][1::2], both[1]["resumed"]["codes"])
    for rank, each in enumerate(both):
        assert_equal(split_arrays(seen["rows"], rank, 2), each["resumed"]["rows"])
    trainer.loop.collector.collect(0.5, 0.1)
    trainer.loop.owed = 1
    trainer.loop.learn_owed()


def test_two_ranks_go_on_with_a_run_of_one(both: list[dict[str, Any]], folder: Path) -> None:
    first, second = (each["from one"] for each in both)
    assert first["begin"] == second["begin"] > two_ranks.STOP - 16
    assert first["steps"] == second["steps"] == two_ranks.STEPS
    assert first["updates"] == both[0]["run"]["updates"]
    assert_equal(first["weights"], second["weights"])
    assert_equal(first["lines"], second["lines"])
    assert first["schedules"] == both[0]["run"]["schedules"]


def test_replays_are_merged_and_shared_out_by_columns() -> None:
    random = np.random.default_rng(0)

    def part(rank: int, length: int = 4, games: int = 3) -> dict[str, Any]:
        aside = np.array([1, 8]) if rank else np.array([5])
        return {
            "codes": random.integers(0, 9, (length, games, 2)),
            "reward": random.random((length, games)),
            "aside_rows": aside,
            "aside_codes": random.integers(0, 9, (len(aside), 2)),
            "aside_zap": np.arange(len(aside)) > 0,
            "priorities": random.random(length * games),
        }

    parts = [part(0), part(1)]
    whole = merge_arrays(parts)
    assert whole["codes"].shape == (4, 6, 2)
    np.testing.assert_array_equal(whole["codes"][:, 5], parts[1]["codes"][:, 2])
    # Row 5 of 3 games is game 2 at step 1: of 6 games that is row 6 + 2 * 2.
    assert whole["aside_rows"].tolist() == [3, 10, 17]
    np.testing.assert_array_equal(whole["aside_codes"][1], parts[0]["aside_codes"][0])
    assert whole["priorities"][7] == parts[1]["priorities"][3]
    for rank in range(2):
        assert_equal(split_arrays(whole, rank, 2), parts[rank])


@pytest.mark.parametrize("on_device", [False, True])
def test_importance_weights_have_one_maximum(on_device: bool) -> None:
    """Another rank holds a row of twice the largest weight."""
    weights = []
    for factor in (1, 2):
        settings: dict[str, Any] = {
            "n_steps": 1, "gamma": 0.5, "prioritised": True, "seed": 3,
        }  # fmt: skip
        if on_device:
            replay: ReplayBuffer = DeviceReplay(400, 2, NUM_FEATURES, device=CPU, **settings)
        else:
            replay = ReplayBuffer(400, 2, NUM_FEATURES, **settings)
        prefill(replay, [episode(60)], GameConfig(), 60)
        replay.priorities.set(np.arange(58), np.linspace(1.0, 0.1, 58))
        replay.highest = lambda value, factor=factor: factor * value
        weights.append(np.asarray(replay.sample(64, 1.0).weights))
    np.testing.assert_allclose(weights[1], weights[0] / 2, rtol=1e-6)


def test_demonstrations_are_shared_out_by_columns() -> None:
    def replay(games: int) -> ReplayBuffer:
        return ReplayBuffer(400, games, NUM_FEATURES, n_steps=3, gamma=0.5)

    episodes = [episode(length) for length in (30, 20, 25)]
    whole = replay(4)
    assert prefill(whole, episodes, GameConfig(), 70) == 68
    for rank in range(2):
        part = replay(2)
        assert prefill(part, episodes, GameConfig(), 70, rank, 2) == 68
        assert part.filled == whole.filled == 17
        assert_equal(split_arrays(whole.arrays(), rank, 2), part.arrays())


def episode(length: int) -> Episode:
    """A made-up game of the teacher's."""
    random = np.random.default_rng(length)
    return Episode(
        codes=random.integers(-9, 9, (length + 1, NUM_FEATURES)).astype(np.int8),
        spin=np.arange(length, dtype=np.int8),
        buttons=np.ones(length, np.uint8),
        points=np.arange(length),
        died=np.zeros(length, np.bool_),
        terminated=True,
    )


def test_shares_add_up() -> None:
    config = load_config(None)
    shares = [share_of(config, Ranks(rank, 4)) for rank in range(4)]
    assert {share.run.num_envs for share in shares} == {config.run.num_envs // 4}
    assert {share.learner.batch_size for share in shares} == {config.learner.batch_size // 4}
    assert {share.replay.capacity for share in shares} == {config.replay.capacity // 4}
    assert len({share.run.seed for share in shares}) == 4
    assert shares[0].run.seed == config.run.seed
    assert seed_of(1, 1) != seed_of(2, 1)
    assert {share.run.steps for share in shares} == {config.run.steps}
    assert share_of(config, ALONE) is config


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("run.num_envs=30", "run.num_envs=30 cannot be divided evenly over 4 ranks; set 32"),
        ("learner.batch_size=30", "learner.batch_size=30 cannot be"),
        ("learner.gradient_accumulation_steps=99", "the share of one of 4 ranks does not work: "),
    ],
)
def test_what_cannot_be_shared_out_is_said(override: str, words: str) -> None:
    config = load_config(None, [override])
    with pytest.raises(UserError, match=words):
        share_of(config, Ranks(0, 4))


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"WORLD_SIZE": "2", "RANK": "0"}, "LOCAL_RANK, MASTER_ADDR, MASTER_PORT not: start all"),
        (
            {"WORLD_SIZE": "2", "RANK": "-1", "LOCAL_RANK": "0", "MASTER_ADDR": "a",
             "MASTER_PORT": "1"},
            "RANK='-1' is no rank",
        ),
        (
            {"WORLD_SIZE": "2", "RANK": "0", "LOCAL_RANK": "0", "MASTER_ADDR": "a",
             "MASTER_PORT": "1", TIMEOUT_VARIABLE: "soon"},
            f"{TIMEOUT_VARIABLE}='soon' must be seconds",
        ),
    ],
)  # fmt: skip
def test_wrong_variables_are_named(variables: dict[str, str], words: str) -> None:
    with pytest.raises(UserError, match=words):
        join(variables)


def test_one_process_is_alone() -> None:
    assert join({}) is ALONE
    assert join({"WORLD_SIZE": "1", "RANK": "0"}) is ALONE


def test_more_ranks_than_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    Ranks(1, 2, local=1).require_device("cpu")
    Ranks(0, 2, local=0).require_device("auto")
    with pytest.raises(UserError, match="rank 1 has no GPU of its own, this machine has 1"):
        Ranks(1, 2, local=1).require_device("auto")


def assert_lost(message: str) -> None:
    assert message.startswith("rank 0 of 2 has lost the others")
    assert "train --resume" in message


def test_a_rank_that_is_killed_ends_the_others(both: list[dict[str, Any]], folder: Path) -> None:
    assert_lost((folder / "said").read_text())


def test_a_rank_that_is_silent_ends_the_others(tmp_path: Path) -> None:
    store = listener()
    ranks = start(tmp_path, store, "silent", **{TIMEOUT_VARIABLE: "5"})
    try:
        for rank in ranks:
            assert rank.stdout is not None
            assert rank.stdout.readline() == "ready\n"
        for rank in ranks:
            assert rank.stdin is not None
            rank.stdin.write("meet\n")
            rank.stdin.flush()
        _, errors = ranks[0].communicate(timeout=200)
        assert ranks[0].returncode == 0, errors
    finally:
        for rank in ranks:
            rank.kill()
            rank.communicate()
    assert_lost((tmp_path / "said").read_text())


def test_a_sigterm_does_not_come_before_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who starts the ranks sends one to those that are left, at any time after one is lost."""

    class Follower:
        def __init__(self, error: Exception) -> None:
            self.error = error
            self.replicas = ALONE
            self.request_stop = lambda: None

        def run(self) -> dict[str, Any]:
            raise self.error

    got: list[int] = []
    monkeypatch.setattr(training, "log", logging.getLogger("of a rank that follows"))
    before = signal.signal(signal.SIGTERM, lambda number, _: got.append(number))
    try:
        for error in (ValueError("another reason"), RankLostError("one of them ended")):
            monkeypatch.setattr(Trainer, "follow", lambda _, error=error: Follower(error))
            with pytest.raises(type(error)):
                training.follow(ALONE)
            os.kill(os.getpid(), signal.SIGTERM)
            assert got == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


def watchers() -> int:
    """Threads that look after torchrun; those of other tests may end at any time."""
    return sum(thread.name == "torchrun-watch" for thread in threading.enumerate())


def test_a_rank_notices_that_torchrun_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_parallel, "_WATCH_SECONDS", 0.01)
    parent, lost = [os.getppid()], threading.Event()
    monkeypatch.setattr(data_parallel.os, "getppid", lambda: parent[0])
    # Whoever else started it may end before it: a shell, say.
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    with watching_torchrun(lost.set):
        assert watchers() == 0
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "1")
    with watching_torchrun(lost.set):
        assert watchers() == 1
        assert not lost.is_set()
        parent[0] = 1
        assert lost.wait(200)
    assert watchers() == 0


@pytest.mark.timeout(900)  # Where nothing is compiled yet and the machine is busy.
def test_torchrun_trains_and_one_killed_rank_ends_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Torchrun ends the other rank, which may be about to end by itself: either is right."""
    monkeypatch.chdir(tmp_path)
    agent = subprocess.Popen(
        [
            sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
            "--log-dir", "logs", "--redirects", "3",
            "-m", "tempest_agent", "train", "--config", "smoke", "--run-dir", "run",
            "--steps", "1000000", "--eval-games", "0",
            "--set", "run.checkpoint_interval=640", "--set", "run.log_interval=320",
        ],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    family: list[Process] = []
    try:
        saved = Path("run/checkpoints")
        eventually(lambda: any(saved.glob("step_*.pt")) or agent.poll() is not None, 600.0)
        assert agent.poll() is None, agent.communicate()[1]
        family = below(agent.pid)
        second = next(each for each in family if each.variable("RANK") == "1")
        os.kill(second.pid, signal.SIGKILL)
        _, errors = agent.communicate(timeout=200)
        eventually(lambda: not any(each.alive for each in family))
    finally:
        agent.kill()
        kill(family)
    assert agent.returncode != 0
    assert f"Signal 9 (SIGKILL) received by PID {second.pid}" in errors
    assert len(family) >= 2
    (said,) = Path("logs").glob("*/attempt_0/0/stderr.log")
    assert "2 ranks" in said.read_text()
    assert "Traceback" not in said.read_text()
    assert "this is a fault" not in said.read_text()

    # Fewer ranks go on, here none but this process.
    step = int(newest_checkpoint(Path("run/checkpoints")).stem.removeprefix("step_"))
    arguments = ["train", "--resume", "run", "--steps", str(step + 64), "--eval-games", "0"]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    assert f"{step + 64:,} of {step + 64:,}" in result.output
    lines = Path("run/metrics.csv").read_text().splitlines()[1:]
    steps_logged = [int(line.partition(",")[0]) for line in lines]
    assert steps_logged == sorted(set(steps_logged))

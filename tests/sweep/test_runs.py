"""The runs of a sweep, and who runs their processes: order, failures, signals, going on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from local_sweeps import WAITS, Scripts
from places import SUPPORT
from processes import eventually, process

from tempest_agent.config import load_config
from tempest_agent.errors import UserError
from tempest_agent.runs.lock import RunLock
from tempest_agent.sweep.executor import LocalProcesses, Task
from tempest_agent.sweep.plan import make_plan
from tempest_agent.sweep.runs import SweepRun, last_words, runs_of


def run(*tasks: Scripts, jobs: int = 1) -> dict[str, int]:
    """Run the tasks; the exit codes of those that failed."""
    failures: dict[str, int] = {}

    def failed(task: Task, code: int) -> None:
        failures[task.name] = code

    LocalProcesses(jobs).run(tasks, lambda: None, failed)
    return failures


@pytest.mark.parametrize("jobs", [1, 3])
def test_commands_of_a_task_follow_each_other(tmp_path: Path, jobs: int) -> None:
    tasks = [Scripts(name, tmp_path, ["print(1)", "print(2)"]) for name in "abc"]
    assert run(*tasks, jobs=jobs) == {}
    for name in "abc":
        assert (tmp_path / f"{name}0.out").read_text() == "1\n"
        assert (tmp_path / f"{name}1.out").read_text() == "2\n"
    assert not list(tmp_path.glob("*.part"))


def test_a_failed_task_is_given_up_and_the_others_go_on(tmp_path: Path) -> None:
    bad = Scripts("bad", tmp_path, ["print(1)", "print(2); raise SystemExit(3)", "print(3)"])
    good = Scripts("good", tmp_path, ["import sys; print('words', file=sys.stderr)"])
    assert run(bad, good) == {"bad": 3}
    assert sorted(file.name for file in tmp_path.glob("*.out")) == ["bad0.out", "good0.out"]
    assert (tmp_path / "good.log").read_text() == "words\n"
    # The next start tries again what failed, and only that.
    bad.scripts[1] = "print(2)"
    bad.asked.clear()
    assert run(bad, good) == {}
    assert bad.asked == ["bad1.out", "bad2.out"]


STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {WAITS}"


@pytest.mark.parametrize("script", [WAITS, STUBBORN])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_processes_and_a_second_one_kills(
    tmp_path: Path, script: str, number: signal.Signals
) -> None:
    tasks = [Scripts("done", tmp_path, ["print(1)"]), Scripts("slow", tmp_path, [script])]
    late = Scripts("late", tmp_path, ["print(1)"])
    before = signal.getsignal(number)
    part = tmp_path / "slow0.out.part"

    def watch() -> None:
        if part.exists() and part.read_text() == "begun\n":
            for _ in range(1 if script == WAITS else 2):
                os.kill(os.getpid(), number)

    failures: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        LocalProcesses().run([*tasks, late], watch, lambda task, _: failures.append(task.name))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["done.log", "done0.out", "slow.log"]
    assert not failures
    assert not late.asked
    assert signal.getsignal(number) is before


DRIVER = """
import os, pathlib, signal, sys
sys.path.insert(0, sys.argv[1])
from processes import below
from local_sweeps import SAVES, WAITS, Scripts
from tempest_agent.sweep.executor import LocalProcesses
tasks = [Scripts(name, pathlib.Path.cwd(), [text]) for name, text in (("a", SAVES), ("b", WAITS))]
def watch():
    if all(pathlib.Path(f"{name}0.out.part").read_text() == "begun\\n" for name in "ab"):
        print(*(each.pid for each in below(os.getpid())), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
LocalProcesses(2).run(tasks, watch, lambda *_: None)
"""


def test_the_processes_of_a_sweep_that_is_killed_save_and_end(tmp_path: Path) -> None:
    program = [sys.executable, "-c", DRIVER, str(SUPPORT)]
    done = subprocess.run(program, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert done.returncode == -signal.SIGKILL
    family = [process(int(pid)) for pid in done.stdout.split()]
    assert len(family) == 4  # Two that run, and the two that watch over them.
    eventually(lambda: not any(each.alive for each in family))
    assert (tmp_path / "saved").exists()


def sweep_run(out: Path) -> SweepRun:
    made = make_plan(load_config("smoke"), {"low": {"learner.gamma": 0.9}}, 2, 5, 700)
    return runs_of(made, out)[1]


def words(run: SweepRun) -> str:
    command = run.next_command()
    assert command is not None
    assert command.folder == run.out
    return " ".join(command.arguments)


def test_the_first_seed_comes_first() -> None:
    made = make_plan(load_config("smoke"), {"low": {"learner.gamma": 0.9}}, 2, 5, 700)
    assert [run.name for run in runs_of(made, Path("out"))] == [
        "base/seed1", "low/seed1", "base/seed2", "low/seed2",
    ]  # fmt: skip


def test_what_a_run_does_next_is_told_by_its_files(tmp_path: Path) -> None:
    run = sweep_run(tmp_path)
    folder = tmp_path / "low" / "seed1"
    assert f"train --config {tmp_path}/low/config.yaml --seed 1 --run-dir {folder}" in words(run)
    assert load_config(tmp_path / "low" / "config.yaml") == run.variant.config
    # Killed before its first checkpoint: nothing to go on with, and the folder must be empty.
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "metrics.csv").write_text("steps,loss\n1000,1\n2000,1\n")
    assert run.steps() == 2_000
    # The last round may go beyond what was asked for.
    (folder / "metrics.csv").write_text("steps,loss\n4008,1\n")
    assert run.steps() == 4_000
    assert "--run-dir" in words(run)
    assert not folder.exists()
    assert run.steps() == 0
    # Killed later.
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "checkpoints" / "step_2000.pt").touch()
    assert f"train --resume {folder}" in words(run)
    assert run.result() is None
    # Trained, elsewhere perhaps.
    trained = {"checkpoint": "/old/checkpoints/step_4000.pt", "updates": 7, "seconds": 2.5}
    folder.with_suffix(".train.json").write_text(json.dumps(trained))
    line = words(run)
    assert f"eval {folder}/checkpoints/step_4000.pt " in line
    assert "--episodes 5 --max-ticks 700 --seed 0" in line
    assert run.steps() == 4_000
    # Scored.
    scored = {"scores": [1, 2], "deaths_per_1000_ticks": 0.5}
    run.scored.write_text(json.dumps(scored))
    (folder / "run.json").write_text(json.dumps({"starts": [{}]}))
    assert run.next_command() is None
    assert run.result() == {"seed": 1, "updates": 7, "seconds": 2.5, **scored}
    # The seconds of a run that was stopped in between are not known.
    (folder / "run.json").write_text(json.dumps({"starts": [{}, {}]}))
    assert run.result() == {"seed": 1, "updates": 7, "seconds": None, **scored}


def test_a_run_that_somebody_trains_is_left_alone(tmp_path: Path) -> None:
    run = sweep_run(tmp_path)
    (run.folder / "checkpoints").mkdir(parents=True)
    lock = RunLock(run.folder)
    try:
        with pytest.raises(UserError, match="being trained"):
            run.next_command()
    finally:
        lock.release()
    assert run.folder.is_dir()


@pytest.mark.parametrize("text", ["{", "[1]"])
def test_damaged_results_are_named(tmp_path: Path, text: str) -> None:
    run = sweep_run(tmp_path)
    run.scored.parent.mkdir()
    run.scored.write_text(text)
    with pytest.raises(UserError, match=r"seed1\.eval\.json. is damaged: .*remove it"):
        run.result()


def test_last_words_are_the_last_line_of_the_log(tmp_path: Path) -> None:
    run = sweep_run(tmp_path)
    assert last_words(run) == "no log"
    run.log.parent.mkdir()
    run.log.write_text("one\ntempest-agent: two\n\n")
    assert last_words(run) == "tempest-agent: two"

"""``sweep --ray-address``: runs as tasks of a real Ray cluster on this machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner
from processes import eventually
from processes import process as of_number
from ray_steps import BEGIN, SAVES, Steps

from tempest_agent.cli import cli
from tempest_agent.errors import UserError
from tempest_agent.sweep import ray_executor as ray_tasks
from tempest_agent.sweep import runs
from tempest_agent.sweep.executor import Command, Task
from tempest_agent.sweep.parent_watch import release, watch_over
from tempest_agent.sweep.ray_executor import RayTasks
from tempest_agent.sweep.ray_worker import KILLED, Sight, carry_out

pytestmark = pytest.mark.xdist_group("ray")

LOSES_ITS_WORKER = f"""{BEGIN}
first = pathlib.Path("first")
if first.exists():
    print("done", end="")
else:
    wait_for_the_watcher()
    first.write_text(str(os.getpid()))
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(1000)
"""


def run(*tasks: Task) -> list[tuple[str, int]]:
    """Run them to their end; those that failed."""
    failures: list[tuple[str, int]] = []
    RayTasks().run(tasks, lambda: None, lambda task, code: failures.append((task.name, code)))
    return failures


@pytest.mark.usefixtures("shared_ray")
def test_commands_in_order_a_failure_and_a_lost_worker(tmp_path: Path) -> None:
    two = Steps(tmp_path, "two", "print(1)", "import os; print(open('two.0').read() + '2')")
    bad = Steps(tmp_path, "bad", "import sys; print('half'); sys.exit('no such machine')", "0")
    lost = Steps(tmp_path, "lost", LOSES_ITS_WORKER)
    assert run(two, bad, lost) == [("bad", 1)]
    assert two.output(1).read_text() == "1\n2\n"
    assert not bad.output(0).exists()
    assert (tmp_path / "bad.log").read_text() == "no such machine\n"
    assert lost.output(0).read_text() == "done"
    assert "the Ray worker was lost" in (tmp_path / "lost.log").read_text()
    first = of_number(int((tmp_path / "first").read_text()))
    eventually(lambda: not first.alive)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {
        "two.0", "two.1", "two.log", "bad.log", "lost.0", "lost.log", "first",
    }  # fmt: skip


@pytest.mark.usefixtures("shared_ray")
def test_ctrl_c_lets_commands_save_and_leaves_nothing(tmp_path: Path) -> None:
    def interrupt() -> None:
        try:
            eventually((tmp_path / "began").exists)
        finally:
            os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    # The second one waits for ever: there is no room for it.
    tasks = [Steps(tmp_path, "runs", SAVES), Steps(tmp_path, "waits", "0", cpus=10_000)]
    with pytest.raises(KeyboardInterrupt):
        run(*tasks)
    assert (tmp_path / "saved").exists()
    assert {path.name for path in tmp_path.iterdir()} == {"began", "saved", "runs.log"}


@pytest.mark.usefixtures("shared_ray")
def test_what_no_machine_has_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop() -> None:
        raise UserError("seen")

    tasks = [Steps(tmp_path, name, "0", cpus=10_000) for name in ("one", "other")]
    with pytest.raises(UserError, match="seen"):
        RayTasks().run(tasks, stop, lambda *_: None)
    (record,) = (each for each in caplog.records if each.name == "tempest_agent")
    assert "reserves 10000 CPUs and no machine" in record.message
    assert "run.threads" in record.message


@pytest.mark.usefixtures("shared_ray")
def test_a_machine_that_does_not_see_the_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def elsewhere(folder: Path) -> Sight:
        return Sight(folder / "not there", sys.executable)

    monkeypatch.setattr(ray_tasks, "_make_sight", elsewhere)
    task = Steps(tmp_path, "task", "print(1)")
    with pytest.raises(UserError, match=f"does not see {tmp_path}, .*--out.*--ray-address local"):
        run(task)
    assert not list(tmp_path.iterdir())


def test_a_command_is_killed_with_who_asked_for_it() -> None:
    sleeps = [sys.executable, "-c", "import time; time.sleep(300)"]
    with subprocess.Popen(sleeps) as process:
        watcher = watch_over(process, signal.SIGKILL)
        assert watcher.stdin is not None
        watcher.stdin.close()  # As when its holder has been killed.
        assert process.wait(200) == KILLED
        assert watcher.wait(200) == 0


def test_who_has_ended_by_itself_is_not_killed() -> None:
    """Its number may be another process's by then; here it is still its own."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        release(watch_over(process, signal.SIGKILL))
        process.communicate(b"end")
        assert process.returncode == 0


def test_the_machines_own_python_is_used(tmp_path: Path) -> None:
    (tmp_path / "seen").touch()
    arguments = ("/where/the/driver/has/it/python", "-c", "import sys; print(sys.executable)")
    command = Command(arguments, tmp_path / "out", tmp_path / "log", tmp_path)
    assert carry_out(command, Sight(tmp_path / "seen", arguments[0])).code == 0
    assert Path((tmp_path / "out").read_text().strip()).samefile(sys.executable)


def test_a_command_can_be_cancelled_in_the_background(tmp_path: Path) -> None:
    """Ray cancels by the signal of Ctrl-C, which background jobs of a shell begin with ignored."""
    (tmp_path / "seen").touch()
    command = Command((sys.executable, "-c", ""), tmp_path / "out", tmp_path / "log", tmp_path)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        carry_out(command, Sight(tmp_path / "seen", sys.executable))
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


PRETENDS = """
import json, sys
json.dump({
    "checkpoint": "step_640.pt", "updates": 5, "seconds": 1.0,
    "scores": [100, 200], "deaths_per_1000_ticks": 1.0,
} | {"command": sys.argv[1]}, sys.stdout)
"""
"""Prints what both commands of a run would print, in an instant."""


@pytest.mark.usefixtures("shared_ray")
def test_a_sweep_on_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(runs, "_PROGRAM", (sys.executable, "-c", PRETENDS))
    arguments = [
        "sweep", "smoke", "--seeds", "1", "--variant", "low:learner.gamma=0.9", "--steps", "640",
        "--episodes", "2", "--max-ticks", "100", "--out", "out", "--ray-address", "local",
    ]  # fmt: skip
    result = CliRunner().invoke(cli, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    assert [row["name"] for row in figures["variants"]] == ["base", "low"]
    assert all(row["scores"] == [[100, 200]] for row in figures["variants"])
    for name in ("base", "low"):
        for command in ("train", "eval"):
            printed = json.loads(Path(f"out/{name}/seed1.{command}.json").read_text())
            assert printed["command"] == command
    assert Path("out/plot.png").stat().st_size > 1_000
    assert not list(Path("out").glob(".seen*"))
    again = CliRunner().invoke(cli, arguments)
    assert "2 runs, 2 of them complete" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--gpus", "0.5"), "--gpus 0.5 is a share on Ray: give --ray-address too"),
        (("--ray-address", "127.0.0.1:1"), "no Ray cluster at '127.0.0.1:1'"),
    ],
)
def test_mistakes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], words: str
) -> None:
    monkeypatch.chdir(tmp_path)

    class Nowhere:
        """A Ray that finds no cluster."""

        def is_initialized(self) -> bool:
            return False

        def init(self, address: str, **_: object) -> None:
            raise ConnectionError(f"nobody at {address}")

        def shutdown(self) -> None:
            raise AssertionError

    monkeypatch.setattr(ray_tasks, "import_ray", Nowhere)
    result = CliRunner().invoke(cli, ["sweep", "smoke", *arguments])
    assert result.exit_code == 2
    assert words in result.stderr


def test_without_ray_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "ray", None)
    result = CliRunner().invoke(cli, ["sweep", "smoke", "--ray-address", "auto"])
    assert result.exit_code == 2
    assert "pip install 'tempest-agent[ray]'" in result.stderr
    assert not list(tmp_path.iterdir())

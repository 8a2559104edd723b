"""Machines that are killed or stopped, parents that die, and what is left behind: a real MAME."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from mame_rom.machine import machine, needs_mame, rom_set
from processes import eventually
from processes import process as of_number

from tempest_agent.envs.api.info import MACHINE_LOST, describe_games
from tempest_agent.envs.engine.game_step import LOST, RUNNING
from tempest_agent.envs.engine.settings import GameSettings
from tempest_agent.envs.mame.errors import MachineError, MameError
from tempest_agent.envs.mame.mame_batch import MachineLostWarning, MameBatch
from tempest_agent.evaluation.games import EvaluationGames, play_games
from tempest_agent.evaluation.players import find_player

pytestmark = [needs_mame, pytest.mark.xdist_group("mame")]

TICK_BY_TICK = GameSettings(skip_idle=False)


@pytest.fixture(scope="module")
def roms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rom_set(tmp_path_factory)


@pytest.fixture
def private_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Temporary files of this test's MAMEs go here."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    return folder


def fire(batch: MameBatch) -> None:
    batch.step(np.ones(batch.num_games, np.int8), np.ones(batch.num_games, np.uint8))


def test_a_machine_that_has_not_reached_the_bridge_ends_with_its_parent(
    roms: Path, private_tmp: Path, tmp_path: Path
) -> None:
    """Before its script runs, MAME knows nothing of the pipes; a fake one never will."""
    program = tmp_path / "mame"
    program.write_text("#!/bin/sh\ntrap '' TERM INT HUP\nwhile :; do sleep 1; done\n")
    program.chmod(0o755)
    code = (
        "import sys, time\n"
        "from tempest_agent.envs.mame.connection import MameMachine\n"
        "from tempest_agent.envs.mame.mame_options import MameOptions\n"
        "machine = MameMachine(MameOptions(sys.argv[1], mame_path=sys.argv[2]), 'tempest1')\n"
        "print(machine.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(roms), str(program)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    mame = of_number(int(process.stdout.readline()))
    assert mame.alive
    process.kill()
    process.communicate()
    eventually(lambda: not mame.alive)
    eventually(lambda: list(private_tmp.iterdir()) == [])


FAULTS = {
    "killed": (signal.SIGKILL, "it was killed (SIGKILL"),
    "crashed": (signal.SIGSEGV, "it crashed (SIGSEGV)"),
    "stopped": (
        signal.SIGSTOP,
        "not answered within 1 s; it was still running and has been killed",
    ),
}


def test_a_lost_machine_ends_its_own_game_only(roms: Path, private_tmp: Path) -> None:
    with MameBatch(2, TICK_BY_TICK, machine(roms)) as batch:
        batch.reset(seeds=0)
        for case in FAULTS:
            lose_the_first(batch, case)
    assert list(private_tmp.iterdir()) == []


def lose_the_first(batch: MameBatch, case: str) -> None:
    """What comes of a fault of the first of two machines, in new games; others begin after it."""
    number, expected = FAULTS[case]
    for _ in range(5):
        fire(batch)
    image = batch.ram[:1].tobytes()
    victim, other = batch.pids
    assert victim is not None
    mame, stopped = of_number(victim), batch._machines[0]
    if case == "stopped":
        # Not of the other machine, which may take longer on a busy computer.
        assert stopped is not None
        stopped.time_for_answer = 1.0
    os.kill(victim, number)
    with pytest.warns(MachineLostWarning, match="game 0: MAME, playing") as warned:
        fire(batch)
    told = [str(each.message) for each in warned if each.category is MachineLostWarning]
    assert len(told) == 1
    assert expected in told[0]
    assert not mame.alive
    # The lost step is a truncation at the last state that was seen.
    assert batch.truncated.tolist() == [True, False]
    assert batch.terminated.tolist() == [False, False]
    assert batch.points.tolist() == [0, 10]
    assert batch.games["status"].tolist() == [LOST, RUNNING]
    assert batch.games["ticks"].tolist() == [5, 6]
    assert batch.ram[:1].tobytes() == image
    causes = describe_games(batch.games, batch.ram)["terminal_cause"]
    assert causes.tolist() == [MACHINE_LOST, ""]
    # A finished game stays as it is; the next one gets a new machine.
    fire(batch)
    assert batch.points.tolist() == [0, 10]
    batch.reset(np.array([True, False]))
    fire(batch)
    assert batch.points.tolist() == [10, 10]
    assert batch.games["ticks"].tolist() == [1, 8]
    assert batch.pids[1] == other != batch.pids[0]
    batch.reset()


def test_with_autoreset_the_next_game_begins_in_the_lost_step(roms: Path) -> None:
    with MameBatch(1, TICK_BY_TICK, machine(roms), autoreset=True) as batch:
        batch.reset(seeds=0)
        fire(batch)
        pid = batch.pids[0]
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        with pytest.warns(MachineLostWarning):
            fire(batch)
        assert batch.truncated[0]
        assert batch.last_games["status"][0] == LOST
        assert batch.last_games["score"][0] == 10
        assert batch.games["ticks"][0] == 0
        fire(batch)
        assert batch.games["score"][0] == 10


def test_too_many_failures_in_a_row_are_raised(roms: Path, private_tmp: Path) -> None:
    with MameBatch(1, TICK_BY_TICK, machine(roms, max_restarts=1)) as batch:
        for last in (False, True):
            batch.reset(seeds=0)
            pid = batch.pids[0]
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            if last:
                with pytest.raises(MachineError, match="SIGKILL"):
                    fire(batch)
            else:
                with pytest.warns(MachineLostWarning):
                    fire(batch)
    assert list(private_tmp.iterdir()) == []


def test_an_evaluation_plays_a_lost_game_again(roms: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second game is lost once; its score is that of an undisturbed run."""
    games = EvaluationGames(episodes=2, max_ticks=30, machine=machine(roms))
    player = find_player("random")
    expected = play_games(player, games)
    step = MameBatch.step
    kills = []

    def disturbed(self: MameBatch, *actions: object) -> object:
        pid = self.pids[0]
        if self.games["ticks"][0] == 15:
            kills.append(pid)
            if len(kills) == 2 and pid is not None:
                os.kill(pid, signal.SIGKILL)
        return step(self, *actions)  # type: ignore[arg-type]

    monkeypatch.setattr(MameBatch, "step", disturbed)
    with pytest.warns(MachineLostWarning):
        outcomes = play_games(player, games)
    assert len(kills) == 3
    assert outcomes.scores.tolist() == expected.scores.tolist()
    assert outcomes.ticks.tolist() == [30, 30]


PARENTS = """
import os, signal, sys, time
# A shell starts its background jobs with the signal of Ctrl-C ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
import numpy as np
from tempest_agent.envs.mame.mame_batch import MameBatch
from tempest_agent.envs.mame.mame_options import MameOptions
from tempest_agent.envs.engine.settings import GameSettings
# Importing takes longer than all else: each parent is a copy of this process.
for line in sys.stdin:
    what, tmp = line.split()
    own = os.fork()
    if own == 0:
        break
    print("ended", os.waitstatus_to_exitcode(os.waitpid(own, 0)[1]), flush=True)
else:
    sys.exit()
os.environ["TMPDIR"] = tmp
batch = MameBatch(1, GameSettings(skip_idle=False), MameOptions(sys.argv[1], strict_roms=False))
if what != "starting":
    batch.reset(seeds=0)
else:
    batch._running_machine(0)
child = os.fork() if what == "forked" else 1
if child == 0:
    time.sleep(60)
if what == "stopped":
    os.kill(batch.pids[0], 19)
print(os.getpid(), batch.pids[0], child, flush=True)
if what == "raises":
    raise RuntimeError("on purpose")
if what == "forks_and_ends":
    if os.fork() == 0:
        sys.exit(0)
    os.wait()
    print("child ended", flush=True)
while what in ("playing", "forks_and_ends"):
    batch.step(np.zeros(1, np.int8), np.ones(1, np.uint8))
    if what == "forks_and_ends" and batch.games["ticks"][0] == 20:
        print("played on", flush=True)
        break
time.sleep(60 if what != "forks_and_ends" else 0)
"""


class Parents:
    """Starts processes that have a machine each, one after the other."""

    def __init__(self, roms: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", PARENTS, str(roms)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def begin(self, what: str, tmp: Path) -> tuple[int, int, int]:
        """One that does ``what``; its number, its machine's, and its forked child's or 1."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{what} {tmp}\n")
        self._process.stdin.flush()
        pid, mame, child = self.line().split()
        return int(pid), int(mame), int(child)

    def line(self) -> str:
        """The next that it says, or ``ended CODE``."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().rstrip("\n")

    def close(self) -> None:
        self._process.communicate()
        assert self._process.returncode == 0


@pytest.fixture(scope="module")
def parents(roms: Path) -> Iterator[Parents]:
    started = Parents(roms)
    yield started
    started.close()


@pytest.mark.parametrize(
    ("what", "number"),
    [
        ("starting", signal.SIGKILL),
        ("stopped", signal.SIGKILL),
        ("waiting", signal.SIGKILL),
        ("playing", signal.SIGKILL),
        ("forked", signal.SIGKILL),
        ("playing", signal.SIGTERM),
        ("playing", signal.SIGINT),
        ("raises", None),
    ],
)
def test_no_machine_outlives_its_parent(
    what: str, number: signal.Signals | None, parents: Parents, private_tmp: Path
) -> None:
    pid, machines, child = parents.begin(what, private_tmp)
    mame = of_number(machines)
    try:
        if number is not None:
            time.sleep(0.2)
            os.kill(pid, number)
        code = parents.line()
        assert code == ("ended 1" if number is None else f"ended -{number:d}")
        eventually(lambda: not mame.alive)
        eventually(lambda: list(private_tmp.iterdir()) == [])
    finally:
        if child > 1:
            os.kill(child, signal.SIGKILL)


def test_a_forked_child_leaves_its_parents_machine_alone(
    parents: Parents, private_tmp: Path
) -> None:
    _, machines, _ = parents.begin("forks_and_ends", private_tmp)
    mame = of_number(machines)
    assert [parents.line() for _ in range(3)] == ["child ended", "played on", "ended 0"]
    assert not mame.alive
    assert list(private_tmp.iterdir()) == []


def test_an_interrupted_step_leaves_no_machine_out_of_step(
    roms: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever breaks off an exchange ends the machine, whose answer would belong to another."""
    with MameBatch(1, TICK_BY_TICK, machine(roms)) as batch:
        batch.reset(seeds=0)
        interrupted = batch._machines[0]
        assert interrupted is not None

        def receive() -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(interrupted, "receive", receive)
        with pytest.raises(KeyboardInterrupt):
            fire(batch)
        assert not interrupted.alive
        with pytest.warns(MachineLostWarning, match="already ended"):
            fire(batch)
        batch.reset(seeds=0)
        fire(batch)
        assert batch.points[0] == 10
        batch.close()
        with pytest.raises(RuntimeError, match="after close"):
            fire(batch)


def test_descriptors_processes_and_folders_stay_constant(roms: Path, private_tmp: Path) -> None:
    def pipes() -> int:
        """What a machine keeps open; other parts of this process may use files meanwhile."""
        links = (link_of(number) for number in os.listdir("/proc/self/fd"))
        return sum(link.startswith("pipe:") for link in links)

    def link_of(number: str) -> str:
        try:
            return os.readlink(f"/proc/self/fd/{number}")
        except FileNotFoundError:  # The folder itself, which was open while it was listed.
            return ""

    gc.collect()  # Those of other tests end now.
    counts = [pipes()]
    for closes in (False, True):
        batch = MameBatch(1, TICK_BY_TICK, machine(roms))
        batch.reset(seeds=0)
        fire(batch)
        pid = batch.pids[0]
        assert pid is not None
        mame = of_number(pid)
        if closes:
            batch.close()
            batch.close()
        del batch  # Without close() the garbage collector does it.
        gc.collect()
        counts.append(pipes())
        assert not mame.alive
        assert list(private_tmp.iterdir()) == []
    assert len(set(counts)) == 1


def test_the_users_home_is_neither_needed_nor_touched(
    roms: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    for place in (str(home), "/proc/1/nowhere"):  # The second cannot be written, even by root.
        monkeypatch.setenv("HOME", place)
        with MameBatch(1, TICK_BY_TICK, machine(roms)) as batch:
            batch.reset(seeds=0)
            fire(batch)
            assert batch.points[0] == 10
    assert list(home.iterdir()) == []


def test_without_a_temporary_folder_there_is_advice(
    roms: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/proc/1/nowhere")
    batch = MameBatch(1, TICK_BY_TICK, machine(roms))
    with pytest.raises(MameError, match=r"private folder cannot be made.*set TMPDIR"):
        batch.reset(seeds=0)

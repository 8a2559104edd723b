"""The commands as a user meets them: help, exit codes, one clear line for a mistake."""

from __future__ import annotations

import errno
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pytest
import torch
from click.testing import CliRunner, Result
from places import DATA

from tempest_agent import cli as cli_module
from tempest_agent.cli import COMMANDS, cli
from tempest_agent.envs.messages import nearest
from tempest_agent.errors import UserError, unknown_name
from tempest_agent.evaluation import players


def run(*arguments: str) -> Result:
    """Run the command line in this process."""
    return CliRunner().invoke(cli, list(arguments))


def assert_one_line(result: Result, *parts: str) -> None:
    """The user's mistake: exit code 2, nothing on stdout, one line on stderr with ``parts``."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1, result.stderr
    assert result.stderr.startswith("tempest-agent: ")
    for part in parts:
        assert part in result.stderr


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_is_on_stdout(command: str) -> None:
    result = run(*command.split(), "--help")
    assert result.exit_code == 0
    assert result.stdout.startswith("Usage: ")
    assert result.stderr == ""


def test_without_arguments_the_help_is_printed() -> None:
    assert run().exit_code == 0
    assert run().output == run("--help").output


@pytest.mark.parametrize("closed", ["1", "2"])
def test_closed_streams_do_no_harm(closed: str) -> None:
    command = f'"{sys.executable}" -m tempest_agent.cli eval random --episodes 1 --max-ticks 9'
    done = subprocess.run(f"{command} {closed}>&-", shell=True, capture_output=True, text=True)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert ("random: 1 games" in done.stdout) == (closed == "2")


@pytest.mark.parametrize("limit", [1_000, 20_000])
def test_a_film_that_could_not_be_written_is_no_success(here: Path, limit: int) -> None:
    # A limit on the size of files stands in for a full disk.
    code = (
        "import resource, sys\n"
        "sys.dont_write_bytecode = True  # Python would keep a cut module as if it were whole.\n"
        "from tempest_agent.cli import main\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
        "main()\n"
    )
    arguments = ["play", "expert", "--max-ticks", "150", "--record", "game.mp4"]
    # Bytecode of modules that are imported under the limit would be cut off as well, for good.
    command = [sys.executable, "-B", "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=here)
    assert done.returncode == 2, done.stderr
    assert "film:" not in done.stdout
    assert "space" in done.stderr.splitlines()[-1]
    assert not list(here.iterdir())


def test_help_loads_neither_torch_nor_the_compiled_rules() -> None:
    code = (
        "import sys\n"
        "from tempest_agent.cli import cli\n"
        "for arguments in (['--help'], ['train', '--help'], ['eval', '--help']):\n"
        "    try:\n"
        "        cli.main(arguments)\n"
        "    except SystemExit as end:\n"
        "        assert end.code == 0\n"
        "print([name for name in ('torch', 'numba', 'cv2') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


MISTAKES: dict[str, tuple[list[str], list[str]]] = {
    "command": (["trian"], ["'trian'", "did you mean 'train'"]),
    "option": (["eval", "expert", "--episode", "3"], ["--episode", "--episodes"]),
    "player": (["eval", "exprt"], ["'exprt'", "did you mean 'expert'"]),
    "player to play": (["play", "novise"], ["'novise'", "'novice'"]),
    "missing checkpoint": (["eval", "runs/x/step_1.pt"], ["runs/x/step_1.pt", "path"]),
    "folder as checkpoint": (["eval", "."], ["folder", "*.pt"]),
    "level 0": (["eval", "expert", "--level", "0"], ["--level", "0", "1<=x<=99"]),
    "level 100": (["play", "expert", "--level", "100"], ["--level", "100", "1<=x<=99"]),
    "no episodes": (["eval", "expert", "--episodes", "0"], ["--episodes", "0"]),
    "negative episodes": (["eval", "expert", "--episodes", "-3"], ["--episodes", "-3"]),
    "ticks": (["eval", "expert", "--max-ticks", "0"], ["--max-ticks", "0"]),
    "seed": (["eval", "expert", "--seed", "-1"], ["--seed", "-1"]),
    "delay": (["eval", "expert", "--input-delay", "9"], ["--input-delay", "9", "0<=x<=4"]),
    "unlike any command": (["zzzz"], ["'zzzz': use one of bench, demonstrate, diagnose, eval"]),
    "points of a bonus life": (["eval", "expert", "--bonus-life", "12345"], ["70000 points (see"]),
    "empty configuration": (["train", "--config", "/dev/null"], ["/dev/null"]),
    "bonus life": (["eval", "expert", "--bonus-life", "2"], ["'2'", "did you mean 20000"]),
    "backend": (["eval", "expert", "--backend", "mam"], ["'mam'", "sim"]),
    "no ROM": (["eval", "expert", "--backend", "mame"], ["--rom-path"]),
    "film name": (["play", "expert", "--record", "\udcff.mp4"], ["\\udcff.mp4", "UTF-8"]),
    "film ending": (["play", "expert", "--record", "x.avi"], ["x.avi", ".mp4"]),
    "film folder": (["play", "expert", "--record", "no/x.mp4"], ["no", "mkdir"]),
    "trace missing": (["verify", "no.npz"], ["no.npz", "is not there"]),
    "no trace": (["verify"], ["TRACES", "verify --help"]),
    "bench target": (["bench", "envs"], ["'envs'", "env"]),
    "steps 0": (["train", "--steps", "0"], ["--steps", "0"]),
    "steps below 0": (["train", "--steps", "-5"], ["--steps", "-5"]),
    "no games": (["train", "--envs", "0"], ["--envs", "0"]),
    "configuration": (["train", "--config", "quik"], ["'quik'", "quick"]),
    "configuration file": (["train", "--config", "no/such.yaml"], ["no/such.yaml"]),
    "unknown key": (["train", "--set", "learner.gama=1"], ["gama", "learner.gamma"]),
    "key without section": (["train", "--set", "gamma=1"], ["gamma", "learner.gamma"]),
    "no value": (["train", "--set", "learner.gamma"], ["learner.gamma", "="]),
    "value type": (["train", "--set", "learner.gamma=two"], ["gamma", "two", "number"]),
    "value range": (["train", "--set", "learner.gamma=2"], ["gamma", "2", "range"]),
    "choice": (["train", "--set", "learner.loss=hubr"], ["hubr", "huber"]),
    "device": (["train", "--device", "gpu"], ["gpu", "cuda"]),
    "teacher": (["train", "--config", "smoke", "--set", "teacher.name=exprt"], ["exprt", "expert"]),
    "replay": (
        ["train", "--config", "smoke", "--set", "replay.capacity=1_000_000_000_000"],
        ["1000000000000", "replay.capacity"],
    ),
    "batch": (
        ["train", "--config", "smoke", "--set", "learner.batch_size=4_001"],
        ["learner.batch_size=4001", "replay.capacity=4000"],
    ),
    "large batch": (
        [
            *("train", "--config", "smoke", "--set", "replay.capacity=100_000_000"),
            *("--set", "learner.batch_size=100_000_000", "--set", "network.hidden=[4096,4096]"),
        ],
        ["learner.batch_size=100000000", "GB"],
    ),
    "network": (
        ["train", "--config", "smoke", "--set", "network.hidden=[1_000_000,1_000_000]"],
        ["network.hidden=[1000000, 1000000]", "GB"],
    ),
    "lanes": (
        [
            *("train", "--config", "smoke", "--set", "network.encoder=lanes"),
            *("--set", "network.lane_width=1_000_000_000"),
        ],
        ["network.lane_width=1000000000", "GB"],
    ),
    "many games": (
        [
            *("train", "--config", "smoke", "--envs", "100_000_000"),
            *("--set", "learner.n_steps=1", "--set", "replay.capacity=3e8"),
        ],
        ["run.num_envs=100000000", "GB"],
    ),
    "many episodes": (["eval", "random", "--episodes", "1000000000"], ["episodes=1000000000"]),
    "many ticks": (["eval", "random", "--max-ticks", str(2**62)], ["--max-ticks", "too large"]),
    "many steps": (["train", "--steps", str(2**62)], ["--steps", "too large"]),
    "many steps set": (
        ["train", "--set", f"run.steps={10**400}"],
        ["run.steps", "out of range"],
    ),
    "small replay": (
        ["train", "--config", "smoke", "--set", "replay.capacity=20"],
        ["replay.capacity=20"],
    ),
    "unwritable folder": (["train", "--run-dir", "/proc/no/run"], ["/proc/no/run", "cannot write"]),
    "nothing to resume": (["train", "--resume"], ["nothing to resume"]),
    "resume nowhere": (["train", "--resume", "runs/none"], ["runs/none", "no such"]),
    "resume no run": (["train", "--resume", "."], ["not part of a run"]),
    "resume and change": (["train", "--resume", "--seed", "3"], ["--seed", "leave it out"]),
    "resume and set": (["train", "--resume", "--set", "learner.gamma=0.9"], ["--set"]),
    "resume two": (["train", "--resume", "a", "--run-dir", "b"], ["one of them"]),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line_and_leaves_nothing_behind(mistake: str, here: Path) -> None:
    arguments, parts = MISTAKES[mistake]
    assert_one_line(run(*arguments), *parts)
    # Folders may have been made on the way, but no run is begun.
    assert [path for path in here.rglob("*") if path.is_file()] == []
    assert not list((here / "runs").glob("*"))


def test_no_checkpoint_anywhere(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(players.resources, "files", lambda _package: here)
    assert_one_line(run("play", "latest"), "champion.pt", "tempest-agent train")


def test_without_a_name_the_newest_checkpoint_plays() -> None:
    result = run("play", "--max-ticks", "20")
    assert result.exit_code == 0, result.output
    assert result.stderr.startswith(players.find_player("latest").description)
    assert result.stdout.startswith("game 1: ")


def test_no_cuda_is_the_users_mistake(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert_one_line(run("train", "--config", "smoke", "--device", "cuda"), "cuda", "--device cpu")


@pytest.mark.parametrize("command", ["eval", "play"])
@pytest.mark.parametrize("kind", ["empty", "text", "cut", "tensors", "pickle"])
def test_a_file_that_is_no_checkpoint_is_refused(command: str, kind: str, here: Path) -> None:
    path = here / "some.pt"
    ran = here / "ran"
    if kind == "empty":
        path.write_bytes(b"")
    elif kind == "text":
        path.write_text("not a checkpoint at all\n" * 20)
    elif kind == "tensors":
        torch.save({"weight": torch.zeros(3)}, path)
    elif kind == "cut":
        torch.save({"weight": torch.zeros(3000)}, path)
        path.write_bytes(path.read_bytes()[:2000])
    else:
        path.write_bytes(pickle.dumps(_Payload(str(ran))))
    assert_one_line(run(command, "some.pt"), "some.pt")
    assert not ran.exists()


class _Payload:
    """A pickle that would make a file when it is loaded."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (self.path,)


@pytest.mark.parametrize("kind", ["text", "other arrays"])
def test_a_file_that_is_no_recording_is_refused(kind: str, here: Path) -> None:
    path = here / "trace.npz"
    if kind == "text":
        path.write_text("no recording")
    else:
        np.savez(path, ram=np.zeros((3, 2048), np.uint8))
    assert_one_line(run("verify", "trace.npz"), "trace.npz")


@pytest.mark.parametrize("arguments", [["play", "human"], ["play", "expert", "--render"]])
def test_no_display_is_one_line_of_advice(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "--record" in result.stderr.splitlines()[-1]
    assert "keys" not in result.stderr


@pytest.mark.parametrize("command", ["eval", "play"])
def test_an_empty_name_is_no_player(command: str) -> None:
    assert_one_line(run(command, ""), "'' names no player")


def raising(error: BaseException) -> click.Command:
    """A command that fails."""

    @click.command("eval")
    def fail() -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "code", "last"),
    [
        (UserError("that  was\nwrong"), 2, "tempest-agent: that was wrong"),
        (KeyboardInterrupt(), 130, "tempest-agent: interrupted"),
        (
            OSError(errno.ENOSPC, "No space left on device", "runs/x/metrics.csv"),
            2,
            "tempest-agent: cannot write runs/x/metrics.csv: No space left on device; "
            "free some space, or use another folder",
        ),
        (
            OSError(errno.ENAMETOOLONG, "File name too long", "xxx"),
            2,
            "tempest-agent: cannot use xxx: File name too long; check it",
        ),
        (
            OSError(errno.EBADF, "Bad file descriptor"),
            1,
            "tempest-agent: this is a fault of tempest-agent, not yours",
        ),
        (
            BrokenPipeError(errno.EPIPE, "Broken pipe"),  # Of something else than the output.
            1,
            "tempest-agent: this is a fault of tempest-agent, not yours",
        ),
        (
            MemoryError("no 8 TiB"),
            2,
            "tempest-agent: not enough memory (no 8 TiB); "
            "use fewer games, or a smaller network, batch or replay",
        ),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory"),
            2,
            "tempest-agent: not enough memory (DefaultCPUAllocator: can't allocate memory); "
            "use fewer games, or a smaller network, batch or replay",
        ),
        (RuntimeError("broken"), 1, "tempest-agent: this is a fault of tempest-agent, not yours"),
    ],
)
def test_exit_codes(
    error: BaseException, code: int, last: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli_module.LazyGroup, "get_command", lambda *_: raising(error))
    result = run("eval")
    assert result.exit_code == code
    assert result.stderr.splitlines()[-1] == last
    assert ("Traceback" in result.stderr) == (code == 1)


@pytest.mark.parametrize(
    "arguments",
    [
        ("eval", "{}"), ("play", "{}"), ("verify", "{}"), ("plot", "{}"), ("diagnose", "{}"),
        ("play", "random", "--record", "{}.mp4"), ("train", "--config", "{}.yaml"),
        ("train", "--resume", "{}"), ("train", "--from", "{}"), ("train", "--run-dir", "{}"),
        ("record", "{}.npz", "--rom-path", "."), ("record", "a.npz", "--rom-path", "{}"),
        ("sweep", "smoke", "--out", "{}"), ("study", "stability", "--out", "{}"),
        ("eval", "random", "--plot", "{}.png"), ("plot", ".", "--out", "{}.png"),
        ("demonstrate", "random", "--dataset", "{}-v0"),
    ],
)  # fmt: skip
def test_a_path_that_no_system_takes_is_the_users_mistake(
    arguments: tuple[str, ...], here: Path
) -> None:
    result = run(*(argument.format("x" * 300) for argument in arguments))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines()[-1].startswith("tempest-agent: ")
    assert "Traceback" not in result.stderr
    assert [path for path in here.rglob("*") if not path.is_dir()] == []


def test_the_nearest_name() -> None:
    assert nearest("Expert", ["expert", "random"]) == "expert"
    assert nearest("zzz", ["expert", "random"]) is None
    assert unknown_name("thing", "zzz", ["b", "a"]) == "unknown thing 'zzz': use one of a, b"


def test_verify_prints_one_json_object() -> None:
    recordings = sorted((DATA / "recordings").glob("*.npz"))
    result = run("verify", str(recordings[0]), "--json")
    assert result.exit_code == 0
    figures = json.loads(result.stdout)
    assert figures["ticks"] == figures["exact_ticks"] > 0
    assert figures["exact_fraction"] == 1.0
    assert figures["first_mismatches"] == []
    assert {"by_state", "free_run", "ticks_not_covered"} <= figures.keys()


def test_verify_tells_where_a_recording_differs(here: Path) -> None:
    recording = min((DATA / "recordings").glob("*.npz"))
    with np.load(recording) as arrays:
        changed = {name: arrays[name] for name in arrays.files}
    in_play = np.flatnonzero(changed["ram"][:, 0] == 4)
    changed["ram"][in_play[10] :, 0x42] ^= 0x01
    np.savez_compressed("changed.npz", **changed)
    result = run("verify", "changed.npz")
    assert result.exit_code == 1
    assert "changed.npz tick" in result.stdout
    assert "score_p1" in result.stdout
    last = result.stderr.splitlines()[-1]
    assert last.startswith("tempest-agent: the simulator differs from 1 of ")

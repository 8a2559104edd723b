"""Files of the program's own: never written through a link, and with the rights of the umask."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import matplotlib.figure
import numpy as np
import pytest
from click.testing import CliRunner

from tempest_agent.agent.checkpoints.checkpoint_files import write_checkpoint, write_replay
from tempest_agent.cli import cli
from tempest_agent.envs.mame.recorder import write_recording
from tempest_agent.envs.render.film import FilmWriter
from tempest_agent.errors import UserError
from tempest_agent.files.atomic_files import publish
from tempest_agent.files.own_files import LinkedFileError, open_own
from tempest_agent.plots.figure_files import save_figure
from tempest_agent.runs.directory import write_config
from tempest_agent.runs.lock import RunLock
from tempest_agent.runs.metrics_log import CsvLog, MetricsLog
from tempest_agent.runs.provenance import record_start
from tempest_agent.stability.guard import REMEDY, Event
from tempest_agent.stability.guard_log import GuardLog
from tempest_agent.sweep.executor import Command, start_process

PRECIOUS = "\\chapter{Years of work}"


def frame() -> np.ndarray:
    return np.zeros((640, 480, 3), np.uint8)


def film(path: Path) -> None:
    with FilmWriter(path) as writer:
        for _ in range(3):
            writer.write(frame())


def command(folder: Path) -> None:
    program = (sys.executable, "-I", "-S", "-c", "print('{}')")
    start_process(Command(program, folder / "out.json", folder / "run.log", folder)).wait()


def append(folder: Path) -> None:
    log = CsvLog(folder / "metrics.csv")
    log.write(1, {"loss": 1.0})
    if (folder / "late").exists():
        (folder / "late").rename(folder / "metrics.csv")
    log.write(2, {"loss": 2.0})


WRITERS: dict[str, Callable[[Path], object]] = {
    ".lock": lambda folder: RunLock(folder).release(),
    "run.json": record_start,
    "config.yaml": lambda folder: write_config(folder, {}),
    "metrics.csv": append,
    "late": append,
    "guard.jsonl": lambda folder: GuardLog(folder).write(Event(1, REMEDY, "a", "b", "c")),
    "step_1.pt": lambda folder: write_checkpoint(folder / "step_1.pt", {"step": 1}),
    "replay_1.npz": lambda folder: write_replay(folder / "replay_1.npz", "x", {}),
    "latest.pt": lambda folder: publish(folder / "weights", folder / "latest.pt"),
    "film.mp4": lambda folder: film(folder / "film.mp4"),
    ".film.part.mp4": lambda folder: film(folder / "film.mp4"),
    "plot.png": lambda folder: save_figure(matplotlib.figure.Figure(), folder / "plot.png"),
    ".plot.new.png": lambda folder: save_figure(matplotlib.figure.Figure(), folder / "plot.png"),
    "plot.svg": lambda folder: save_figure(matplotlib.figure.Figure(), folder / "plot.svg"),
    "game.npz": lambda folder: write_recording(folder / "game.npz", {"ram": frame()}),
    "out.json.part": command,
    "run.log": command,
}
"""Names that somebody may have put a link at, and what writes there."""

LINKS: dict[str, Callable[[Path, Path], object]] = {
    "symbolic": lambda link, target: link.symlink_to(target),
    "hard": lambda link, target: link.hardlink_to(target),
    "dangling": lambda link, target: link.symlink_to(target.with_name("missing")),
    "pipe": lambda link, target: os.mkfifo(link),
}


@pytest.mark.parametrize("kind", LINKS)
@pytest.mark.parametrize("name", WRITERS)
def test_nothing_is_written_through_a_link(tmp_path: Path, name: str, kind: str) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "weights").write_bytes(b"weights")
    target = tmp_path / "thesis.tex"
    target.write_text(PRECIOUS)
    LINKS[kind](folder / name, target)
    with suppress(LinkedFileError):  # Or it takes the place of the link.
        WRITERS[name](folder)
    assert target.read_text() == PRECIOUS
    assert not target.with_name("missing").exists()


def test_a_row_is_not_appended_to_what_took_the_place_of_a_log(tmp_path: Path) -> None:
    log = CsvLog(tmp_path / "log.csv")
    log.write(1, {"loss": 1.0})
    (tmp_path / "copy").hardlink_to(tmp_path / "log.csv")
    log.write(2, {"loss": 2.0})
    assert (tmp_path / "copy").read_text() == "steps,loss\n1,1\n"
    (tmp_path / "log.csv").unlink()
    log.write(3, {"loss": 3.0})
    assert (tmp_path / "log.csv").read_text().split() == ["steps,loss", "1,1", "2,2", "3,3"]


def test_truncation_spares_a_linked_file_too(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text(PRECIOUS)
    (tmp_path / "part").hardlink_to(tmp_path / "thesis.tex")
    with pytest.raises(UserError, match=f"{tmp_path}/part is a link or no plain file"):
        open_own(str(tmp_path / "part"), os.O_WRONLY | os.O_TRUNC)
    assert (tmp_path / "thesis.tex").read_text() == PRECIOUS
    (tmp_path / "old").write_text("a long text")
    with open(tmp_path / "old", "w", opener=open_own) as file:
        file.write("short")
    assert (tmp_path / "old").read_text() == "short"


@pytest.fixture(params=[0o002, 0o027, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_files_have_the_rights_of_the_umask(tmp_path: Path, umask: int) -> None:
    (tmp_path / "weights").write_bytes(b"weights")
    for write in dict.fromkeys(WRITERS.values()):
        write(tmp_path)
    MetricsLog(tmp_path).close()
    files = [path for path in tmp_path.iterdir() if path.is_file()]
    assert len(files) >= 15
    assert {oct(path.stat().st_mode & 0o777) for path in files} == {oct(0o666 & ~umask)}


def test_event_files_have_names_that_nobody_can_foresee(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        MetricsLog(tmp_path / folder).close()
    names = {path.name for path in tmp_path.glob("*/events.out.tfevents.*")}
    assert len({name.rpartition(".")[2] for name in names}) == 2


@pytest.mark.parametrize("name", ["checkpoints", "abandoned"])
def test_a_run_whose_folders_are_links_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere" / "unfinished_from_step_0").mkdir(parents=True)
    precious = tmp_path / "elsewhere" / "step_9.pt"
    precious.write_text(PRECIOUS)
    (tmp_path / "run").mkdir()
    record_start(tmp_path / "run")
    (tmp_path / "run" / name).symlink_to(tmp_path / "elsewhere")
    result = CliRunner().invoke(cli, ["train", "--resume", "run"])
    assert result.exit_code == 2
    assert f"run/{name} is a link to" in result.stderr
    assert result.stderr.count("\n") == 1
    assert precious.read_text() == PRECIOUS

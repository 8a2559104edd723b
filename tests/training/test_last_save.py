"""Runs whose actors are gone for good: what is saved, what is said, and how the run goes on."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fake_games import FakeGames, FakeTeacher
from inline_executor import InlineExecutor
from remote_runs import Run, fake, fake_player, games_of, joined

from tempest_agent.actors import remote_games as games_module
from tempest_agent.actors.executor import ActorLostError, Handle, MakePlayer, Ticket
from tempest_agent.actors.messages import Chunk
from tempest_agent.actors.pool import ActorPool
from tempest_agent.actors.remote_games import RemoteGames
from tempest_agent.actors.snapshot import Snapshot
from tempest_agent.agent.checkpoints.checkpoint_files import read_checkpoint
from tempest_agent.agent.collect.source import PlayFailedError
from tempest_agent.cli import cli
from tempest_agent.config import Config
from tempest_agent.errors import UserError
from tempest_agent.training import run_start
from tempest_agent.training import session as training
from tempest_agent.training.trainer import Trainer

WAYS = {
    "raises": r"actor 0 was lost 2 times in a row, .*because of: ValueError: tilt; repair the",
    "hangs": r"actor 0 was lost 2 times in a row, .*because of: no answer within 900 s",
    "ends": "the head is lost",
    "full": "no room for weights",
}
"""What becomes of actors, and how the reason begins that the user is told."""


class Fails(InlineExecutor):
    """After ``answers`` answers nobody plays any more, in one of ``WAYS``."""

    def __init__(self, make_player: MakePlayer, way: str, answers: int) -> None:
        super().__init__(make_player)
        self.way, self.answers = way, answers
        self.now = 0.0
        self.closed = False

    def clock(self) -> float:
        return self.now

    def put(self, snapshot: Snapshot) -> Handle:
        if self.way == "full" and self.answers <= 0:
            raise PlayFailedError("no room for weights")
        return super().put(snapshot)

    def wait(self, tickets: Sequence[Any], timeout: float) -> list[Ticket]:
        if self.answers > 0 or self.way == "full":
            return super().wait(tickets, timeout)
        if self.way == "ends":
            raise PlayFailedError("the head is lost")
        if self.way == "hangs":
            self.now += timeout
            return []
        return list(tickets)

    def result(self, ticket: Any) -> Chunk:
        if self.answers <= 0 and self.way == "raises":
            raise ActorLostError("ValueError: tilt", "Traceback of the actor")
        self.answers -= 1
        return super().result(ticket)

    def close(self) -> None:
        super().close()
        self.closed = True


class Failing:
    """A run of 800 decisions on a small problem, whose two actors end in its middle."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, way: str, answers: int, *more: str
    ) -> None:
        self.config = fake(
            2, "actors.chunk_steps=5", "actors.max_restarts=1", "actors.publish_interval=1", *more
        )
        self.folder = folder
        self.engines: list[Fails] = []

        def begin(make_player: MakePlayer) -> Fails:
            self.engines.append(Fails(make_player, way, answers))
            return self.engines[-1]

        # Time passes only where nobody answers.
        pool = partial(ActorPool, clock=lambda: self.engines[-1].clock())
        monkeypatch.setattr(games_module, "ActorPool", pool)
        player = partial(fake_player, self.config)
        games = RemoteGames(self.config, begin, player, FakeGames.layout)
        self.trainer = Trainer(self.config, folder, games=games, teacher=FakeTeacher())

    def error(self) -> PlayFailedError:
        """What it ends with."""
        with pytest.raises(PlayFailedError) as caught:
            self.trainer.run()
        self.trainer.close()
        return caught.value

    def goes_on(self) -> Run:
        """The same run to its end, with actors that work."""
        return Run(Trainer.resume(self.folder, games=games_of, teacher=FakeTeacher()))


def checkpoints(folder: Path) -> dict[str, int]:
    """Files of checkpoints, and when they were written."""
    return {path.name: path.stat().st_mtime_ns for path in (folder / "checkpoints").glob("*")}


@pytest.fixture(scope="module")
def whole_updates(tmp_path_factory: pytest.TempPathFactory) -> int:
    """Updates of the run where nothing fails."""
    config = fake(2, "actors.chunk_steps=5")
    folder = tmp_path_factory.mktemp("whole")
    run = Run(Trainer(config, folder, games=games_of(config), teacher=FakeTeacher()))
    return int(run.weights["updates"])


@pytest.mark.parametrize("way", WAYS)
def test_what_was_played_is_saved_before_the_run_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, whole_updates: int
) -> None:
    # The round that one of the actors has answered is not whole.
    run = Failing(tmp_path, monkeypatch, way, answers=13)
    trainer = run.trainer
    at_save: list[bool] = []
    trainer.on_checkpoint = lambda _: at_save.append(run.engines[0].closed)
    error = run.error()
    steps = 6 * 5 * 16 + (way == "full") * 5 * 16
    path = tmp_path / "checkpoints" / f"step_{steps}.pt"
    go_on = f"; saved {path}; resume with: tempest-agent train --resume {tmp_path}"
    assert str(error).endswith(go_on)
    assert pytest.raises(UserError, match=WAYS[way]).matches(error)
    assert isinstance(error.__cause__, PlayFailedError)
    # The actors have been ended first.
    assert at_save == [True]
    replay = trainer.loop.replay
    assert trainer.steps == replay.filled * replay.num_envs == steps
    content = read_checkpoint(path)
    assert content["step"] == steps
    assert content["collector"]["actors"]["totals"]["taken"] == steps

    rest = run.goes_on()
    assert rest.trainer.steps == rest.replay.filled * 16 == 800
    assert rest.weights["updates"] == whole_updates
    assert not joined(rest)


def test_a_full_disk_is_said_after_the_first_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Failing(tmp_path, monkeypatch, "raises", 13, "run.checkpoint_interval=400")
    run.trainer.on_checkpoint = lambda _: monkeypatch.setattr(os, "fsync", full_disk)
    error = str(run.error())
    monkeypatch.undo()
    assert pytest.raises(UserError, match=WAYS["raises"]).matches(UserError(error))
    assert "; saving failed too (UserError: cannot write" in error
    assert "No space left on device" in error
    assert error.endswith(
        f"resume with: tempest-agent train --resume {tmp_path}, from decision 400"
    )
    # Nothing is left of the second one.
    assert {name for name in checkpoints(tmp_path) if not name.startswith(("best", "good"))} == {
        "step_400.pt",
        "replay_400.npz",
    }
    assert run.goes_on().trainer.steps == 800


def full_disk(_: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_and_nothing_saved_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Failing(tmp_path, monkeypatch, "ends", 13)
    monkeypatch.setattr(os, "fsync", full_disk)
    error = str(run.error())
    assert error.startswith("the head is lost; saving failed too (UserError: cannot write")
    assert error.endswith("and there is no earlier checkpoint")
    assert checkpoints(tmp_path) == {}


def test_what_is_saved_already_is_not_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Failing(tmp_path, monkeypatch, "ends", 12, "run.checkpoint_interval=480")
    written: list[dict[str, int]] = []
    run.trainer.on_checkpoint = lambda _: written.append(checkpoints(tmp_path))
    error = str(run.error())
    assert error == f"the head is lost; resume with: tempest-agent train --resume {tmp_path}"
    assert written == [checkpoints(tmp_path)]
    # Nor does a run that cannot go on.
    again = Failing(tmp_path / "other", monkeypatch, "ends", 0)
    resumed = Trainer.resume(tmp_path, games=lambda _: again.trainer.loop.games, teacher=None)
    with pytest.raises(PlayFailedError) as caught:
        resumed.run()
    assert str(caught.value) == error
    assert written == [checkpoints(tmp_path)]
    assert run.goes_on().trainer.steps == 800


def test_a_run_that_has_not_begun_leaves_no_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Failing(tmp_path, monkeypatch, "ends", 0)
    assert str(run.error()) == "the head is lost"
    assert checkpoints(tmp_path) == {}


def test_the_command_says_it_in_one_line_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def by(make_executor: Callable[[MakePlayer], InlineExecutor]) -> None:
        def remote(config: Config) -> RemoteGames:
            return RemoteGames(config, make_executor)

        for module in (run_start, training):  # Where runs start, and where they are resumed.
            monkeypatch.setattr(module, "remote_games", remote)

    by(lambda make_player: Fails(make_player, "raises", 5))
    begin = ["train", "--config", "smoke", "--actors", "2", "--steps", "800", "--run-dir", "run"]
    result = CliRunner().invoke(cli, [*begin, "--set", "actors.max_restarts=1"])
    assert result.exit_code == 2
    assert result.stdout == ""
    last = result.stderr.splitlines()[-1]
    assert last.startswith("tempest-agent: actor 0 was lost 2 times in a row")
    # Two rounds of 16 decisions of 16 games.
    saved = "run/checkpoints/step_512.pt"
    assert last.endswith(f"; saved {saved}; resume with: tempest-agent train --resume run")
    assert "fault of tempest-agent" not in result.stderr
    assert Path("checkpoints/latest.pt").read_bytes() == Path(saved).read_bytes()
    by(InlineExecutor)
    result = CliRunner().invoke(cli, ["train", "--resume", "run", "--json"])
    assert result.exit_code == 0, result.stderr

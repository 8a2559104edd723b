"""A run that was interrupted is the same as one that was not, also where the guard goes back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from fake_games import SMALL, FakeGames, FakeTeacher
from same_state import assert_same

from tempest_agent.agent.checkpoints.checkpoint_files import read_checkpoint
from tempest_agent.agent.loop.state import state_dict
from tempest_agent.config import Config, load_config
from tempest_agent.stability.guard import SPEED, Event
from tempest_agent.training.trainer import Trainer

KEPT = ("best.pt", "good.pt")


def config(*overrides: str) -> Config:
    settings = ("run.steps=1600", "run.checkpoint_interval=400", "run.log_interval=200")
    return load_config(
        None, [*SMALL, *settings, "network.hidden=[16]", "learner.gradient_steps=1", *overrides]
    )


def begun(folder: Path, **more: Any) -> Trainer:
    settings = config()
    games = FakeGames(settings.run.num_envs, 0)
    return Trainer(settings, folder, games=games, teacher=FakeTeacher(), **more)


def resumed(folder: Path) -> Trainer:
    return Trainer.resume(
        folder, games=lambda c: FakeGames(c.run.num_envs, 7), teacher=FakeTeacher()
    )


def falls_ill(trainer: Trainer, at: int) -> list[int]:
    """Let the guard go back after ``at`` decisions, and keep to itself else; where it went."""
    guard, went = trainer.loop.guard, []
    roll_back = guard.remedies.restore
    assert roll_back is not None

    def observe(figures: Mapping[str, float]) -> list[Event]:
        guard.history.add({k: v for k, v in figures.items() if not k.endswith(SPEED)})
        if figures["steps"] == at:
            went.append(roll_back() or 0)
        return []

    trainer.loop.guard.observe = observe  # type: ignore[method-assign]
    return went


def stop_at(trainer: Trainer, step: int) -> None:
    """Ask ``trainer`` to stop after ``step`` decisions, as Ctrl-C would."""
    observe: Callable[[Mapping[str, float]], list[Event]] = trainer.loop.guard.observe

    def and_stop(figures: Mapping[str, float]) -> list[Event]:
        if figures["steps"] == step:
            trainer.request_stop()
        return observe(figures)

    trainer.loop.guard.observe = and_stop  # type: ignore[method-assign]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trainer, list[int], Path]:
    """A run that nothing interrupts, and that goes back after 1,200 decisions."""
    folder = tmp_path_factory.mktemp("whole")
    trainer = begun(folder)
    went = falls_ill(trainer, 1200)
    trainer.run()
    assert went == [800]
    return trainer, went, folder


@pytest.mark.parametrize("stops", [(1008,), (800,), (400, 608, 1008), (1008, 1200, 1408)])
def test_a_rollback_after_an_interruption_is_the_one_of_the_whole_run(
    tmp_path: Path, whole: tuple[Trainer, list[int], Path], stops: tuple[int, ...]
) -> None:
    trainer = begun(tmp_path)
    went: list[int] = []
    for stop in stops:
        went += falls_ill(trainer, 1200) if not went else []
        stop_at(trainer, stop)
        assert trainer.run()["steps"] == stop
        trainer = resumed(tmp_path)
    again = falls_ill(trainer, 1200)
    trainer.run()
    assert_same(state_dict(whole[0].loop), state_dict(trainer.loop))
    assert_same(whole[0].loop.replay.arrays(), trainer.loop.replay.arrays())
    assert again == ([] if stops[-1] >= 1200 else [800])
    assert (trainer.best_score, trainer.best_step) == (whole[0].best_score, whole[0].best_step)
    for name in KEPT:
        one, two = (read_checkpoint(path / "checkpoints" / name) for path in (whole[2], tmp_path))
        for part in ("step", "best_score", "best_step", "learner", "guard", "collector"):
            assert_same(one[part], two[part])


def test_an_interruption_keeps_nothing_as_good(tmp_path: Path) -> None:
    trainer = begun(tmp_path)
    stop_at(trainer, 608)
    trainer.config = config("run.checkpoint_interval=1600")
    trainer.run()
    assert trainer.loop.guard.good_step is None
    names = {path.name for path in (tmp_path / "checkpoints").iterdir()}
    assert names == {"step_608.pt", "replay_608.npz"}


def test_copies_that_a_kill_has_prevented_are_made_at_the_next_start(tmp_path: Path) -> None:
    trainer = begun(tmp_path)
    stop_at(trainer, 800)
    trainer.run()
    folder = tmp_path / "checkpoints"
    newest = (folder / "step_800.pt").read_bytes()
    assert trainer.kept["good.pt"] == 800
    (folder / "good.pt").write_bytes((folder / "step_400.pt").read_bytes())
    again = resumed(tmp_path)
    again.restore_kept()
    assert (folder / "good.pt").read_bytes() == newest
    torch.load(folder / "best.pt", weights_only=True)

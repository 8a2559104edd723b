"""A run that is stopped between two updates of one block: the rest stays owed and is made later."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fake_games import SMALL, FakeGames, FakeTeacher
from same_state import assert_same

from tempest_agent.agent.checkpoints.checkpoint_files import read_checkpoint
from tempest_agent.agent.loop.state import state_dict
from tempest_agent.config import load_config
from tempest_agent.training.trainer import Trainer

BLOCK = 12
"""Updates of one step of the games."""


def trainer_of(folder: Path, *more: str) -> Trainer:
    config = load_config(
        None,
        [*SMALL, "run.steps=480", "run.log_interval=80", "run.checkpoint_interval=240",
         "run.keep_checkpoints=9", f"learner.gradient_steps={BLOCK}", "network.hidden=[16]", *more],
    )  # fmt: skip
    return Trainer(config, folder, games=FakeGames(16, 0), teacher=FakeTeacher())


def resumed(folder: Path) -> Trainer:
    return Trainer.resume(folder, games=lambda _: FakeGames(16, 0), teacher=FakeTeacher())


def stop_after(trainer: Trainer, updates: int, step: int = 0) -> None:
    """Request a stop after so many updates, counted from decision ``step``."""
    update, made = trainer.loop.update, [0]

    def counted(*arguments: Any) -> Any:
        found = update(*arguments)
        made[0] += trainer.steps >= step
        if made[0] == updates:
            trainer.request_stop()
        return found

    trainer.loop.update = counted


class Whole(NamedTuple):
    """The run that is not stopped, at its end."""

    folder: Path
    state: dict[str, Any]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    folder = tmp_path_factory.mktemp("whole")
    trainer = trainer_of(folder)
    trainer.run()
    return Whole(folder, state_dict(trainer.loop))


@pytest.mark.parametrize(
    ("step", "updates"), [(336, 1), (368, 5), (368, BLOCK), (480, 5), (480, BLOCK)]
)
def test_the_rest_of_a_block_is_made_after_the_resume(
    tmp_path: Path, whole: Whole, step: int, updates: int
) -> None:
    first = trainer_of(tmp_path)
    stop_after(first, updates, step)
    result = first.run()
    is_whole_block = updates == BLOCK
    # After the last update of a block one more decision is played, and its updates are owed.
    played = step + 16 * (is_whole_block and step < 480)
    assert (result["steps"], result["stopped"]) == (played, True)
    content = read_checkpoint(Path(result["checkpoint"]))
    owed = BLOCK * (step < 480) if is_whole_block else BLOCK - updates
    assert (content["owed"], content["learner"]["updates"]) == (owed, result["updates"])
    assert first.is_complete == (owed == 0 and played == 480)
    second = resumed(tmp_path)
    second.run()
    assert second.is_complete
    assert_same(whole.state, state_dict(second.loop))
    kept = [
        {
            name: read_checkpoint(folder / "checkpoints" / f"{name}.pt")["step"]
            for name in ("best", "good")
        }
        for folder in (whole.folder, tmp_path)
    ]
    assert kept[0] == kept[1]


def test_owed_updates_count_what_larger_batches_replace(tmp_path: Path) -> None:
    """The guard may make updates of twice the rows, and half as many."""
    whole, first = trainer_of(tmp_path / "whole"), trainer_of(tmp_path / "parts")
    for each in (whole, first):
        each.loop.guard.remedies.accumulation = 2
        each.loop.guard.remedies._earned = 1
    whole.run()
    stop_after(first, 2, 336)
    content = read_checkpoint(Path(first.run()["checkpoint"]))
    assert (content["step"], content["owed"]) == (336, 2 * (BLOCK // 2 - 2))
    second = resumed(tmp_path / "parts")
    second.run()
    assert_same(state_dict(whole.loop), state_dict(second.loop))


def test_a_stop_before_the_resumed_block_leaves_it_owed(tmp_path: Path) -> None:
    first = trainer_of(tmp_path)
    stop_after(first, 5, 336)
    updates = first.run()["updates"]
    second = resumed(tmp_path)
    second.request_stop()
    result = second.run()
    assert (result["steps"], result["updates"]) == (336, updates)
    assert read_checkpoint(Path(result["checkpoint"]))["owed"] == BLOCK - 5

"""What a run saves when it has to end because whoever plays its games is gone."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tempest_agent.agent.collect.source import PlayFailedError
from tempest_agent.config import Config, local_options
from tempest_agent.errors import one_line

if TYPE_CHECKING:
    from .trainer import Trainer


@contextmanager
def saved_if_play_fails(trainer: Trainer) -> Iterator[None]:
    """Save before a ``PlayFailedError`` from inside goes on, and say in it how to go on.

    Nothing is written if the newest checkpoint has all decisions; where none has been played, the
    error goes on as it is.  That saving fails too is said after the first reason, never in its
    place.

    Raises:
        PlayFailedError: the one from inside, with what was saved and how to go on.
    """
    try:
        yield
    except PlayFailedError as error:
        if trainer.steps == 0:
            raise
        raise PlayFailedError(f"{error}; {_saved(trainer)}") from error


def resume_command(run: Path, config: Config) -> str:
    """What resumes the run in the folder ``run``, with what no file of it keeps."""
    return shlex.join(["tempest-agent", "train", "--resume", str(run), *local_options(config)])


def _saved(trainer: Trainer) -> str:
    """Save, and say what there is to go on from."""
    run = trainer.folder.parent
    go_on = f"go on with: {resume_command(run, trainer.config)}"
    if trainer.saved_steps == trainer.steps:
        return go_on
    # No games are played here for the checkpoint's sake: the run is to end.
    trainer.stop_requested = True
    failure = ""
    try:
        trainer.save()
    except Exception as also:
        failure = f"saving failed too ({type(also).__name__}: {one_line(also)})"
    if trainer.saved_steps == trainer.steps:
        return "; ".join(filter(None, (f"saved {trainer.last_checkpoint}", failure, go_on)))
    if trainer.saved_steps is None:
        return f"{failure}, and there is no earlier checkpoint"
    return f"{failure}; {go_on}, from decision {trainer.saved_steps:,}"

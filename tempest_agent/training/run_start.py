"""The start of a run: its folder, its lock, and its settings, written before anything else.

They are enough to restart it (``--resume``) after a kill before its first checkpoint.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tempest_agent.actors.remote_games import remote_games
from tempest_agent.agent.devices import device_here
from tempest_agent.agent.replicas import Replicas
from tempest_agent.config import Config, as_meant, from_dict, read_tree, to_dict, with_local
from tempest_agent.files.atomic_files import publish
from tempest_agent.runs.directory import (
    claim_run,
    create_run,
    discard_folders,
    discard_run,
    write_config,
)
from tempest_agent.runs.file_names import CONFIG_FILE, START_FILE
from tempest_agent.runs.lock import RunLock
from tempest_agent.runs.provenance import record_start
from tempest_agent.training.trainer import Trainer


def start_run(
    config: Config, chosen: Path | None, start: Path | None, replicas: Replicas
) -> tuple[Trainer, Path, RunLock]:
    """Create a new run; return its trainer, folder and lock.

    Args:
        config: all settings.
        chosen: a folder that is new or empty; None for one named after the run.
        start: a checkpoint whose networks are loaded.
        replicas: the ranks of the run, of which this is rank 0.

    Raises:
        UserError: a folder in use, or settings that cannot work here; nothing is left.
    """
    run = create_run(config.run.name, config.run.seed, chosen)
    try:
        lock = RunLock(run)
    except BaseException:
        discard_folders(run)
        raise
    try:
        claim_run(run)
    except BaseException:
        lock.release()
        raise
    try:
        record_start(run)
        if start is not None and start.is_file():
            publish(start, run / START_FILE)
        write_config(run, to_dict(config))
        return _trainer(config, run, start, replicas), run, lock
    except BaseException:
        lock.discard()
        discard_run(run)
        raise


def restart_run(
    run: Path,
    steps: int | None,
    device: str | None,
    actors: Mapping[str, Any] | None,
    local: Sequence[str],
    replicas: Replicas,
) -> Trainer:
    """Return the trainer of a run that ended before its first checkpoint, to start it again.

    The arguments are those of ``Session.resumed``.

    Raises:
        UserError: its settings cannot be read, or cannot work here.
    """
    tree = as_meant(read_tree(run / CONFIG_FILE))
    stored = from_dict(tree)
    changed = dataclasses.replace(
        stored.run,
        steps=stored.run.steps if steps is None else steps,
        device=device_here(stored.run.device) if device is None else device,
    )
    changes = [f"actors.{key}={json.dumps(value)}" for key, value in (actors or {}).items()]
    config = with_local(dataclasses.replace(stored, run=changed), tree, [*changes, *local])
    start = run / START_FILE
    trainer = _trainer(config, run, start if start.is_file() else None, replicas)
    if config != stored:
        write_config(run, to_dict(config))
    return trainer


def _trainer(config: Config, run: Path, start: Path | None, replicas: Replicas) -> Trainer:
    games = remote_games(config)
    trainer = Trainer(config, run, games=games, replicas=replicas)
    trainer.take_demonstrations()
    if start is not None:
        trainer.start_from(start)
    if games is not None:
        games.connect()
    trainer.announce()
    return trainer

"""Saving a run whose folder has vanished: removed, moved, unmounted, or replaced."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tempest_agent.config import to_dict
from tempest_agent.errors import UserError, one_line
from tempest_agent.runs.directory import write_config
from tempest_agent.runs.file_names import CHECKPOINT_FOLDER
from tempest_agent.runs.metrics_log import MetricsLog
from tempest_agent.runs.provenance import record_start
from tempest_agent.training.trainer import Trainer, resume_command


def rescue(trainer: Trainer, run: Path, metrics: MetricsLog | None) -> UserError:
    """Save the run in a new temporary folder; return the error that says where."""
    gone = f"the folder {run} was removed, moved or unmounted during training"
    if trainer.steps == 0:
        return UserError(f"{gone}; there was nothing to save yet")
    if trainer.replicas.size > 1:  # They would all have to save.
        return UserError(f"{gone}; a run of several ranks cannot be saved elsewhere")
    try:
        folder = Path(tempfile.mkdtemp(prefix=f"{run.name}-"))
        trainer.folder, trainer.on_checkpoint = folder / CHECKPOINT_FOLDER, None
        trainer.request_stop()
        write_config(folder, to_dict(trainer.config))
        record_start(folder, trainer.steps)
        if metrics is not None:
            metrics.copy_to(folder)
        trainer.save()
    except (OSError, UserError) as also:
        return UserError(f"{gone}; saving it elsewhere failed too ({one_line(also)})")
    return UserError(
        f"{gone}; its {trainer.steps:,} decisions are saved in {folder}: copy that folder to where "
        f"it stays, and resume it: {resume_command(folder, trainer.config)}"
    )

"""What a run asks after every decision: is a checkpoint due, and is it to end?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stable_baselines3.common.callbacks import BaseCallback

if TYPE_CHECKING:
    from .trainer import Trainer


class DueCheckpoints(BaseCallback):
    """Writes checkpoints when they are due and ends training when asked to."""

    def __init__(self, trainer: Trainer) -> None:
        super().__init__()
        self.trainer = trainer

    def _on_step(self) -> bool:
        trainer = self.trainer
        trainer.stopped = trainer.replicas.stops(trainer.stop_requested)
        # The last checkpoint of a run is written by ``run``, after the last updates.
        complete = trainer.steps >= trainer.config.run.steps
        if trainer.is_scheduled and not trainer.stopped and not complete:
            trainer.save()
        return complete or not trainer.stopped

"""The runs of a sweep: which commands make each, and how far it has come, told by its files.

``OUT/VARIANT/seedN/`` is the directory of an ordinary training run.  Beside it lie
``seedN.train.json`` once training is complete and ``seedN.eval.json`` once the player has been
scored, which is what the two commands printed, and ``seedN.log``.
"""

from __future__ import annotations

import csv
import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tempest_agent.config import to_dict
from tempest_agent.errors import UserError
from tempest_agent.run_directory import CHECKPOINT_FOLDER, CONFIG_FILE, RUN_FILE, write_config
from tempest_agent.run_lock import RunLock
from tempest_agent.sweep.engine import Command
from tempest_agent.sweep.plan import Plan, Variant

EVAL_SEED = 0
"""Training seeds begin at the configuration's, 1 unless it says otherwise."""

_PROGRAM = (sys.executable, "-m", "tempest_agent.cli")


@dataclass(frozen=True)
class SweepRun:
    """One variant trained with one seed (a ``Task`` for an engine)."""

    out: Path
    plan: Plan
    variant: Variant
    seed: int

    @property
    def name(self) -> str:
        """``VARIANT/seedN``."""
        return f"{self.variant.name}/seed{self.seed}"

    @property
    def folder(self) -> Path:
        """The run directory."""
        return self.out / self.variant.name / f"seed{self.seed}"

    @property
    def log(self) -> Path:
        """What the commands wrote to stderr."""
        return self.folder.with_suffix(".log")

    @property
    def scored(self) -> Path:
        """What the evaluation printed: the last file of a run."""
        return self.folder.with_suffix(".eval.json")

    def next_command(self) -> Command | None:
        """Training from the start, or from the last checkpoint, or the evaluation, or nothing."""
        trained = _read(self._trained)
        if trained is None:
            run = self.variant.config.run
            command = self._command(self._trained, "train", *self._training(), "--eval-games", "0")
            return replace(command, cpus=run.threads, device=run.device)
        if _read(self.scored) is not None:
            return None
        player = self.folder / CHECKPOINT_FOLDER / Path(trained["checkpoint"]).name
        return self._command(
            self.scored, "eval", str(player), "--threads", "1",
            "--episodes", str(self.plan.episodes), "--max-ticks", str(self.plan.max_ticks),
            "--seed", str(EVAL_SEED), "--input-delay", str(self.variant.config.game.input_delay),
        )  # fmt: skip

    def steps(self) -> int:
        """Decisions that have been played so far, as far as the run's log tells.

        Never more than were asked for: a run's last round may go beyond.
        """
        total = self.variant.config.run.steps
        if self._trained.is_file():
            return total
        try:
            with (self.folder / "metrics.csv").open(newline="", encoding="utf-8") as file:
                played = [int(row["steps"]) for row in csv.DictReader(file) if row["steps"]]
        except (OSError, KeyError, ValueError):
            return 0  # Not begun, or a line is being written right now.
        return min(max(played, default=0), total)

    def result(self) -> dict[str, Any] | None:
        """Scores of the games, updates and seconds; None while the run is not complete.

        ``seconds`` of training is None for a run that was stopped in between.
        """
        trained, scored = _read(self._trained), _read(self.scored)
        if trained is None or scored is None:
            return None
        starts = (_read(self.folder / RUN_FILE) or {}).get("starts", [])
        return {
            "seed": self.seed,
            "scores": scored["scores"],
            "deaths_per_1000_ticks": scored["deaths_per_1000_ticks"],
            "updates": trained["updates"],
            "seconds": trained["seconds"] if len(starts) == 1 else None,
        }

    @property
    def _trained(self) -> Path:
        return self.folder.with_suffix(".train.json")

    def _training(self) -> tuple[str, ...]:
        if any((self.folder / CHECKPOINT_FOLDER).glob("step_*.pt")):
            return ("--resume", str(self.folder))
        if self.folder.exists():
            # It was killed before its first checkpoint: there is nothing to go on with.
            RunLock(self.folder).release()
            shutil.rmtree(self.folder)
        self.folder.parent.mkdir(exist_ok=True)
        write_config(self.folder.parent, to_dict(self.variant.config))
        config = self.folder.parent / CONFIG_FILE
        return ("--config", str(config), "--seed", str(self.seed), "--run-dir", str(self.folder))

    def _command(self, output: Path, *arguments: str) -> Command:
        return Command((*_PROGRAM, *arguments, "--json"), output, self.log, self.out)


def runs_of(plan: Plan, out: Path) -> list[SweepRun]:
    """Every run of ``plan``: all variants with the first seed, then with the next.

    In this order a sweep that is stopped early has compared everything a little.
    """
    return [SweepRun(out, plan, variant, seed) for seed in plan.seeds for variant in plan.variants]


def last_words(run: SweepRun) -> str:
    """The last line that the run's commands wrote to their log."""
    try:
        lines = run.log.read_text(encoding="utf-8", errors="replace").split("\n")
    except FileNotFoundError:
        return "no log"
    return next((line for line in reversed(lines) if line.strip()), "an empty log")


def _read(file: Path) -> dict[str, Any] | None:
    """A JSON object, or None if the file is not there."""
    try:
        tree = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise UserError(f"{file} is damaged: remove it to have it made again") from error
    if not isinstance(tree, dict):
        raise UserError(f"{file} is damaged: remove it to have it made again")
    return tree


def all_steps(runs: Sequence[SweepRun]) -> int:
    """Decisions of all ``runs`` when they are complete."""
    return sum(run.variant.config.run.steps for run in runs)

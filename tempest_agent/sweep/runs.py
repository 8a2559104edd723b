"""The runs of a sweep: the commands of each, and its progress as read from its files.

``OUT/VARIANT/seedN/`` is the directory of an ordinary training run.  Beside it are
``seedN.train.json`` once training is complete and ``seedN.eval.json`` once the player was scored
(the output of the two commands), and ``seedN.log``.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tempest_agent.config import local_options, to_dict
from tempest_agent.envs.messages import printable, shown
from tempest_agent.errors import UserError
from tempest_agent.files.own_files import require_own_folder
from tempest_agent.files.regular_files import read_json, read_lines, read_table
from tempest_agent.runs.directory import can_resume, write_config
from tempest_agent.runs.file_names import (
    CHECKPOINT_FOLDER,
    CONFIG_FILE,
    METRICS_FILE,
    RUN_FILE,
    STEPS,
)
from tempest_agent.runs.lock import RunLock
from tempest_agent.sweep.executor import Command
from tempest_agent.sweep.plan import Plan, Variant

EVAL_SEED = 0
"""Not a training seed: those start at the configuration's, 1 by default."""

TRAINED = {"checkpoint": str, "updates": int, "seconds": int | float}
SCORED = {"scores": list, "deaths_per_1000_ticks": int | float}
"""Entries used of the output of the two commands, and their types."""

LONGEST_WORDS = 1_000
"""Characters of a log line that is shown to the user."""

_PROGRAM = (sys.executable, "-m", "tempest_agent.cli")


@dataclass(frozen=True)
class SweepRun:
    """One variant trained with one seed (a ``Task`` for an executor)."""

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
        """Return the command that starts or resumes training, or the evaluation, or None."""
        trained = _read(self._trained, TRAINED)
        if trained is None:
            run = self.variant.config.run
            command = self._command(self._trained, "train", *self._training(), "--eval-games", "0")
            return replace(command, cpus=run.threads, device=run.device)
        if _read(self.scored, SCORED) is not None:
            return None
        player = self.folder / CHECKPOINT_FOLDER / Path(trained["checkpoint"]).name
        return self._command(
            self.scored, "eval", str(player), "--threads", "1",
            "--episodes", str(self.plan.episodes), "--max-ticks", str(self.plan.max_ticks),
            "--seed", str(EVAL_SEED), "--input-delay", str(self.variant.config.game.input_delay[0]),
        )  # fmt: skip

    def steps(self) -> int:
        """Return the steps played so far according to the run's log, at most all of them."""
        total = self.variant.config.run.steps
        if self._trained.is_file():
            return total
        try:
            heading, *rows = read_table(self.folder / METRICS_FILE)
            at = heading.index(STEPS)
        except (OSError, UserError, ValueError):
            return 0  # Not started.
        # The last line may still be being written.
        played = [row[at] for row in rows if len(row) == len(heading)]
        numbers = [int(text) for text in played if text.isdecimal() and len(text) < 20]
        return min(max(numbers, default=0), total)

    def result(self) -> dict[str, Any] | None:
        """Return scores, updates and seconds; None while the run is not complete.

        ``seconds`` of training is None for a run that was stopped in between.
        """
        trained, scored = _read(self._trained, TRAINED), _read(self.scored, SCORED)
        if trained is None or scored is None:
            return None
        starts = (_read(self.folder / RUN_FILE, {"starts": list}) or {"starts": []})["starts"]
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
        own = local_options(self.variant.config)
        if can_resume(self.folder):
            return ("--resume", str(self.folder), *own)
        if self.folder.exists():
            # Killed before its settings were written: there is nothing to resume.
            RunLock(self.folder).release()
            shutil.rmtree(self.folder)
        require_own_folder(self.folder.parent)
        self.folder.parent.mkdir(exist_ok=True)
        write_config(self.folder.parent, to_dict(self.variant.config))
        config = self.folder.parent / CONFIG_FILE
        run = ("--seed", str(self.seed), "--run-dir", str(self.folder))
        return ("--config", str(config), *run, *own)

    def _command(self, output: Path, *arguments: str) -> Command:
        return Command((*_PROGRAM, *arguments, "--json"), output, self.log, self.out)


def runs_of(plan: Plan, out: Path) -> list[SweepRun]:
    """Return every run of ``plan``: all variants with the first seed, then with the next.

    In this order a sweep that is stopped early has compared all variants.
    """
    return [SweepRun(out, plan, variant, seed) for seed in plan.seeds for variant in plan.variants]


def last_words(run: SweepRun) -> str:
    """Return the last line that the run's commands wrote to their log."""
    try:
        lines = read_lines(run.log)
    except FileNotFoundError:
        return "no log"
    words = next((line for line in reversed(lines) if line.strip()), "an empty log")
    return printable(words, LONGEST_WORDS)


def _read(file: Path, kinds: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a JSON object with entries of these ``kinds``, or None if the file is not there."""
    try:
        tree = read_json(file)
        for name, kind in kinds.items():
            if not isinstance(tree.get(name), kind):
                raise UserError(f"{file} is damaged: its {name} is {shown(tree.get(name))}")
    except FileNotFoundError:
        return None
    except UserError as error:
        raise UserError(f"{error}; remove it to have it made again") from error
    return tree


def all_steps(runs: Sequence[SweepRun]) -> int:
    """Return the steps of all ``runs`` when complete."""
    return sum(run.variant.config.run.steps for run in runs)

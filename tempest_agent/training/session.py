"""One start of a training run: its folder, its logs, its greedy evaluations, and its end."""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from tempest_agent.actors.remote_games import remote_games
from tempest_agent.agent.checkpoints.checkpoint_files import newest_checkpoint, take_back
from tempest_agent.agent.curriculum.teacher_score import has_to_be_measured
from tempest_agent.agent.devices import DEVICES
from tempest_agent.agent.games.tempest_games import NO_TEACHER
from tempest_agent.agent.loop.memory_check import require_memory
from tempest_agent.agent.ranks.process_group import RankLostError, watching_torchrun
from tempest_agent.agent.replicas import ALONE, Replicas
from tempest_agent.config import Config
from tempest_agent.console.lost_output import drop_lost_output
from tempest_agent.console.progress import Progress, following, speed
from tempest_agent.errors import UserError, unknown_name
from tempest_agent.evaluation.checkpoint_games import greedy_figures
from tempest_agent.files.atomic_files import publish, remove_leftovers
from tempest_agent.files.own_files import require_own_folder, require_writable
from tempest_agent.files.system_errors import system_reason
from tempest_agent.runs.directory import HOUR, can_restart, find_run
from tempest_agent.runs.file_names import (
    CHECKPOINT_FILES,
    CHECKPOINT_FOLDER,
    LATEST,
    LATEST_FILES,
    RUN_FILES,
)
from tempest_agent.runs.lock import RunLock
from tempest_agent.runs.metrics_log import MetricsLog
from tempest_agent.runs.metrics_table import metrics_table
from tempest_agent.runs.provenance import record_start
from tempest_agent.stability.guard import Event
from tempest_agent.stability.guard_log import GuardLog
from tempest_agent.training.going_back import finish_going_back, go_back
from tempest_agent.training.rescue import rescue
from tempest_agent.training.run_start import restart_run, start_run
from tempest_agent.training.trainer import Trainer, resume_command

SHOWN = {
    "loss": "loss {loss:.3g}",
    "q_mean": "Q {q_mean:.1f}",
    "expert_ratio": "expert {expert_ratio:.2f}",
    "epsilon": "epsilon {epsilon:.3f}",
    "teacher_free_score": "teacher-free {teacher_free_score:,.0f} "
    "({teacher_free_games:,.0f} ended)",
}
"""Metrics of a printed line and their formats; ``metrics.csv`` has all metrics."""

MEANING = (
    "below: greedy, the score (IQM) of the agent alone at the last checkpoint, to judge the run "
    "by; loss and Q (mean value of the chosen actions) of the updates; expert, the share of "
    "decisions by the teacher; teacher-free, the mean score of the training games that it never "
    "drives, of those that have ended: low at first, because short games end first"
)

log = logging.getLogger("tempest_agent")


class Session:
    """A trainer with everything around it.  Use ``new`` or ``resumed``."""

    def __init__(
        self,
        trainer: Trainer,
        folder: Path,
        lock: RunLock,
        logs: tuple[MetricsLog, GuardLog] | None,
        eval_games: int,
        verbose: bool = False,
        publishes: bool = True,
        resumed_from: Path | None = None,
    ) -> None:
        self.folder = folder
        self._resumed_from = resumed_from
        self._publishes = publishes
        self._verbose = verbose
        self._trainer = trainer
        self._lock = lock
        self._log: MetricsLog | None
        self._guard_log: GuardLog | None
        self._log, self._guard_log = logs or (None, None)
        self._eval_games = eval_games
        self._progress: Progress | None = None
        self.last_greedy: dict[str, float] | None = None
        """Metrics of the last greedy games of this start (``checkpoint_games.EVALUATED``)."""
        trainer.loop.on_metrics = self._on_metrics
        trainer.loop.on_guard = self._on_guard
        trainer.on_checkpoint = self._on_checkpoint

    @classmethod
    def new(
        cls,
        config: Config,
        folder: Path | None,
        eval_games: int,
        verbose: bool = False,
        start: Path | None = None,
        publishes: bool = True,
        replicas: Replicas = ALONE,
    ) -> Session:
        """Start a run.

        Args:
            config: all settings.
            folder: new or empty; None for one named after the run.
            eval_games: greedy games at every checkpoint.
            verbose: whether each log row is printed as a table.
            start: a checkpoint whose networks are loaded first.
            publishes: whether checkpoints become ``checkpoints/latest.pt``.
            replicas: the ranks of the run, of which this is rank 0.

        Raises:
            UserError: a folder in use, or settings that cannot work here.
        """
        require_memory(config)
        if publishes:
            _prepare_latest()
        trainer, run, lock = start_run(config, folder, start, replicas)
        try:
            logs = MetricsLog(run), GuardLog(run)
        except BaseException:
            lock.release()
            raise
        return cls(trainer, run, lock, logs, eval_games, verbose, publishes)

    @classmethod
    def resumed(
        cls,
        path: Path | None,
        steps: int | None,
        eval_games: int,
        device: str | None = None,
        verbose: bool = False,
        publishes: bool = True,
        actors: Mapping[str, Any] | None = None,
        local: Sequence[str] = (),
        replicas: Replicas = ALONE,
    ) -> Session:
        """Resume the run at ``path`` (its folder or a checkpoint in it), or the newest run.

        Damaged files are renamed, with a warning.  A complete run stays as it is; ``run`` says so.
        One that ended before its first checkpoint is restarted.  What a run has written since the
        checkpoint at ``path`` is moved aside.

        Args:
            path: a run, or one of its checkpoints.
            steps: new length of the whole run.
            eval_games: greedy games at every checkpoint.
            device: ``auto``, ``cpu`` or ``cuda``; the run's if left out.
            verbose: whether each log row is printed as a table.
            publishes: whether checkpoints become ``checkpoints/latest.pt``.
            actors: changed settings of that section.
            local: this machine's settings, as in ``Trainer.resume``.
            replicas: the ranks of the run, of which this is rank 0.

        Raises:
            UserError: no such run, no usable checkpoint in it, or another process uses it.
        """
        if publishes:
            _prepare_latest()
        if device is not None and device not in DEVICES:
            raise UserError(unknown_name("device", device, DEVICES))
        run = find_run(path)
        lock = RunLock(run)
        try:
            checkpoint = _prepared(run, path)
            if checkpoint is None:
                log.warning("%s has no checkpoint: restarting it from its config.yaml", run)
                trainer = restart_run(run, steps, device, actors, local, replicas)
            else:
                trainer = _resume(run, checkpoint, steps, device, actors, local, replicas)
            logs = None
            if checkpoint is None or not trainer.is_complete:
                if checkpoint is not None:
                    go_back(run, checkpoint, trainer.steps)
                    trainer.restore_kept()
                record_start(run, trainer.steps)
                logs = MetricsLog(run, trainer.steps), GuardLog(run, trainer.steps)
            else:
                trainer.last_checkpoint = checkpoint  # It need not be written again.
        except BaseException:
            lock.release()
            raise
        return cls(trainer, run, lock, logs, eval_games, verbose, publishes, checkpoint)

    @property
    def total_steps(self) -> int:
        """Decisions of the whole run."""
        return self._trainer.config.run.steps

    @property
    def resume_command(self) -> str:
        """The command that resumes the run."""
        return resume_command(self.folder, self._trainer.config)

    def run(self) -> dict[str, Any]:
        """Train to the end, or until SIGINT or SIGTERM.

        Raises:
            UserError: the folder cannot be written, or has vanished; the run is then saved
                elsewhere, if possible.
        """
        try:
            return self._run()
        except (OSError, UserError) as error:
            if self._lock.is_in_place:
                raise
            raise rescue(self._trainer, self.folder, self._log) from error
        finally:
            self._trainer.close()
            self._lock.release()

    def _run(self) -> dict[str, Any]:
        trainer = self._trainer
        total = trainer.config.run.steps
        began = time.monotonic()
        if self._log is None:
            log.warning(
                "%s is complete (%s decisions) and stays as it is; "
                "to continue, give the whole run a new length: --steps N",
                self.folder,
                f"{trainer.steps:,}",
            )
            return self._result(trainer.run(), began)
        with (
            _stopping(trainer),
            Progress(total, "decisions", "train", trainer.steps) as self._progress,
            following(self._progress, lambda: trainer.steps, lambda: _end_without_output(trainer)),
        ):
            self._progress.message(f"run {self.folder}, {trainer.steps:,} of {total:,} decisions")
            self._progress.message(f"network: {trainer.network_size}")
            self._progress.message(f"replay: {trainer.loop.replay.memory}")
            if trainer.replicas.size > 1:
                self._progress.message(f"{trainer.replicas.size} ranks, each with such a replay")
            self._progress.message(MEANING)
            if trainer.config.actors.count:
                self._progress.message(f"{trainer.config.actors.count} actors play on Ray")
            if self._measures_teacher():
                self._progress.message("measuring the teacher ...")
            self._evaluate_missing()
            result = trainer.run()
        self._log.close()
        return self._result(result, began)

    def _result(self, figures: Mapping[str, Any], began: float) -> dict[str, Any]:
        return {
            **figures,
            "run_dir": str(self.folder),
            "seconds": round(time.monotonic() - began, 3),
        }

    def _measures_teacher(self) -> bool:
        """Return whether the trainer starts with games of the teacher."""
        config = self._trainer.config
        has_teacher = config.teacher.name != NO_TEACHER
        return has_teacher and has_to_be_measured(config) and self._trainer.steps == 0

    def _on_metrics(self, figures: Mapping[str, float]) -> None:
        steps = int(figures["steps"])
        self._write("train", steps, figures)
        if self._verbose:
            self._say(metrics_table(figures))
            return
        parts = [text.format(**figures) for name, text in SHOWN.items() if name in figures]
        if self.last_greedy is not None:
            parts.insert(0, f"greedy {self.last_greedy['score_iqm']:,.0f}")
        if "updates_per_second" in figures:
            parts.append(f"{speed(figures['updates_per_second'])} updates/s")
        self._say(f"{steps:,}: {', '.join(parts)}")

    def _on_guard(self, event: Event) -> None:
        if self._guard_log is not None:
            self._guard_log.write(event)
        self._say(str(event))

    def _on_checkpoint(self, path: Path) -> None:
        if self._publishes:
            try:
                publish(path, LATEST)
            except OSError as error:  # The run has its own checkpoint, and continues.
                self._say(f"{LATEST} stays as it was: {system_reason(error)}")
        self._evaluate(path, "saved")

    def _evaluate_missing(self) -> None:
        """Evaluate the checkpoint resumed from, if the stop had prevented that."""
        path, trainer = self._resumed_from, self._trainer
        if path is None or self._log is None or not self._eval_games or not trainer.is_scheduled:
            return
        if not self._log.has("eval", trainer.steps):
            self._evaluate(path, "resumed from")

    def _evaluate(self, path: Path, what: str) -> None:
        saved = f"{self._trainer.steps:,}: {what} {path}"
        trainer = self._trainer
        figures = None
        if self._eval_games:
            seed = trainer.config.run.seed
            figures = greedy_figures(path, self._eval_games, seed, lambda: trainer.stop_requested)
        if figures is None:
            self._say(saved)
            return
        self.last_greedy = figures
        self._write("eval", self._trainer.steps, figures)
        self._say(
            f"{saved}; {self._eval_games} greedy games: "
            f"IQM {figures['score_iqm']:,.0f}, level {figures['level_mean']:.1f}"
        )

    def _write(self, table: str, steps: int, figures: Mapping[str, float]) -> None:
        if self._log is not None:
            self._log.write(table, steps, figures)

    def _say(self, text: str) -> None:
        if self._progress is None:
            return
        try:
            self._progress.message(text)
        except OSError:  # The terminal is closed, or `| head` has ended.
            _end_without_output(self._trainer)


def follow(replicas: Replicas) -> bool:
    """Train as another rank than 0, without files; return whether the run was stopped."""
    # Rank 0 logs the same.
    log.setLevel(logging.ERROR)
    trainer = Trainer.follow(replicas)
    with _stopping(trainer):
        return bool(trainer.run()["stopped"])


def _prepare_latest() -> None:
    """Check that checkpoints can be published."""
    require_writable(LATEST.parent)
    remove_leftovers(LATEST.parent, LATEST_FILES, HOUR)


def _prepared(run: Path, path: Path | None) -> Path | None:
    """Return the checkpoint to resume from, ``path`` or the newest; None for a restart.

    The run's files, which this process has locked, are put in order first.
    """
    folder = run / CHECKPOINT_FOLDER
    require_own_folder(folder)
    remove_leftovers(run, RUN_FILES)
    remove_leftovers(folder, CHECKPOINT_FILES)
    finish_going_back(run)
    take_back(folder)
    if path is not None and path.is_file() and path.suffix == ".pt":
        return path
    if can_restart(run):
        return None
    return newest_checkpoint(folder, clear=True)


def _resume(
    run: Path,
    checkpoint: Path,
    steps: int | None,
    device: str | None,
    actors: Mapping[str, Any] | None,
    local: Sequence[str],
    replicas: Replicas,
) -> Trainer:
    """Return the trainer of a run, loaded from one of its checkpoints."""
    trainer = Trainer.resume(
        checkpoint,
        steps=steps,
        device=device,
        actors=actors,
        local=local,
        games=remote_games,
        replicas=replicas,
    )
    trainer.folder = run / CHECKPOINT_FOLDER
    if steps is not None and steps < trainer.steps:
        raise UserError(
            f"--steps {steps} is below the {trainer.steps} decisions that {run} has played: "
            "it is the length of the whole run, so give more, or leave it out"
        )
    return trainer


def _end_without_output(trainer: Trainer) -> None:
    """Save and end, as at Ctrl-C: nobody sees the output any more."""
    trainer.request_stop()
    drop_lost_output()


@contextmanager
def _stopping(trainer: Trainer) -> Iterator[None]:
    """Let SIGINT, SIGTERM and SIGHUP stop the trainer where it can be resumed exactly.

    When a rank is lost, ``torchrun`` sends SIGTERM to the others, which end by themselves: it is
    ignored then, because it would arrive before they have printed why.
    """

    def ask(number: int, _frame: FrameType | None) -> None:
        trainer.request_stop()
        if number == hang_up:
            drop_lost_output()

    hang_up = getattr(signal, "SIGHUP", None)  # A terminal that goes away; Windows has none.
    numbers = [signal.SIGINT, signal.SIGTERM]
    if hang_up is not None and signal.getsignal(hang_up) == signal.SIG_DFL:  # nohup ignores it.
        numbers.append(hang_up)
    after: dict[int, Any] = {number: signal.signal(number, ask) for number in numbers}
    try:
        with watching_torchrun(trainer.request_stop):
            yield
    except RankLostError:
        after[signal.SIGTERM] = signal.SIG_IGN
        raise
    finally:
        for number, handler in after.items():
            signal.signal(number, handler)

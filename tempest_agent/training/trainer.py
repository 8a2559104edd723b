"""One training run, from its configuration to its last checkpoint.

The command layer needs only this::

    trainer = Trainer(config, run_dir, on_metrics=print)        # or Trainer.resume(path, run_dir)
    summary = trainer.run()                                     # until config.run.steps
    trainer.request_stop()                                      # from a signal handler

``run`` returns after the last update, or soon after ``request_stop``; in either case it has written
a checkpoint from which the run continues exactly.
"""

from __future__ import annotations

import dataclasses
import json
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray

from tempest_agent.agent.checkpoints.checkpoint_files import prune, write_checkpoint
from tempest_agent.agent.checkpoints.run_checkpoints import (
    BEST,
    GOOD,
    checkpoint_at,
    find_replay,
    fitting,
    read_good,
    read_run,
    restore_kept,
    write_snapshot,
)
from tempest_agent.agent.collect.source import PlayedElsewhere, PlayFailedError, PlayStoppedError
from tempest_agent.agent.curriculum.teacher_score import has_to_be_measured, measure_teacher
from tempest_agent.agent.devices import device_here, require_device, torch_device
from tempest_agent.agent.games.interface import Games, Teacher
from tempest_agent.agent.games.tempest_games import TempestGames, TempestTeacher, teacher_of
from tempest_agent.agent.loop.memory_check import require_memory
from tempest_agent.agent.loop.state import load_state_dict
from tempest_agent.agent.loop.training_loop import TrainingLoop
from tempest_agent.agent.networks.layout import Layout
from tempest_agent.agent.networks.network_size import NetworkSize, size_of
from tempest_agent.agent.ranks.config_share import share_of
from tempest_agent.agent.ranks.exchange import share_networks
from tempest_agent.agent.replicas import ALONE, Replicas
from tempest_agent.agent.seeds import seed_generators
from tempest_agent.config import Config, from_dict, local_options, to_dict, with_local
from tempest_agent.demonstrations.prefill import take_demonstrations
from tempest_agent.errors import UserError, one_line
from tempest_agent.files.atomic_files import publish

from .rank_checkpoints import collect_run, deal_run


def resume_command(run: Path, config: Config) -> str:
    """Return the command that resumes the run in the folder ``run``."""
    return shlex.join(["tempest-agent", "train", "--resume", str(run), *local_options(config)])


class Trainer:
    """One run.

    Args:
        config: everything the run depends on.
        run_dir: its folder; checkpoints go to ``run_dir/checkpoints``.
        on_metrics: called with every log row (names to floats, ``steps`` among them).
        on_checkpoint: called with the path of every checkpoint as soon as it is complete.
        games: what is played; the arcade's games in this process if left out.
        teacher: labels and drives; if left out, the configured one for the arcade's games, played
            here or elsewhere.
        replicas: processes that train together (see ``process_group``); ``config`` is of the
            whole run, ``games`` are this process's.

    Raises:
        UserError: an unknown teacher, a missing device, a replay that cannot fit.
    """

    def __init__(
        self,
        config: Config,
        run_dir: Path,
        *,
        on_metrics: Callable[[dict[str, float]], None] | None = None,
        on_checkpoint: Callable[[Path], None] | None = None,
        games: Games | None = None,
        teacher: Teacher | None = None,
        replicas: Replicas = ALONE,
    ) -> None:
        require_device(config.run.device)
        replicas.require_device(config.run.device)
        self.config = config
        self.replicas = replicas
        self.folder = run_dir / "checkpoints"
        self.on_checkpoint = on_checkpoint
        self.stop_requested = self.stopped = False
        self.best_score: float | None = None
        self.best_step: int | None = None
        """Decisions in ``best.pt``."""
        self.last_checkpoint: Path | None = None
        self.saved_steps: int | None = None
        """Decisions in the newest checkpoint."""
        self._scheduled_steps: int | None = None
        """Decisions in the newest checkpoint that an uninterrupted run has too."""
        torch.set_num_threads(config.run.threads)
        share = share_of(config, replicas)
        if games is None or isinstance(games, PlayedElsewhere):
            teacher = teacher or teacher_of(share)
        if games is None:
            count = share.run.num_envs
            numbers = range(replicas.rank * count, (replicas.rank + 1) * count)
            games = TempestGames(count, config.game, share.run.seed, numbers)
        device = torch_device(share.run.device)
        seed_generators(share.run.seed, device)
        self.loop = TrainingLoop(share, games.layout, device, teacher=teacher, replicas=replicas)
        self.loop.play_in(games)
        self.loop.on_metrics = on_metrics
        self.loop.guard.remedies.restore = self._roll_back
        self._started = False
        self._demonstrated = False

    @classmethod
    def resume(
        cls,
        path: Path,
        *,
        steps: int | None = None,
        device: str | None = None,
        actors: Mapping[str, Any] | None = None,
        local: Sequence[str] = (),
        on_metrics: Callable[[dict[str, float]], None] | None = None,
        on_checkpoint: Callable[[Path], None] | None = None,
        games: Callable[[Config], Games | None] | None = None,
        teacher: Teacher | None = None,
        replicas: Replicas = ALONE,
    ) -> Trainer:
        """Resume a run exactly where its checkpoint was taken.

        Args:
            path: a checkpoint, or a run's folder, whose newest usable checkpoint is taken.
            steps: new length of the whole run; the schedules stay those of the checkpoint.
            device: ``auto``, ``cpu`` or ``cuda``; if left out, the run's, or without a GPU the CPU.
            actors: changed settings of that section.
            local: ``section.key=value`` of this machine's settings (``config.local_settings``),
                which no file holds.
            on_metrics: as in the constructor.
            on_checkpoint: as in the constructor.
            games: makes the games from the configuration; the arcade's if left out.
            teacher: labels and drives; the configured one if left out.
            replicas: as in the constructor, in any number.  Only rank 0 reads files; the others
                call ``follow``.

        Raises:
            UserError: no usable checkpoint, one that does not fit this version, or a missing
                setting of this machine.
        """
        path = checkpoint_at(path)
        content = read_run(path, "resume from")
        with fitting(path):
            config = from_dict(content["config"])
            run = dataclasses.replace(
                config.run,
                steps=config.run.steps if steps is None else steps,
                device=device_here(config.run.device) if device is None else device,
            )
        changes = [f"actors.{key}={json.dumps(value)}" for key, value in (actors or {}).items()]
        config = dataclasses.replace(config, run=run)
        config = with_local(config, content["config"], [*changes, *local])
        require_memory(config)
        replicas.broadcast({"config": to_dict(config, local=True), "content": content})
        with fitting(path):
            if config.actors.count == 0 and "actors" in content["collector"]:
                raise UserError(
                    f"{path} is of a run whose games actors play; resume it with --actors 1 or more"
                )
            trainer = cls(
                config,
                path.parent.parent,
                on_metrics=on_metrics,
                on_checkpoint=on_checkpoint,
                games=None if games is None else games(config),
                teacher=teacher,
                replicas=replicas,
            )
            if Layout(**content["layout"]) != trainer.loop.layout:
                raise UserError(
                    f"{path} was trained on other observations or actions than these games have"
                )
            settings = config.replay
            largest = trainer.loop.replay.largest_arrays(settings.capacity)
            snapshot = content["snapshot"]
            replay = find_replay(path, snapshot, settings.learning_starts, largest)
            trainer._load(content, replay)
        trainer.folder = path.parent
        trainer.best_score = content["best_score"]
        trainer.best_step = content["best_step"]
        trainer.saved_steps = trainer.steps
        trainer._scheduled_steps = trainer.steps if trainer.is_scheduled else None
        return trainer

    @classmethod
    def follow(
        cls,
        replicas: Replicas,
        *,
        games: Callable[[Config], Games] | None = None,
        teacher: Teacher | None = None,
    ) -> Trainer:
        """Return the trainer of another rank than 0, which starts or resumes as rank 0 does.

        Args:
            replicas: as in the constructor.
            games: as in ``resume``.
            teacher: as in ``resume``.

        Raises:
            UserError: rank 0 has ended, or what it does is not possible here.
        """
        plan = replicas.broadcast(None)
        config = from_dict(plan["config"], local=True)
        own = None if games is None else games(config)
        trainer = cls(config, Path(), games=own, teacher=teacher, replicas=replicas)
        if plan["content"] is not None:
            trainer._load(plan["content"], None)
        return trainer

    def announce(self) -> None:
        """Tell the other ranks, which wait in ``follow``, about the new run."""
        self.replicas.broadcast({"config": to_dict(self.config, local=True), "content": None})

    def _load(self, content: dict[str, Any], replay: dict[str, NDArray[Any]] | None) -> None:
        """Load a checkpoint; only the ``replay`` of rank 0 matters."""
        load_state_dict(self.loop, *deal_run(self.loop, content, replay))
        self._started = True

    def start_from(self, path: Path) -> None:
        """Load the networks of the checkpoint ``path``; everything else, the optimiser too, is new.

        Raises:
            UserError: no usable training checkpoint, or one whose network has another shape.
        """
        content = read_run(path, "start from")
        try:
            self.loop.learner.load_networks(content["learner"], optimizer=False)
        except (KeyError, RuntimeError) as error:
            raise UserError(
                f"the network of {path} does not fit these settings: give the network.*, "
                "learner.loss and learner.value_bins of its run"
            ) from error

    @property
    def network_size(self) -> NetworkSize:
        """Parameters and arithmetic operations of the trained network."""
        learner = self.loop.learner
        return size_of(learner.online, learner.layout.num_features)

    @property
    def steps(self) -> int:
        """Decisions played so far."""
        return self.loop.num_timesteps

    def request_stop(self) -> None:
        """End ``run`` after the present step of the games or the present update.

        Safe in a signal handler.  Several ranks end after the same step, its updates owed.  Games
        that other processes play are not waited for.
        """
        self.stop_requested = True
        if isinstance(self.loop.games, PlayedElsewhere):
            self.loop.games.stop()

    def run(self) -> dict[str, Any]:
        """Train until ``run.steps`` decisions are played or a stop is requested.

        Returns:
            ``steps``, ``updates``, ``env_steps_per_second``, ``samples_per_second``,
            ``checkpoint`` (path as text), ``expert_ratio``, ``epsilon`` and ``stopped`` (whether
            a stop was requested).

        Raises:
            PlayFailedError: the processes that play are gone for good.  A checkpoint has been
                written if there was something new to save and it was possible.
        """
        loop = self.loop
        if self.replicas.is_first:
            self.folder.mkdir(parents=True, exist_ok=True)
        if not self._started:
            share_networks(self.replicas, loop.learner)
            self._measure_teacher()
            self.take_demonstrations()
        began, steps, updates = time.perf_counter(), self.steps, loop.learner.updates
        was_complete = self.is_complete
        if not was_complete:
            try:
                with suppress(PlayStoppedError):
                    self._train()
            except PlayFailedError as error:
                if self.steps == 0:
                    raise
                raise PlayFailedError(f"{error}; {self._save_after_failure()}") from error
        seconds = max(time.perf_counter() - began, 1e-9)
        trained = loop.learner.updates - updates
        if not was_complete or self.replicas.gather(self.last_checkpoint is None)[0]:
            self.save()
        drivers = loop.collector.source.drivers
        return {
            "steps": self.steps,
            "updates": loop.learner.updates,
            "env_steps_per_second": (self.steps - steps) / seconds,
            "samples_per_second": trained * self.config.learner.batch_size / seconds,
            "checkpoint": str(self.last_checkpoint),
            "expert_ratio": loop.expert_ratio(self.steps),
            "epsilon": float(drivers.epsilon(loop.curriculum.epsilon(self.steps)).mean()),
            "stopped": self.stop_requested or self.stopped,
        }

    def _train(self) -> None:
        """Play and learn until the run is complete or a stop is requested."""
        loop = self.loop
        if not self._started:
            self._started = True
            loop.collector.abandon()
            loop.games.reset()
        while self._learn_owed() and self.steps < self.config.run.steps:
            loop.play()
            self.stopped = self.replicas.stops(self.stop_requested)
            if self.stopped:
                break  # The updates stay owed, and are in the checkpoint.
            # ``run`` saves after the last updates.
            if self.is_scheduled and self.steps < self.config.run.steps:
                self.save()

    def _learn_owed(self) -> bool:
        """Make the owed updates; return False if a stop left some of them owed."""
        if self.steps >= self.config.run.steps and not self._is_learning:
            return True
        return self.loop.learn_owed(lambda: self.stop_requested and self.replicas.size == 1)

    @property
    def _is_learning(self) -> bool:
        return self.steps > self.loop.config.replay.learning_starts

    @property
    def is_complete(self) -> bool:
        """Whether all decisions are played, and the updates made that they have earned."""
        owes = self._is_learning and self.loop.owed > 0
        return self.steps >= self.config.run.steps and not owes

    def _save_after_failure(self) -> str:
        """Save what was played before the players were lost; return what to resume from.

        Nothing is written if the newest checkpoint has all decisions.
        """
        go_on = f"resume with: {resume_command(self.folder.parent, self.config)}"
        if self.saved_steps == self.steps:
            return go_on
        self.stop_requested = True  # No games are evaluated at this checkpoint.
        failure = ""
        try:
            self.save()
        except Exception as also:
            failure = f"saving failed too ({type(also).__name__}: {one_line(also)})"
        if self.saved_steps == self.steps:
            return "; ".join(filter(None, (f"saved {self.last_checkpoint}", failure, go_on)))
        if self.saved_steps is None:
            return f"{failure}, and there is no earlier checkpoint"
        return f"{failure}; {go_on}, from decision {self.saved_steps:,}"

    @property
    def kept(self) -> dict[str, int | None]:
        """Decisions in the copies ``best.pt`` and ``good.pt``; None for no such copy."""
        guard = self.loop.guard
        return {BEST: self.best_step, GOOD: guard.good_step if guard.enabled else None}

    def restore_kept(self) -> None:
        """Restore ``best.pt`` and ``good.pt`` as they were at this step."""
        restore_kept(self.folder, self.kept)

    @property
    def is_scheduled(self) -> bool:
        """Whether an uninterrupted run saves now: at every interval, and when it is complete."""
        run = self.config.run
        if self.steps >= run.steps:
            return self.is_complete
        every, before = run.checkpoint_interval, self.steps - run.num_envs
        return self.steps // every != before // every

    def save(self) -> Path:
        """Write a checkpoint (and the replay) of the present state; remove old ones.

        The checkpoint with the best teacher-free score is kept as ``best.pt`` as well, the last
        one without symptoms as ``good.pt``, to which the guard rolls back.  A checkpoint that only
        an interrupted run has becomes neither: a later rollback must be the same in both.

        Raises:
            UserError: the folder cannot be written; earlier checkpoints are untouched.
        """
        step = self.steps
        path = self.folder / f"step_{step}.pt"
        run = self.config.run
        content, rows = collect_run(self.loop, self.config, run.save_replay)
        if not self.replicas.is_first:
            return path
        snapshot = write_snapshot(self.folder, step, rows, run.compress_replay)
        may_be_kept = self.is_scheduled and self._scheduled_steps != step
        if may_be_kept:
            self._scheduled_steps = step
        score = self.loop.collector.history.teacher_free_score
        is_best = score is not None and (self.best_score is None or score > self.best_score)
        if may_be_kept and is_best:
            self.best_score, self.best_step = score, step
        guard = self.loop.guard
        if may_be_kept and guard.is_well:
            guard.good_step = step
        content["guard"] = guard.state_dict()
        content["best_score"], content["best_step"] = self.best_score, self.best_step
        content["snapshot"] = snapshot
        write_checkpoint(path, content)
        for name, kept in self.kept.items():
            if may_be_kept and kept == step:
                publish(path, self.folder / name)
        self.last_checkpoint, self.saved_steps = path, step
        prune(self.folder, self.config.run.keep_checkpoints, path)
        if self.on_checkpoint is not None:
            self.on_checkpoint(path)
        return path

    def close(self) -> None:
        """Close the processes that the games run in: machines, or actors."""
        close = getattr(self.loop.games, "close", None)
        if close is not None:
            close()

    def _roll_back(self) -> int | None:
        """Load the last good checkpoint on all ranks; return its step, if there is one."""
        replicas = self.replicas
        step = replicas.gather(self._load_good() if replicas.is_first else None)[0]
        if step is not None:
            share_networks(replicas, self.loop.learner)
        return step

    def _load_good(self) -> int | None:
        """Load networks and optimiser of the last good checkpoint; all else stays."""
        step = self.loop.guard.good_step
        content = read_good(self.folder, step)
        if content is None:
            return None
        self.loop.learner.load_networks(content["learner"])
        return step

    def _measure_teacher(self) -> None:
        teacher = self.loop.teacher
        if has_to_be_measured(self.config) and isinstance(teacher, TempestTeacher):
            first = self.replicas.is_first
            score = measure_teacher(self.config, teacher) if first else 0.0
            self.loop.teacher_score = self.replicas.gather(score)[0]

    def take_demonstrations(self) -> None:
        """Fill the replay with ``replay.demonstrations``, if any, once; ``run`` calls it too.

        Raises:
            UserError: no such data set, or one that does not fit this run.
        """
        if self.config.replay.demonstrations and not self._demonstrated:
            self._demonstrated = True
            take_demonstrations(self.loop.replay, self.config, self.replicas)

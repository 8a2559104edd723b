"""A training run from its configuration to its checkpoints.

The command layer needs only this::

    trainer = Trainer(config, run_dir, on_metrics=print)        # or Trainer.resume(path, run_dir)
    summary = trainer.run()                                     # until config.run.steps
    trainer.request_stop()                                      # from a signal handler

``run`` returns after the last decision or at the next consistent point after ``request_stop``,
with a checkpoint written in either case.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from stable_baselines3.common.logger import Logger

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
from tempest_agent.agent.collect.source import PlayedElsewhere, PlayStoppedError
from tempest_agent.agent.curriculum.teacher_score import has_to_be_measured, measure_teacher
from tempest_agent.agent.devices import device_here, require_device
from tempest_agent.agent.dqn.games_vec_env import GamesVecEnv
from tempest_agent.agent.dqn.hybrid_dqn import HybridDQN
from tempest_agent.agent.dqn.policies import policy_name
from tempest_agent.agent.games.interface import Games, Labeller
from tempest_agent.agent.games.tempest_games import TempestGames, TempestTeacher, teacher_of
from tempest_agent.agent.networks.layout import Layout
from tempest_agent.agent.networks.network_size import NetworkSize, size_of
from tempest_agent.agent.ranks.exchange import collect_run, deal_run, share_networks
from tempest_agent.agent.ranks.process_group import share_of
from tempest_agent.agent.replicas import ALONE, Replicas
from tempest_agent.config import Config, from_dict, to_dict, with_local
from tempest_agent.errors import UserError
from tempest_agent.runs.directory import publish
from tempest_agent.training.memory_check import require_memory

from .due_checkpoints import DueCheckpoints
from .last_save import saved_if_play_fails


class Trainer:
    """One run.

    Args:
        config: everything the run depends on.
        run_dir: its folder; checkpoints go to ``run_dir/checkpoints``.
        on_metrics: gets every line of metrics (names to floats, ``steps`` among them).
        on_checkpoint: gets the path of every checkpoint as soon as it is complete.
        games: what is played; the arcade's games in this process if left out.
        teacher: labels and drives; if left out, the configured one for the arcade's games, played
            here or elsewhere.
        replicas: processes that make the run together (see ``data_parallel``); ``config`` is that
            of the whole run, and ``games`` those of this process.

    Raises:
        UserError: an unknown teacher, a device that is not there, a replay that cannot fit.
    """

    def __init__(
        self,
        config: Config,
        run_dir: Path,
        *,
        on_metrics: Callable[[dict[str, float]], None] | None = None,
        on_checkpoint: Callable[[Path], None] | None = None,
        games: Games | None = None,
        teacher: Labeller | None = None,
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
        """Decisions that ``best.pt`` has."""
        self.last_checkpoint: Path | None = None
        self.saved_steps: int | None = None
        """Decisions that the newest checkpoint has."""
        torch.set_num_threads(config.run.threads)
        share = share_of(config, replicas)
        if games is None or isinstance(games, PlayedElsewhere):
            teacher = teacher or teacher_of(share)
        if games is None:
            games = TempestGames(share.run.num_envs, config.game, share.run.seed)
        self.algorithm = HybridDQN(
            policy_name(config.network.encoder),
            GamesVecEnv(games),
            config=share,
            teacher=teacher,
            on_metrics=on_metrics,
            replicas=replicas,
        )
        # Lines of metrics go to ``on_metrics``; SB3's own outputs would repeat them.
        self.algorithm.set_logger(Logger(None, []))
        self._started = False
        self._demonstrated = False
        self.algorithm.guard.remedies.restore = self._roll_back

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
        teacher: Labeller | None = None,
        replicas: Replicas = ALONE,
    ) -> Trainer:
        """Go on with a run exactly where its checkpoint was taken.

        Args:
            path: a checkpoint, or a run's folder, whose newest usable checkpoint is taken.
            steps: decisions of the whole run, if it is to be longer or shorter; the schedules
                stay those of the checkpoint.
            device: where to go on, ``auto``, ``cpu`` or ``cuda``; left out, where the run was, or
                if there is no GPU any more, on the CPU.
            actors: settings of that section that are to be others than they were.
            local: ``section.key=value`` of this machine's settings (``config.local_settings``),
                which are in no file.
            on_metrics: as in the constructor.
            on_checkpoint: as in the constructor.
            games: makes what is played from the configuration; the arcade's games if left out.
            teacher: labels and drives; the configured one if left out.
            replicas: as in the constructor, as many as before or not.  Only the first reads files;
                the others call ``follow``.

        Raises:
            UserError: no usable checkpoint, one that does not fit this version, or a setting of
                this machine that the run needs is not given.
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
                    f"{path} is of a run whose games actors play; go on with --actors 1 or more"
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
            if Layout(**content["layout"]) != trainer.algorithm.layout:
                raise UserError(
                    f"{path} was trained on other observations or actions than these games have"
                )
            settings = config.replay
            largest = trainer.algorithm.replay.largest_arrays(settings.capacity)
            snapshot = content["snapshot"]
            replay = find_replay(path, snapshot, settings.learning_starts, largest)
            trainer._go_on(content, replay)
        trainer.folder = path.parent
        trainer.best_score = content["best_score"]
        trainer.best_step = content.get("best_step")  # Files of earlier versions have none.
        trainer.saved_steps = trainer.steps
        return trainer

    @classmethod
    def follow(
        cls,
        replicas: Replicas,
        *,
        games: Callable[[Config], Games] | None = None,
        teacher: Labeller | None = None,
    ) -> Trainer:
        """The trainer of a process that is not the first: begins or goes on as the first does.

        Args:
            replicas: as in the constructor.
            games: as in ``resume``.
            teacher: as in ``resume``.

        Raises:
            UserError: the first has ended, or what it does is not possible here.
        """
        plan = replicas.broadcast(None)
        config = from_dict(plan["config"], local=True)
        own = None if games is None else games(config)
        trainer = cls(config, Path(), games=own, teacher=teacher, replicas=replicas)
        if plan["content"] is not None:
            trainer._go_on(plan["content"], None)
        return trainer

    def announce(self) -> None:
        """Tell the others, who wait in ``follow``, about the run that begins here."""
        self.replicas.broadcast({"config": to_dict(self.config, local=True), "content": None})

    def _go_on(self, content: dict[str, Any], replay: dict[str, NDArray[Any]] | None) -> None:
        """Take over a checkpoint; ``replay`` is asked only of the first process."""
        self.algorithm.load_state_dict(*deal_run(self.algorithm, content, replay))
        self._started = True

    def start_from(self, path: Path) -> None:
        """Begin with the networks of the checkpoint ``path``; all else, optimiser too, is new.

        Raises:
            UserError: no usable training checkpoint, or one whose network has another shape.
        """
        content = read_run(path, "start from")
        try:
            self.algorithm.learner.load_networks(content["learner"], optimizer=False)
        except (KeyError, RuntimeError) as error:
            raise UserError(
                f"the network of {path} does not fit these settings: give the network.*, "
                "learner.loss and learner.value_bins of the run that it is from"
            ) from error

    @property
    def network_size(self) -> NetworkSize:
        """Parameters and arithmetic of the network that is trained."""
        learner = self.algorithm.learner
        return size_of(learner.online, learner.layout.num_features)

    @property
    def steps(self) -> int:
        """Decisions played so far."""
        return self.algorithm.num_timesteps

    def request_stop(self) -> None:
        """End ``run`` after the present vector step; fit for a signal handler.

        Games that others play are not waited for: ``run`` ends before that step if it is not there.
        """
        self.stop_requested = True
        if isinstance(self.algorithm.games, PlayedElsewhere):
            self.algorithm.games.stop()

    def run(self) -> dict[str, Any]:
        """Train until ``run.steps`` decisions are played or a stop is requested.

        Returns:
            ``steps``, ``updates``, ``env_steps_per_second``, ``samples_per_second``,
            ``checkpoint`` (path as text), ``expert_ratio``, ``epsilon`` and ``stopped`` (whether
            a stop was requested).

        Raises:
            PlayFailedError: the processes that play are gone for good.  A checkpoint has been
                written, where there was something new to save and it was possible.
        """
        algorithm = self.algorithm
        if self.replicas.is_first:
            self.folder.mkdir(parents=True, exist_ok=True)
        if not self._started:
            share_networks(algorithm)
            self._measure_teacher()
            self.take_demonstrations()
        began, steps, updates = time.perf_counter(), self.steps, algorithm.learner.updates
        left = self.config.run.steps - steps
        if left > 0:
            with suppress(PlayStoppedError), saved_if_play_fails(self):
                algorithm.learn(left, DueCheckpoints(self), reset_num_timesteps=not self._started)
            self._started = True
        seconds = max(time.perf_counter() - began, 1e-9)
        trained = algorithm.learner.updates - updates
        if left > 0 or self.replicas.gather(self.last_checkpoint is None)[0]:
            self.save()
        curriculum, drivers = algorithm.curriculum, algorithm.collector.drivers
        return {
            "steps": self.steps,
            "updates": algorithm.learner.updates,
            "env_steps_per_second": (self.steps - steps) / seconds,
            "samples_per_second": trained * self.config.learner.batch_size / seconds,
            "checkpoint": str(self.last_checkpoint),
            "expert_ratio": algorithm.expert_ratio(self.steps),
            "epsilon": float(drivers.epsilon(curriculum.epsilon(self.steps)).mean()),
            "stopped": self.stop_requested or self.stopped,
        }

    @property
    def kept(self) -> dict[str, int | None]:
        """Decisions that the copies ``best.pt`` and ``good.pt`` have; None where there is none."""
        guard = self.algorithm.guard
        return {BEST: self.best_step, GOOD: guard.good_step if guard.enabled else None}

    def restore_kept(self) -> None:
        """Restore ``best.pt`` and ``good.pt`` as this run has them at this step."""
        restore_kept(self.folder, self.kept)

    @property
    def is_scheduled(self) -> bool:
        """Whether an uninterrupted run saves at this step: at every interval, and at its end."""
        run = self.config.run
        every, before = run.checkpoint_interval, self.steps - run.num_envs
        return self.steps >= run.steps or self.steps // every != before // every

    def save(self) -> Path:
        """Write a checkpoint (and the replay) of this moment; older ones are thinned out.

        The checkpoint whose teacher-free games scored most is kept as ``best.pt`` as well, the
        last one without symptoms as ``good.pt``, to which the guard rolls back.  A checkpoint
        that is written only because the run is interrupted becomes neither: an uninterrupted run
        would not have it, and a later rollback must be the same in both.

        Raises:
            UserError: the folder cannot be written; earlier checkpoints are untouched.
        """
        step = self.steps
        path = self.folder / f"step_{step}.pt"
        run = self.config.run
        content, rows = collect_run(self.algorithm, self.config, run.save_replay)
        if not self.replicas.is_first:
            return path
        snapshot = write_snapshot(self.folder, step, rows, run.compress_replay)
        may_be_kept = self.is_scheduled and self.saved_steps != step
        score = self.algorithm.collector.free_score
        is_best = score is not None and (self.best_score is None or score > self.best_score)
        if may_be_kept and is_best:
            self.best_score, self.best_step = score, step
        guard = self.algorithm.guard
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
        """End what the games run on: machines, or actors."""
        close = getattr(self.algorithm.games, "close", None)
        if close is not None:
            close()

    def _roll_back(self) -> int | None:
        """Go back to the last good checkpoint, in all processes; its step, if there is one."""
        replicas = self.replicas
        step = replicas.gather(self._load_good() if replicas.is_first else None)[0]
        if step is not None:
            share_networks(self.algorithm)
        return step

    def _load_good(self) -> int | None:
        """Networks and optimiser of the last good checkpoint; games, replay and counters stay."""
        step = self.algorithm.guard.good_step
        content = read_good(self.folder, step)
        if content is None:
            return None
        self.algorithm.learner.load_networks(content["learner"])
        return step

    def _measure_teacher(self) -> None:
        teacher = self.algorithm.teacher
        if has_to_be_measured(self.config) and isinstance(teacher, TempestTeacher):
            first = self.replicas.is_first
            score = measure_teacher(self.config, teacher) if first else 0.0
            self.algorithm.teacher_score = self.replicas.gather(score)[0]

    def take_demonstrations(self) -> None:
        """Fill the replay with ``replay.demonstrations``, if any; once, and ``run`` does it too.

        Raises:
            UserError: no such data set, or one that does not fit this run.
        """
        if self.config.replay.demonstrations and not self._demonstrated:
            self._demonstrated = True
            # Here, because few runs need it.
            from tempest_agent.demonstrations.prefill import take_demonstrations

            take_demonstrations(self.algorithm.replay, self.config, self.replicas)

"""The algorithm: play one decision of every game, store it, log, and make the earned updates.

The updates that a decision has earned are part of the state (``owed``), so that a checkpoint taken
anywhere between two calls continues exactly.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import torch

from tempest_agent.agent.collect.collector import Collector
from tempest_agent.agent.collect.drivers import Drivers
from tempest_agent.agent.collect.local_source import LocalSource
from tempest_agent.agent.collect.plan_labeller import make_labeller
from tempest_agent.agent.collect.source import Played, PlayedElsewhere, Source
from tempest_agent.agent.collect.throughput import Throughput
from tempest_agent.agent.curriculum.curriculum import Curriculum
from tempest_agent.agent.curriculum.schedules import Schedules, Table
from tempest_agent.agent.games.interface import Games, Teacher
from tempest_agent.agent.learner.imitation import gate
from tempest_agent.agent.learner.learner import Learner
from tempest_agent.agent.learner.update_metrics import return_bound
from tempest_agent.agent.networks.layout import Layout
from tempest_agent.agent.ranks.exchange import share_figures
from tempest_agent.agent.replay.buffer import ReplayBuffer
from tempest_agent.agent.replay.make_replay import make_replay
from tempest_agent.agent.replicas import ALONE, Replicas
from tempest_agent.agent.seeds import seeds_of
from tempest_agent.agent.update.update import Update, make_update
from tempest_agent.config import Config
from tempest_agent.stability.guard import Event, Guard

log = logging.getLogger("tempest_agent")


class TrainingLoop:
    """Plays one decision of every game, stores it, and makes the updates that it earned.

    Args:
        config: all settings; of this process's share, if there are several replicas.
        layout: of the observations and actions.
        device: where networks and updates live.
        teacher: labels states and drives its segments; None for none.
        teacher_score: mean score of the teacher, if the configuration gives none.
        replicas: the processes that train the same network.
        learning_rates: a schedule that replaces the configured one.

    Attributes:
        num_timesteps: decisions played, over all games and replicas.
        vector_steps: calls of ``play``.
        owed: updates earned and not made yet.
        on_metrics: called with each log row.
        on_guard: called with each event of the guard; by default the log.
    """

    games: Games
    replay: ReplayBuffer
    update: Update
    collector: Collector
    throughput: Throughput

    def __init__(
        self,
        config: Config,
        layout: Layout,
        device: torch.device,
        *,
        teacher: Teacher | None = None,
        teacher_score: float = 1.0,
        replicas: Replicas = ALONE,
        learning_rates: Table | None = None,
    ) -> None:
        self.config, self.layout, self.device = config, layout, device
        self.teacher = teacher
        self.teacher_score = config.teacher.score or teacher_score
        self.replicas = replicas
        self.learning_rates = learning_rates
        self.learner = Learner(layout, config, device, replicas)
        self.curriculum = Curriculum(config, Schedules.of(config, learning_rates))
        self.guard = Guard(config, teacher is not None)
        self.num_timesteps = self.vector_steps = self.owed = 0
        self.last_metrics: dict[str, float] = {}
        self.on_metrics: Callable[[dict[str, float]], None] | None = None
        self.on_guard: Callable[[Event], None] | None = None

    @property
    def has_games(self) -> bool:
        """Whether there are games to play, and a replay to store them in."""
        return hasattr(self, "games")

    def play_in(self, games: Games) -> None:
        """Play ``games`` from now on: as many as before, with the same layout, if there were any.

        The caller resets them, or loads a checkpoint.
        """
        if self.has_games:
            self.collector.abandon()
            drivers = self.collector.source.drivers
            self.games, self.collector.source = games, self._source(games, drivers)
        else:
            self._prepare(games)

    def _prepare(self, games: Games) -> None:
        """Make the replay and the collector for ``games``."""
        config, layout, replicas = self.config, self.layout, self.replicas
        replay_seed, drivers_seed = seeds_of(config.run.seed)
        self.games = games
        self.replay = make_replay(config, layout, games.num_games, replay_seed, self.device)
        self.replay.highest = replicas.highest
        self.update = make_update(self.learner, self.replay)
        drivers = Drivers(
            games.num_games * replicas.size,
            config.teacher,
            config.exploration,
            drivers_seed,
            layout,
            slice(replicas.rank, None, replicas.size),
        )
        source = self._source(games, drivers)
        self.collector = Collector(
            source, self.replay, layout.fire_and_zap, replicas, config.teacher.death_labels
        )
        self.throughput = Throughput(config.learner.batch_size * replicas.size)

    def _source(self, games: Games, drivers: Drivers) -> Source:
        if isinstance(games, PlayedElsewhere):
            return games.source(self.learner, drivers)
        drivers_seed = seeds_of(self.config.run.seed)[1]
        labeller = make_labeller(self.config, games, drivers_seed)
        return LocalSource(games, self.learner.act, self.teacher, drivers, labeller)

    def plan(self, config: Config) -> None:
        """Restart the schedules as ``config`` has them; the number of steps may be another."""
        self.config = config
        self.curriculum.schedules = Schedules.of(config, self.learning_rates)

    def play(self) -> Played:
        """Play and store one decision of every game; write a log row if one is scheduled."""
        before = self.num_timesteps
        played = self.collector.collect(self.expert_ratio(before), self.curriculum.epsilon(before))
        self.num_timesteps += self.games.num_games * self.replicas.size
        self.vector_steps += 1
        self.curriculum.observe(self.num_timesteps, self.collector.history, self.teacher_score)
        if self.vector_steps % self.config.learner.train_freq == 0:
            self.owed = self.config.learner.gradient_steps
        every = self.config.run.log_interval
        if self.num_timesteps // every != before // every:
            self.write_metrics()
        return played

    @property
    def can_learn(self) -> bool:
        """Whether the replay has rows enough to learn from."""
        replay = self.replay
        most = replay.num_envs * (replay.length - 1)
        return len(replay) >= min(self.config.replay.learning_starts, most)

    def learn_owed(self, stops: Callable[[], bool] = lambda: False) -> bool:
        """Make the owed updates; none while the replay has too few rows to learn from.

        Args:
            stops: asked before each update; if true, the rest stays owed.

        Returns:
            Whether none is owed any more.
        """
        if self.owed and stops():
            return False
        owed, self.owed = self.owed, 0
        if not self.can_learn:
            return True
        step, remedies = self.num_timesteps, self.guard.remedies
        self.replay.set_n_steps(self.curriculum.n_steps(step))
        self.learner.target_clip = remedies.target_clip
        self.learner.measure_unit(self.replay.reward[: self.replay.filled])
        importance = self.curriculum.schedules.importance(step)
        learning_rate, imitation = self.learning_rate(step), self.imitation_gate()
        for left in reversed(range(remedies.updates(owed))):
            rows, errors = self.update(
                self.config.learner.batch_size * remedies.accumulation,
                importance,
                learning_rate,
                imitation,
                remedies.accumulation,
            )
            self.replay.update_priorities(rows, errors)
            if left and stops():
                self.owed = left * remedies.accumulation
                return False
        return True

    def write_metrics(self) -> None:
        """Write a log row, let the guard act on it, and restart the running metrics."""
        share_figures(self.replicas, self.collector, self.learner)
        # Identical on all ranks, to the last bit: the guard acts on it.
        row = self.replicas.gather(self._log_row())[0]
        for event in self.guard.observe(row):
            if self.on_guard is None:
                log.warning("%s", event)
            else:
                self.on_guard(event)
        self.last_metrics = row | self.guard.figures()
        if self.on_metrics is not None:
            self.on_metrics(self.last_metrics)

    def _log_row(self) -> dict[str, float]:
        step, updates, collector = self.num_timesteps, self.learner.updates, self.collector
        epsilon = collector.source.drivers.epsilon(self.curriculum.epsilon(step))
        row = {
            "steps": float(step),
            "updates": float(updates),
            "skipped_updates": float(self.learner.precision.skipped),
            "epsilon": float(epsilon.mean()),
            "imitation_gate": self.imitation_gate(),
            "return_bound": return_bound(collector.largest_reward, self.config.learner.gamma),
            "reward_unit": self.learner.unit,
            "replay_size": float(len(self.replay) * self.replicas.size),
            "replay_fill": self.replay.filled / self.replay.length,
        }
        row |= self.curriculum.figures(step)
        row |= {"expert_ratio": self.expert_ratio(step), "learning_rate": self.learning_rate(step)}
        row |= collector.read() | self.learner.figures()
        return row | self.throughput.read(step, collector.history.frames, updates)

    def restart_throughput(self) -> None:
        """Measure speeds from now on."""
        frames = self.collector.history.frames
        self.throughput.restart(self.num_timesteps, frames, self.learner.updates)

    def learning_rate(self, step: int) -> float:
        """Return the scheduled learning rate after ``step`` decisions, lowered by the guard."""
        return self.curriculum.learning_rate(step) * self.guard.remedies.learning_rate

    def expert_ratio(self, step: int) -> float:
        """Return the teacher's share after ``step`` decisions, raised by the guard."""
        return max(self.curriculum.expert_ratio(step), self.guard.remedies.expert_ratio)

    def imitation_gate(self) -> float:
        """Return the weight of imitation: 0 without a teacher or once the student plays as well."""
        if self.teacher is None:
            return 0.0
        score = self.collector.history.teacher_free_score
        return gate(score, self.teacher_score, self.config.learner.imitation_floor)

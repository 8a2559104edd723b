"""The environments of ``HybridDQN``, replay and drivers that fit them, and their turns of play."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.buffers import ReplayBuffer as SB3ReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.noise import ActionNoise
from stable_baselines3.common.type_aliases import RolloutReturn, TrainFreq
from stable_baselines3.common.vec_env import VecEnv

from tempest_agent.agent.collect.collector import Collector
from tempest_agent.agent.collect.drivers import Drivers
from tempest_agent.agent.collect.source import GamesInPlay, PlayedElsewhere, Source
from tempest_agent.agent.collect.throughput import Rates
from tempest_agent.agent.curriculum.curriculum import Curriculum
from tempest_agent.agent.replay.make_replay import make_replay
from tempest_agent.agent.seeds import seeds_of
from tempest_agent.agent.update.update import make_update
from tempest_agent.envs.api.sb3_vec_env import as_vec_env
from tempest_agent.errors import UserError, brief

from .episodes import Episodes

if TYPE_CHECKING:
    from .hybrid_dqn import HybridDQN


class Playing:
    """The part of ``HybridDQN`` that plays."""

    def _make_collector(self: HybridDQN) -> None:  # type: ignore[misc]
        """Replay and drivers for the games of the environment."""
        config, layout, num_games = self.config, self.layout, self.games.num_games
        replay_seed, drivers_seed = seeds_of(config.run.seed)
        self.replay = make_replay(config, layout, num_games, replay_seed, self.device)
        self.update = make_update(self.learner, self.replay)
        rank, size = self.replicas.rank, self.replicas.size
        self.replay.highest = self.replicas.highest
        drivers = Drivers(
            num_games * size,
            config.teacher,
            config.exploration,
            drivers_seed,
            layout,
            slice(rank, None, size),
        )
        self.collector = Collector(self._source(drivers), self.replay, layout.fire_and_zap)
        self.collector.history.replicas = self.replicas
        self.curriculum = Curriculum(config, drivers.free)
        self.curriculum.schedules = self.schedules
        self.curriculum.start_levels.apply(self.games)
        self.episodes = Episodes(num_games)
        self._rates = Rates(self.batch_size * size)

    def _source(self: HybridDQN, drivers: Drivers) -> Source:  # type: ignore[misc]
        """Who plays the present games."""
        if isinstance(self.games, PlayedElsewhere):
            return self.games.source(self.learner, drivers)
        return GamesInPlay(self.games, self.learner.act, self.teacher, drivers)

    def collect_rollouts(  # type: ignore[misc]
        self: HybridDQN,
        env: VecEnv,
        callback: BaseCallback,
        train_freq: TrainFreq,
        replay_buffer: SB3ReplayBuffer,
        action_noise: ActionNoise | None = None,
        learning_starts: int = 0,
        log_interval: int | None = None,
    ) -> RolloutReturn:
        """Play and store one decision of every game, then call the callbacks."""
        if self.owed:
            # The checkpoint we came from was taken between a decision and its updates, or these
            # were interrupted.
            self.train(self.owed, self.batch_size)
            if self.owed:
                return RolloutReturn(0, 0, False)
        callback.on_rollout_start()
        step = self.num_timesteps
        self.collector.collect(self.expert_ratio(step), self.curriculum.epsilon(step))
        self.num_timesteps += env.num_envs * self.replicas.size
        self.vector_steps += 1
        self.curriculum.observe(self.num_timesteps, self.collector, self.teacher_score)
        if self.vector_steps % self.config.learner.train_freq == 0:
            self.owed = self.config.learner.gradient_steps
        every = self.config.run.log_interval
        if self.num_timesteps // every != step // every:
            self.write_metrics()
        # SB3's callbacks read these by name.
        infos, dones, rewards = self._count_episodes()
        callback.update_locals(locals())
        going_on = callback.on_step()
        callback.on_rollout_end()
        return RolloutReturn(env.num_envs, 1, going_on)

    def predict(  # type: ignore[misc]
        self: HybridDQN,
        observation: NDArray[Any] | dict[str, NDArray[Any]],
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[Any] | None = None,
        deterministic: bool = False,
    ) -> tuple[Any, tuple[NDArray[Any], ...] | None]:
        """What to do.

        Args:
            observation: one ``(...)`` or N ``(N, ...)``, as the environment gives them.
            state: comes back as it is.
            episode_start: not used.
            deterministic: the greedy action; otherwise, as in SB3's DQN, a random one at
                ``exploration_rate``.

        Returns:
            One action, or N: an array where an action is one, else a list; and ``state``.
        """
        if not deterministic and np.random.rand() < self.exploration_rate:
            is_batch = self.policy.is_vectorized_observation(observation)
            count = len(observation) if is_batch else 1
            pairs = np.random.randint(self.layout.num_pairs, size=count)
            drawn = self.policy.form.each(pairs, np.random.uniform(-1.0, 1.0, count))
            return (drawn if is_batch else drawn[0]), state
        return self.policy.predict(observation, state, episode_start, deterministic)

    def set_env(self: HybridDQN, env: Any, force_reset: bool = True) -> None:  # type: ignore[misc]
        """Go on in ``env``, whose games begin anew at the next ``learn``.

        Args:
            env: as in the constructor, with the spaces and the number of the present one.
            force_reset: SB3's; new games always begin anew.

        Raises:
            UserError: other spaces, or another number of environments.
        """
        vec = self._wrap_env(as_vec_env(env), self.verbose)
        if (vec.observation_space, vec.action_space) != (self.observation_space, self.action_space):
            raise UserError(
                f"the model was made for {brief(self.observation_space)} and "
                f"{brief(self.action_space)}, not for "
                f"{brief(vec.observation_space)} and "
                f"{brief(vec.action_space)}; make a new one"
            )
        if self.env is None:
            run = dataclasses.replace(self.config.run, num_envs=vec.num_envs)
            self.config = dataclasses.replace(self.config, run=run)
        elif vec.num_envs != self.n_envs:
            raise UserError(
                f"the model plays {self.n_envs} environments, not {vec.num_envs}; give as many, or "
                "use HybridDQN.load(path, env)"
            )
        else:
            self.collector.interrupt()
        is_first = self.env is None
        self._move_to(vec)
        if is_first:
            self._make_collector()
        self.collector.source = self._source(self.collector.drivers)
        self.curriculum.start_levels.apply(self.games)

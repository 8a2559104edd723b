"""``HybridDQN``: the student as a Stable-Baselines3 algorithm.

Callbacks, logger, ``predict`` and ``evaluate_policy`` are SB3's.  Collecting and training are our
own: the games are played as one compiled batch, with a driver per segment, and every decision is
stored as it was executed.

One turn of ``learn`` is: play one decision of every game, store it, call the callbacks, then
update.  The updates that a decision has earned are themselves part of the state (``owed``), so a
checkpoint taken in any callback continues exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import MaybeCallback
from stable_baselines3.common.vec_env import VecEnv, unwrap_vec_normalize

from tempest_agent.agent.collect.collector import Collector
from tempest_agent.agent.collect.throughput import Rates
from tempest_agent.agent.curriculum.curriculum import Curriculum
from tempest_agent.agent.curriculum.schedules import Schedules
from tempest_agent.agent.dqn.games_vec_env import games_of
from tempest_agent.agent.games.env_games import EnvGames
from tempest_agent.agent.games.interface import Games, Labeller
from tempest_agent.agent.learner.imitation import gate
from tempest_agent.agent.learner.learner import Learner
from tempest_agent.agent.loop.memory_check import require_network
from tempest_agent.agent.networks.q_network import Layout
from tempest_agent.agent.replay.buffer import ReplayBuffer
from tempest_agent.agent.replicas import ALONE, Replicas
from tempest_agent.agent.update.update import Update
from tempest_agent.config import Config
from tempest_agent.envs.api.sb3_vec_env import as_vec_env
from tempest_agent.errors import UserError, brief
from tempest_agent.stability.guard import Event, Guard

from .persistence import Persistence
from .playing import Playing
from .policies import POLICIES, HybridPolicy, policy_class
from .reporting import Reporting
from .sb3_arguments import (
    RateSchedule,
    Source,
    base_config,
    check_callback,
    check_others,
    for_steps,
    fraction_of,
    in_names,
    names_of,
    table_of,
    with_arguments,
)


class HybridDQN(Persistence, Playing, Reporting, OffPolicyAlgorithm):
    """Double, dueling, n-step DQN over a discrete action and a continuous one, with a teacher.

    Used like any algorithm of Stable-Baselines3::

        HybridDQN("MlpQPolicy", env, learning_rate=1e-3, seed=0).learn(100_000)

    The value of each discrete action is a function of the continuous one (Lobel et al. 2023,
    "Q-functionals for value-based continuous control"), so the greedy action is exact (van Hasselt
    et al. 2016, "Deep reinforcement learning with double Q-learning"; Wang et al. 2016, "Dueling
    network architectures").  Arguments that are left out are what ``config`` says, and what it does
    not name either has the defaults of use as a library.

    Args:
        policy: ``"MlpQPolicy"``, ``"LaneQPolicy"`` (Tempest's features only) or such a class.
        env: a Gymnasium environment or its name, a vector environment of Gymnasium (with same-step
            autoreset) or of SB3, or ``GamesVecEnv``.  Observations are a ``Box``; actions a
            ``Dict`` or ``Tuple`` of one ``Discrete`` and one bounded ``Box`` with one number.
            None only for ``load``.
        learning_rate: step size of AdamW, constant unless ``config`` is a tree that names a
            schedule; or a function of the progress remaining (1 at the start, 0 at the end of
            ``learn``), kept as a table of 1,001 places.
        buffer_size: decisions that the replay keeps.
        learning_starts: decisions before the first update.
        batch_size: rows of an update.
        tau: share of the weights the target network takes over at a move.
        gamma: discount per decision.
        train_freq: steps of the vector environment between updates, or ``(number, "step")``.
        gradient_steps: updates each time; -1 for as many as decisions were played.
        n_steps: longest n-step return.
        target_update_interval: updates between two moves of the target network.
        exploration_fraction: share of ``learn`` over which exploration falls to its end; 0.1 where
            ``config`` does not give ``exploration.epsilon_steps`` either.
        exploration_initial_eps: exploration rate at the start.
        exploration_final_eps: exploration rate at the end, the same in all environments.
        max_grad_norm: gradient norm above which it is scaled down.
        policy_kwargs: settings of the network (``hidden`` or ``net_arch``, ``spinner_knots``, ...).
        stats_window_size: finished episodes that the logged means are over.
        tensorboard_log: folder for TensorBoard.
        verbose: 1 prints lines of figures.
        device: ``auto``, ``cpu`` or ``cuda``.
        seed: of everything random; the configuration's (1) if left out, never a random one.
        config: a tree of some settings; or a whole configuration, which names all of them: a
            ``Config``, or the name or file of one, as ``tempest-agent train`` takes it.
        teacher: labels states and drives its segments; None trains without one.
        teacher_score: mean score of the teacher, for the imitation gate; used if the
            configuration gives none.
        on_metrics: called with each line of metrics, every ``run.log_interval`` decisions.
        replicas: processes that train the same network, each with its own environments and its
            part of the rows (``data_parallel.join()``); all of them must call the same methods.

    Attributes:
        last_metrics: the last line of metrics.
        on_guard: called with all that the guard sees and does; None sends it to the log.
        interrupted: asked between updates whether to leave the rest of them for later.

    Raises:
        UserError: spaces or settings that cannot be, in one line that says what would do.
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {**POLICIES}

    config: Config
    layout: Layout
    games: Games
    teacher: Labeller | None
    on_metrics: Callable[[dict[str, float]], None] | None
    learner: Learner
    collector: Collector
    replay: ReplayBuffer
    update: Update
    policy: HybridPolicy
    curriculum: Curriculum
    owed: int
    _rates: Rates

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: Any,
        learning_rate: float | RateSchedule | None = None,
        buffer_size: int | None = None,
        learning_starts: int | None = None,
        batch_size: int | None = None,
        tau: float | None = None,
        gamma: float | None = None,
        train_freq: int | tuple[int, str] | None = None,
        gradient_steps: int | None = None,
        *,
        n_steps: int | None = None,
        target_update_interval: int | None = None,
        exploration_fraction: float | None = None,
        exploration_initial_eps: float | None = None,
        exploration_final_eps: float | None = None,
        max_grad_norm: float | None = None,
        policy_kwargs: Mapping[str, Any] | None = None,
        stats_window_size: int = 100,
        tensorboard_log: str | Path | None = None,
        verbose: int = 0,
        device: torch.device | str | None = None,
        seed: int | None = None,
        config: Source = None,
        teacher: Labeller | None = None,
        teacher_score: float = 1.0,
        on_metrics: Callable[[dict[str, float]], None] | None = None,
        replicas: Replicas = ALONE,
        _init_setup_model: bool = True,
    ) -> None:
        self.rate_table = table_of(learning_rate) if callable(learning_rate) else None
        arguments = {
            "learning_rate": self.rate_table or learning_rate,
            "buffer_size": buffer_size,
            "learning_starts": learning_starts,
            "batch_size": batch_size,
            "tau": tau,
            "gamma": gamma,
            "train_freq": train_freq,
            "gradient_steps": gradient_steps,
            "n_steps": n_steps,
            "target_update_interval": target_update_interval,
            "exploration_initial_eps": exploration_initial_eps,
            "exploration_final_eps": exploration_final_eps,
            "max_grad_norm": max_grad_norm,
            "device": device,
            "seed": seed,
        }
        check_others(
            device, stats_window_size, tensorboard_log, verbose, teacher, teacher_score, on_metrics
        )
        kind = policy_class(policy)
        base = base_config(config)
        super().__init__(
            kind,
            as_vec_env(env),
            learning_rate=base.learner.learning_rate,
            device=base.run.device if device is None else device,
            stats_window_size=stats_window_size,
            tensorboard_log=None if tensorboard_log is None else str(tensorboard_log),
            verbose=verbose,
            support_multi_env=True,
            sde_support=False,
        )
        num_envs = base.run.num_envs if self.env is None else self.n_envs
        self.config = with_arguments(base, config, arguments, policy_kwargs, num_envs, kind.encoder)
        self._names = names_of(arguments, policy_kwargs)
        self.exploration_fraction = fraction_of(exploration_fraction, config)
        self.replicas = replicas
        self.teacher = teacher
        self.teacher_score = self.config.teacher.score or teacher_score
        self.on_metrics = on_metrics
        self.on_guard: Callable[[Event], None] | None = None
        self.guard = Guard(self.config, teacher is not None)
        self.last_metrics: dict[str, float] = {}
        self.owed = 0
        self.interrupted: Callable[[], bool] = lambda: False
        self.vector_steps = 0
        self._show_settings()
        if _init_setup_model:
            self._setup_model()

    def _show_settings(self) -> None:
        """SB3's attributes as the configuration has them."""
        learner, replay = self.config.learner, self.config.replay
        self.learning_rate = learner.learning_rate
        self.buffer_size, self.learning_starts = replay.capacity, replay.learning_starts
        self.batch_size, self.n_steps = learner.batch_size, learner.n_steps
        self.tau, self.gamma = learner.tau, learner.gamma
        self.gradient_steps = learner.gradient_steps
        # One turn of SB3's loop is one step of the environments, whatever ``learner.train_freq``.
        self.train_freq = 1
        self.seed = self.config.run.seed

    def set_random_seed(self, seed: int | None = None) -> None:
        """Seed the generators of Python, NumPy, torch and the environments; None seeds nothing."""
        if seed is not None and seed >= 2**32:
            # NumPy's global generator, which SB3 seeds too, takes 32 bits.
            seed = int(np.random.SeedSequence(seed).generate_state(1)[0])
        super().set_random_seed(seed)

    def _setup_model(self) -> None:
        self._setup_lr_schedule()
        self._convert_train_freq()
        config = self.config
        if self.env is not None:
            self.games = games_of(self.env)
            self.layout = self.games.layout
        elif not hasattr(self, "layout"):
            raise UserError(
                "HybridDQN needs an environment to know what it observes and does: "
                "HybridDQN('MlpQPolicy', env)"
            )
        self.set_random_seed(config.run.seed)
        self.schedules = Schedules.of(self.config, self.rate_table)
        if config.network.encoder == "lanes" and not self.layout.lane_features:
            raise UserError(
                f"LaneQPolicy needs Tempest's features, and the observation is "
                f"{brief(self.observation_space)}; use MlpQPolicy"
            )
        try:
            require_network(config, self.layout.num_features, self.layout.num_pairs)
        except UserError as error:
            raise UserError(in_names(str(error), self._names)) from error
        self.learner = Learner(self.layout, config, self.device, self.replicas)
        policy: Any = self.policy_class(
            self.observation_space,
            self.action_space,
            self.lr_schedule,
            network=self.learner.followers.average,
            config=config,
        )
        self.policy = policy.to(self.device)
        if self.env is not None:
            self._make_collector()

    @property
    def schedules(self) -> Schedules:
        """Settings as functions of the decisions played; the curriculum may move them."""
        return self._schedules

    @schedules.setter
    def schedules(self, schedules: Schedules) -> None:
        self._schedules = schedules
        if hasattr(self, "curriculum"):
            self.curriculum.schedules = schedules

    def _setup_learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        reset_num_timesteps: bool = True,
        tb_log_name: str = "run",
        progress_bar: bool = False,
    ) -> tuple[int, BaseCallback]:
        if self.env is None:
            raise UserError("the model has no environment to learn in; call set_env(env) first")
        check_callback(callback)
        if reset_num_timesteps:
            self.config = for_steps(self.config, total_timesteps, self.exploration_fraction)
            self.schedules = Schedules.of(self.config, self.rate_table)
        begins = reset_num_timesteps or self._last_obs is None
        if begins:
            # SB3 resets the games now; no return may reach from the old games into the new.
            self.collector.interrupt()
            self.curriculum.start_levels.forget()
        result = super()._setup_learn(
            total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar
        )
        self.guard.facts = self.guard.facts.for_steps(self.config, self._total_timesteps)
        if begins:
            self.episodes.begin()
            if isinstance(self.games, EnvGames):
                self.games.begin(self._last_obs)
        return result

    @property
    def exploration_rate(self) -> float:
        """Exploration rate of the least curious environment."""
        lowest = self.config.exploration.epsilon_min
        return max(self.schedules.epsilon(self.num_timesteps), lowest)

    def _move_to(self, env: VecEnv) -> None:
        self.env, self.n_envs = env, env.num_envs
        self._vec_normalize_env = unwrap_vec_normalize(env)
        self.games = games_of(env)
        self._go_on_from(None)

    def _go_on_from(self, observation: NDArray[Any] | None) -> None:
        """What SB3 believes was seen last; it resets the environments where that is None."""
        self._last_obs = observation

    def train(self, gradient_steps: int, batch_size: int) -> None:
        """The updates that the last decisions have earned, once there is enough to learn from.

        Those that are left where ``interrupted`` says so stay owed.
        """
        if len(self.replay) < min(
            self.config.replay.learning_starts, self.replay.num_envs * (self.replay.length - 1)
        ):
            self.owed = 0
            return
        step = self.num_timesteps
        weight, curriculum = self.imitation_gate(), self.curriculum
        self.replay.set_n_steps(curriculum.n_steps(step))
        remedies = self.guard.remedies
        self.learner.target_clip = remedies.target_clip
        while self.owed and not self.interrupted():
            self.owed -= 1
            for _ in range(remedies.updates(1)):
                rows, errors = self.update(
                    batch_size * remedies.accumulation,
                    curriculum.schedules.importance(step),
                    self.learning_rate_at(step),
                    weight,
                    remedies.accumulation,
                )
                self.replay.update_priorities(rows, errors)
        self._n_updates = self.learner.updates
        self.policy.step = step

    def learning_rate_at(self, step: int) -> float:
        """Step size after ``step`` decisions: that of the schedule, lowered by the guard."""
        return self.curriculum.learning_rate(step) * self.guard.remedies.learning_rate

    def expert_ratio(self, step: int) -> float:
        """The teacher's share after ``step`` decisions: the schedule's, or the guard's larger."""
        return max(self.curriculum.expert_ratio(step), self.guard.remedies.expert_ratio)

    def imitation_gate(self) -> float:
        """Weight of imitation: 0 without a teacher or once the student plays as well."""
        if self.teacher is None:
            return 0.0
        floor = self.config.learner.imitation_floor
        return gate(self.collector.free_score, self.teacher_score, floor)

"""``HybridDQN``: the training loop as a Stable-Baselines3 algorithm.

Callbacks, logger, ``predict`` and ``evaluate_policy`` are SB3's.  Playing, storing and learning are
``TrainingLoop``'s, which plays a compiled batch of games directly.  One turn of ``learn`` is: play
one decision of every game, store it, call the callbacks, then update.
"""

from __future__ import annotations

import io
import pathlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.buffers import ReplayBuffer as SB3ReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.noise import ActionNoise
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import MaybeCallback, RolloutReturn, TrainFreq
from stable_baselines3.common.utils import get_system_info
from stable_baselines3.common.vec_env import VecEnv, unwrap_vec_normalize
from typing_extensions import Self

from tempest_agent.agent.collect.source import Played
from tempest_agent.agent.games.env_games import EnvGames
from tempest_agent.agent.games.interface import Teacher
from tempest_agent.agent.games.spaces import spaces_to
from tempest_agent.agent.learner.learner import Learner
from tempest_agent.agent.learner.weights import parameters_of, put_parameters
from tempest_agent.agent.loop.memory_check import require_network
from tempest_agent.agent.loop.state import state_dict
from tempest_agent.agent.loop.training_loop import TrainingLoop
from tempest_agent.agent.networks.layout import Layout
from tempest_agent.agent.replicas import ALONE, Replicas
from tempest_agent.agent.seeds import generator_seed
from tempest_agent.config import Config, teaches_policy
from tempest_agent.envs.api.sb3_vec_env import as_vec_env
from tempest_agent.errors import UserError, brief

from .episodes import Episodes
from .games_vec_env import games_of
from .policies import POLICIES, HybridPolicy, policy_class
from .saving import load_model, load_replay, parameters_in, save_model, save_replay
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


class HybridDQN(OffPolicyAlgorithm):
    """Double, dueling, n-step DQN over a discrete action and a continuous one, with a teacher.

    Used like any algorithm of Stable-Baselines3::

        HybridDQN("MlpQPolicy", env, learning_rate=1e-3, seed=0).learn(100_000)

    The value of each discrete action is a function of the continuous one (Lobel et al. 2023,
    "Q-functionals for value-based continuous control"), so the greedy action is exact (van Hasselt
    et al. 2016, "Deep reinforcement learning with double Q-learning"; Wang et al. 2016, "Dueling
    network architectures").  Arguments that are left out come from ``config``; what it does not
    name has the defaults of use as a library.

    Args:
        policy: ``"MlpQPolicy"``, ``"LaneQPolicy"`` (Tempest's features only) or such a class.
        env: a Gymnasium environment or its name, a vector environment of Gymnasium (with same-step
            autoreset) or of SB3, or ``GamesVecEnv``.  Observations are a ``Box``; actions a
            ``Dict`` or ``Tuple`` of one ``Discrete`` and one bounded ``Box`` with one number.
            None only for ``load``.
        learning_rate: step size of AdamW, constant unless ``config`` is a tree that names a
            schedule; or a function of the progress remaining (1 at the start, 0 at the end of
            ``learn``), kept as a table of 1,001 values.
        buffer_size: capacity of the replay, in decisions.
        learning_starts: decisions before the first update.
        batch_size: rows per update.
        tau: share of the online weights copied to the target network at a move.
        gamma: discount per decision.
        train_freq: steps of the vector environment between updates, or ``(number, "step")``.
        gradient_steps: updates each time; -1 for one per decision played.
        n_steps: longest n-step return.
        target_update_interval: updates between two moves of the target network.
        exploration_fraction: share of ``learn`` over which exploration falls to its end; 0.1 if
            ``config`` does not give ``exploration.epsilon_steps``.
        exploration_initial_eps: exploration rate at the start.
        exploration_final_eps: exploration rate at the end, identical in all environments.
        max_grad_norm: norm to which larger gradients are clipped.
        policy_kwargs: settings of the network (``hidden`` or ``net_arch``, ``spinner_knots``, ...).
        stats_window_size: finished episodes that logged means cover.
        tensorboard_log: folder for TensorBoard.
        verbose: 1 prints log rows.
        device: ``auto``, ``cpu`` or ``cuda``.
        seed: of everything random; the configuration's (1) if left out, never a random one.
        config: a tree of some settings; or a whole configuration: a ``Config``, or its name or
            file, as ``tempest-agent train`` takes it.
        teacher: labels states and drives its segments; None trains without one.
        teacher_score: mean score of the teacher, for the imitation gate, if the configuration gives
            none.
        on_metrics: called with each log row, every ``run.log_interval`` decisions.
        replicas: processes that train the same network, each with its own environments and its
            part of the rows (``process_group.join()``); all must call the same methods.

    Attributes:
        loop: plays, stores and learns (``TrainingLoop``).
        learner: the networks and their optimiser.

    Raises:
        UserError: spaces or settings that cannot work, in one line that says what would.
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {**POLICIES}

    config: Config
    layout: Layout | None
    policy: HybridPolicy
    loop: TrainingLoop
    learner: Learner
    episodes: Episodes

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
        tensorboard_log: str | pathlib.Path | None = None,
        verbose: int = 0,
        device: torch.device | str | None = None,
        seed: int | None = None,
        config: Source = None,
        teacher: Teacher | None = None,
        teacher_score: float = 1.0,
        on_metrics: Callable[[dict[str, float]], None] | None = None,
        replicas: Replicas = ALONE,
        _init_setup_model: bool = True,
    ) -> None:
        rates = table_of(learning_rate) if callable(learning_rate) else None
        arguments = {
            "learning_rate": rates or learning_rate,
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
        self.on_metrics = on_metrics
        self.layout = None
        self._for_loop: dict[str, Any] = {
            "teacher": teacher,
            "teacher_score": teacher_score,
            "replicas": replicas,
            "learning_rates": rates,
        }
        self._show_settings()
        if _init_setup_model:
            self._setup_model()

    def _show_settings(self) -> None:
        """Set SB3's attributes as the configuration has them."""
        learner, replay = self.config.learner, self.config.replay
        self.learning_rate = learner.learning_rate
        self.buffer_size, self.learning_starts = replay.capacity, replay.learning_starts
        self.batch_size, self.n_steps = learner.batch_size, learner.n_steps
        self.tau, self.gamma = learner.tau, learner.gamma
        self.gradient_steps = learner.gradient_steps
        # One turn of SB3's loop is one step of the environments, whatever ``learner.train_freq``.
        self.train_freq = 1
        self.seed = self.config.run.seed

    def _setup_model(self) -> None:
        self._setup_lr_schedule()
        self._convert_train_freq()
        games = None if self.env is None else games_of(self.env)
        if games is not None:
            self.layout = games.layout
        if self.layout is None:
            raise UserError(
                "HybridDQN needs an environment to know what it observes and does: "
                "HybridDQN('MlpQPolicy', env)"
            )
        self.set_random_seed(self.config.run.seed)
        if self.config.network.encoder == "lanes" and not self.layout.lane_features:
            raise UserError(
                f"LaneQPolicy needs Tempest's features, and the observation is "
                f"{brief(self.observation_space)}; use MlpQPolicy"
            )
        try:
            require_network(self.config, self.layout.num_features, self.layout.num_pairs)
        except UserError as error:
            raise UserError(in_names(str(error), self._names)) from error
        self.loop = TrainingLoop(self.config, self.layout, self.device, **self._for_loop)
        self.loop.on_metrics = self._log
        self.learner = self.loop.learner
        policy: Any = self.policy_class(
            self.observation_space,
            self.action_space,
            self.lr_schedule,
            network=self.learner.followers.average,
            config=self.config,
        )
        self.policy = policy.to(self.device)
        if games is not None:
            self.loop.play_in(games)
            self.episodes = Episodes(games.num_games)

    def set_random_seed(self, seed: int | None = None) -> None:
        """Seed the generators of Python, NumPy, torch and the environments; None seeds nothing."""
        super().set_random_seed(None if seed is None else generator_seed(seed))

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
        taught = teaches_policy(self.config, self.loop.teacher is not None)
        if self.learner.online.acts_by_policy and not taught:
            raise UserError(
                "its policy head plays (network.acts=policy), and nothing teaches it in this "
                "environment; train it on GamesVecEnv(TempestGames(...)), or with tempest-agent "
                "train --from FILE"
            )
        check_callback(callback)
        loop = self.loop
        if reset_num_timesteps:
            self.config = for_steps(self.config, total_timesteps, self.exploration_fraction)
            loop.plan(self.config)
        resets_games = reset_num_timesteps or self._last_obs is None
        if resets_games:
            loop.collector.abandon()
        result = super()._setup_learn(
            total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar
        )
        loop.num_timesteps = self.num_timesteps
        loop.guard.facts = loop.guard.facts.for_steps(self.config, self._total_timesteps)
        if resets_games:
            self.episodes.reset()
            if isinstance(loop.games, EnvGames):
                loop.games.begin(self._last_obs)
        return result

    def collect_rollouts(
        self,
        env: VecEnv,
        callback: BaseCallback,
        train_freq: TrainFreq,
        replay_buffer: SB3ReplayBuffer,
        action_noise: ActionNoise | None = None,
        learning_starts: int = 0,
        log_interval: int | None = None,
    ) -> RolloutReturn:
        """Play and store one decision of every game, then call the callbacks."""
        if self.loop.owed:
            self.train(self.loop.owed, self.batch_size)
        callback.on_rollout_start()
        played = self.loop.play()
        self.num_timesteps = self.loop.num_timesteps
        # SB3's callbacks read these by name.
        infos = self._count_episodes(played)
        dones, rewards = played.step.game_over, played.step.reward
        callback.update_locals(locals())
        continues = callback.on_step()
        callback.on_rollout_end()
        return RolloutReturn(env.num_envs, 1, continues)

    def train(self, gradient_steps: int, batch_size: int) -> None:
        """Make the updates that the last decisions have earned; the arguments are SB3's."""
        self.loop.learn_owed()
        if self.loop.can_learn:
            self._n_updates = self.learner.updates
            self.policy.step = self.num_timesteps

    def _count_episodes(self, played: Played) -> list[dict[str, Any]]:
        """Return the infos ``(N,)`` of a decision, and count the episodes that it ended."""
        if played.abandoned is not None:
            self.episodes.reset(played.abandoned.games)
        games, step = self.loop.games, played.step
        infos = self.episodes.infos(step, games.infos if isinstance(games, EnvGames) else None)
        if step.game_over.any():
            self._update_info_buffer(infos, step.game_over)
            self._episode_num += int(np.count_nonzero(step.game_over))
        return infos

    def _log(self, row: dict[str, float]) -> None:
        """Pass a log row to SB3's logger, with what all its algorithms log, and to the user."""
        self.num_timesteps = self.loop.num_timesteps
        if hasattr(self, "_logger"):
            for name, value in row.items():
                self.logger.record(f"train/{name}", value)
            for name, key in (("ep_rew_mean", "r"), ("ep_len_mean", "l")):
                if self.ep_info_buffer:
                    mean = np.mean([episode[key] for episode in self.ep_info_buffer])
                    self.logger.record(f"rollout/{name}", float(mean))
            self.logger.record("rollout/exploration_rate", self.exploration_rate)
            self.logger.record("time/episodes", self._episode_num, exclude="tensorboard")
            self.logger.record("time/total_timesteps", self.num_timesteps, exclude="tensorboard")
            self.logger.dump(self.num_timesteps)
        if self.on_metrics is not None:
            self.on_metrics(row)

    def dump_logs(self) -> None:
        """Do nothing: SB3 logs by number of episodes, this by number of decisions."""

    @property
    def exploration_rate(self) -> float:
        """Exploration rate of the environment that explores least."""
        lowest = self.config.exploration.epsilon_min
        return max(self.loop.curriculum.schedules.epsilon(self.num_timesteps), lowest)

    def predict(
        self,
        observation: NDArray[Any] | dict[str, NDArray[Any]],
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[Any] | None = None,
        deterministic: bool = False,
    ) -> tuple[Any, tuple[NDArray[Any], ...] | None]:
        """Choose an action.

        Args:
            observation: one ``(...)`` or N ``(N, ...)``, as the environment gives them.
            state: returned unchanged.
            episode_start: not used.
            deterministic: the greedy action; otherwise, as in SB3's DQN, a random one at
                ``exploration_rate``.

        Returns:
            One action, or N: an array where an action is one, else a list; and ``state``.
        """
        if not deterministic and np.random.rand() < self.exploration_rate:
            is_batch = self.policy.is_vectorized_observation(observation)
            count = len(observation) if is_batch else 1
            pairs = np.random.randint(self.learner.layout.num_pairs, size=count)
            drawn = self.policy.form.each(pairs, np.random.uniform(-1.0, 1.0, count))
            return (drawn if is_batch else drawn[0]), state
        return self.policy.predict(observation, state, episode_start, deterministic)

    def set_env(self, env: Any, force_reset: bool = True) -> None:
        """Continue in ``env``, whose games are reset at the next ``learn``.

        Args:
            env: as in the constructor, with the same spaces and number of environments.
            force_reset: SB3's; the games are always reset.

        Raises:
            UserError: other spaces, or another number of environments.
        """
        vec = self._wrap_env(as_vec_env(env), self.verbose)
        if (vec.observation_space, vec.action_space) != (self.observation_space, self.action_space):
            raise UserError(
                f"the model was made for {brief(self.observation_space)} and "
                f"{brief(self.action_space)}, not for {brief(vec.observation_space)} and "
                f"{brief(vec.action_space)}; make a new one"
            )
        if self.env is None:
            run = replace(self.config.run, num_envs=vec.num_envs)
            self.config = self.loop.config = replace(self.config, run=run)
            self.episodes = Episodes(vec.num_envs)
        elif vec.num_envs != self.n_envs:
            raise UserError(
                f"the model plays {self.n_envs} environments, not {vec.num_envs}; give as many, or "
                "use HybridDQN.load(path, env)"
            )
        self.env, self.n_envs = vec, vec.num_envs
        self._vec_normalize_env = unwrap_vec_normalize(vec)
        self._last_obs = None
        self.loop.play_in(games_of(vec))

    def save(
        self,
        path: str | pathlib.Path | io.BufferedIOBase,
        exclude: Iterable[str] | None = None,
        include: Iterable[str] | None = None,
    ) -> None:
        """Write a checkpoint without the replay to ``path`` (not SB3's pickled zip).

        Args:
            path: gets ``.pt`` if it has no suffix.
            exclude: SB3's; a checkpoint is always whole.
            include: SB3's; a checkpoint is always whole.

        Raises:
            UserError: ``path`` is no path, or cannot be written; the previous file stays.
        """
        spaces = spaces_to(self.observation_space, self.action_space)
        save_model(path, state_dict(self.loop, spaces, self.exploration_fraction))

    @classmethod
    def load(
        cls,
        path: str | pathlib.Path | io.BufferedIOBase,
        env: Any = None,
        device: torch.device | str = "auto",
        custom_objects: dict[str, Any] | None = None,
        print_system_info: bool = False,
        force_reset: bool = True,
        **kwargs: Any,
    ) -> Self:
        """Load the model of a checkpoint of ``save`` or ``tempest-agent train``, or a player.

        ``learn(..., reset_num_timesteps=False)`` then continues with the schedules of the file.
        The replay is not in it: it fills up first, unless ``load_replay_buffer`` restores it.

        Args:
            path: with or without ``.pt``.
            env: as in the constructor, with the spaces that the model was trained with and any
                number of environments.  Without one the model can ``predict``, and learn after
                ``set_env``.
            device: ``auto``, ``cpu`` or ``cuda``.
            custom_objects: SB3's; there are no objects in the file.
            print_system_info: SB3's; prints this machine's versions.
            force_reset: SB3's; the games are reset at the next ``learn``.
            **kwargs: other arguments of the constructor, instead of those in the file.

        Raises:
            UserError: no such file, a damaged one, or one that does not fit ``env`` or ``kwargs``.
        """
        if print_system_info:
            get_system_info()
        model: Self = load_model(cls, path, env, device, kwargs)
        return model

    def get_parameters(self) -> dict[str, dict[str, Any]]:
        """Return copies of the states of ``online``, ``target``, ``average`` and ``optimizer``.

        ``average`` is the network that plays.
        """
        return parameters_of(self.learner)

    def set_parameters(
        self,
        load_path_or_dict: str | pathlib.Path | Mapping[str, Any],
        exact_match: bool = True,
        device: torch.device | str = "auto",
    ) -> None:
        """Load weights; nothing is changed unless all of them fit.

        If networks are given without ``optimizer``, its moments are reset: those of other weights
        would disturb the new ones.  Of the networks that are not given, target and average copy
        ``online``, or all copy the only one given.

        Args:
            load_path_or_dict: what ``get_parameters`` returned, or the path of a checkpoint.
            exact_match: whether all four entries are required.
            device: SB3's; weights go to the model's device.

        Raises:
            UserError: missing or unknown entries, or weights of another shape.
        """
        put_parameters(self.learner, parameters_in(load_path_or_dict), exact_match)

    def save_replay_buffer(self, path: str | pathlib.Path | io.BufferedIOBase) -> None:
        """Write the replay's rows to ``path``, an archive of plain arrays (NumPy's ``.npz``).

        Raises:
            UserError: ``path`` is no path or cannot be written, or there is no replay.
        """
        save_replay(self.loop, path)

    def load_replay_buffer(
        self,
        path: str | pathlib.Path | io.BufferedIOBase,
        truncate_last_traj: bool = True,
    ) -> None:
        """Read what ``save_replay_buffer`` wrote; unfinished episodes then end with a bootstrap.

        Args:
            path: of the file.
            truncate_last_traj: SB3's; always so.

        Raises:
            UserError: no such file, or a replay of another shape; the present one is kept.
        """
        load_replay(self.loop, path)

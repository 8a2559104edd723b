"""``HybridDQN``: the student as a Stable-Baselines3 algorithm.

Callbacks, logger, ``predict`` and ``evaluate_policy`` are SB3's.  Collecting and training are our
own: the games are played as one compiled batch, with a driver per segment, and every decision is
stored as it was executed.

One turn of ``learn`` is: play one decision of every game, store it, call the callbacks, then
update.  The updates that a decision has earned are themselves part of the state (``owed``), so a
checkpoint taken in any callback continues exactly.
"""

from __future__ import annotations

import io
import logging
import pathlib
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.buffers import ReplayBuffer as SB3ReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.noise import ActionNoise
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import MaybeCallback, RolloutReturn, TrainFreq
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from tempest_agent.config import Config, to_dict
from tempest_agent.errors import UserError

from .actions import BUTTON_PAIRS
from .alarms import alarms
from .checkpoint import write_checkpoint
from .collector import Collector
from .curriculum import Curriculum
from .drivers import Drivers
from .games import Labeller
from .imitation import gate
from .learner import Learner
from .networks import QNetwork
from .rates import Rates
from .replay import ReplayBuffer
from .replay_storage import make_replay
from .schedules import Schedules
from .targets import choose, return_bound
from .vec_env import GamesVecEnv

log = logging.getLogger("tempest_agent")


class HybridPolicy(BasePolicy):
    """The averaged network behind SB3's policy interface; greedy, whatever ``deterministic``."""

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        lr_schedule: Callable[[float], float],
        network: QNetwork,
    ) -> None:
        super().__init__(observation_space, action_space)
        self.network = network

    def _predict(self, observation: Any, deterministic: bool = False) -> Tensor:
        heads = self.network(observation)
        # The games drop a zap that would do nothing, so all pairs may be asked for.
        legal = torch.ones(
            heads.values.shape[0], BUTTON_PAIRS, dtype=torch.bool, device=heads.values.device
        )
        choice = choose(self.network, heads, legal)
        fire = (choice.pair % 2).float() * 2.0 - 1.0
        zap = (choice.pair // 2).float() * 2.0 - 1.0
        return torch.stack((fire, zap, choice.position), dim=1)


class HybridDQN(OffPolicyAlgorithm):
    """Double, dueling, n-step DQN over button pairs and a spinner axis, with a teacher.

    Args:
        env: the games to train on.
        config: all settings.
        teacher: labels states and drives its segments; None trains without one.
        teacher_score: mean score of the teacher, for the imitation gate; used if the
            configuration gives none.
        on_metrics: called with each line of metrics, every ``run.log_interval`` decisions.

    Attributes:
        last_metrics: the last line of metrics.
    """

    learner: Learner
    collector: Collector
    replay: ReplayBuffer
    curriculum: Curriculum

    def __init__(
        self,
        env: GamesVecEnv,
        config: Config,
        teacher: Labeller | None = None,
        teacher_score: float = 1.0,
        on_metrics: Callable[[dict[str, float]], None] | None = None,
    ) -> None:
        if not isinstance(env, GamesVecEnv):
            raise UserError(
                f"HybridDQN trains on a GamesVecEnv, not on {type(env).__name__}; wrap the games: "
                "GamesVecEnv(TempestGames(...))"
            )
        self.config = config
        self.teacher = teacher
        self.teacher_score = config.teacher.score or teacher_score
        self.on_metrics = on_metrics
        self.last_metrics: dict[str, float] = {}
        self.owed = 0
        self.vector_steps = 0
        learner = config.learner
        super().__init__(
            HybridPolicy,
            env,
            learning_rate=learner.learning_rate,
            buffer_size=config.replay.capacity,
            learning_starts=config.replay.learning_starts,
            batch_size=learner.batch_size,
            tau=learner.tau,
            gamma=learner.gamma,
            train_freq=1,
            gradient_steps=learner.gradient_steps,
            n_steps=learner.n_steps,
            device=config.run.device,
            support_multi_env=True,
            sde_support=False,
            seed=config.run.seed,
            supported_action_spaces=(spaces.Box,),
        )
        self._setup_model()

    def _setup_model(self) -> None:
        self._setup_lr_schedule()
        self._convert_train_freq()
        config = self.config
        seeds = np.random.SeedSequence(config.run.seed).generate_state(3)
        self.set_random_seed(config.run.seed)
        env = self.env
        if not isinstance(env, GamesVecEnv):
            raise UserError("HybridDQN was given no games; pass a GamesVecEnv")
        self.learner = Learner(env.games.layout, config, self.device)
        self.replay = make_replay(
            config, env.games.layout, env.num_envs, int(seeds[0]), self.device
        )
        drivers = Drivers(env.num_envs, config.teacher, config.exploration, int(seeds[1]))
        self.collector = Collector(env.games, self.learner.act, self.teacher, drivers, self.replay)
        self.curriculum = Curriculum(config, drivers.free)
        self.curriculum.start_levels.apply(env.games)
        self.policy = HybridPolicy(
            self.observation_space,
            self.action_space,
            self.lr_schedule,
            network=self.learner.followers.average,
        ).to(self.device)
        self._rates = Rates(self.batch_size)

    def _setup_learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        reset_num_timesteps: bool = True,
        tb_log_name: str = "run",
        progress_bar: bool = False,
    ) -> tuple[int, BaseCallback]:
        if reset_num_timesteps:
            # SB3 resets the games now; no return may reach from the old games into the new.
            self.collector.interrupt()
            self.curriculum.start_levels.forget()
        return super()._setup_learn(
            total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar
        )

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
        if self.owed:
            # The checkpoint we came from was taken between a decision and its updates.
            self.train(self.owed, self.batch_size)
        callback.on_rollout_start()
        step = self.num_timesteps
        self.collector.collect(self.curriculum.expert_ratio(step), self.curriculum.epsilon(step))
        self.num_timesteps += env.num_envs
        self.vector_steps += 1
        self.curriculum.observe(self.num_timesteps, self.collector, self.teacher_score)
        if self.vector_steps % self.config.learner.train_freq == 0:
            self.owed = self.config.learner.gradient_steps
        every = self.config.run.log_interval
        if self.num_timesteps // every != step // every:
            self.write_metrics()
        callback.update_locals(locals())
        going_on = callback.on_step()
        callback.on_rollout_end()
        return RolloutReturn(env.num_envs, 1, going_on)

    def train(self, gradient_steps: int, batch_size: int) -> None:
        """The updates that the last decisions have earned, once there is enough to learn from."""
        due, self.owed = self.owed, 0
        if len(self.replay) < min(
            self.config.replay.learning_starts, self.replay.num_envs * (self.replay.length - 1)
        ):
            return
        step = self.num_timesteps
        weight, curriculum = self.imitation_gate(), self.curriculum
        self.replay.set_n_steps(curriculum.n_steps(step))
        for _ in range(due):
            batch = self.replay.sample(batch_size, curriculum.schedules.importance(step))
            errors = self.learner.update(batch, curriculum.learning_rate(step), weight)
            self.replay.update_priorities(batch.rows, errors)
            ages = self.replay.ages(batch.rows)
            self.learner.metrics.mean("sample_age", torch.as_tensor(ages).double().mean())
            self.learner.metrics.highest("sample_age_max", torch.as_tensor(ages).max())
        self._n_updates = self.learner.updates

    def imitation_gate(self) -> float:
        """Weight of imitation: 0 without a teacher or once the student plays as well."""
        if self.teacher is None:
            return 0.0
        return gate(self.collector.free_score, self.teacher_score)

    def write_metrics(self) -> dict[str, float]:
        """One line of metrics to the logger and to ``on_metrics``; running figures begin anew."""
        step, updates = self.num_timesteps, self.learner.updates
        figures: dict[str, float] = {
            "steps": float(step),
            "updates": float(updates),
            "skipped_updates": float(self.learner.accumulator.skipped),
            "epsilon": float(self.collector.drivers.epsilon(self.curriculum.epsilon(step)).mean()),
            "imitation_gate": self.imitation_gate(),
            "return_bound": return_bound(self.collector.largest_reward, self.gamma),
            "replay_size": float(len(self.replay)),
            "replay_fill": self.replay.filled / self.replay.length,
        }
        figures |= self.curriculum.figures(step)
        figures |= self.collector.read() | self.learner.metrics.read()
        figures |= self._rates.read(step, self.collector.history.frames, updates)
        self.last_metrics = figures
        for alarm in alarms(figures):
            log.warning("at %d decisions: %s", step, alarm)
        if hasattr(self, "_logger"):
            for name, value in figures.items():
                self.logger.record(f"train/{name}", value)
            self.logger.dump(step)
        if self.on_metrics is not None:
            self.on_metrics(figures)
        return figures

    def dump_logs(self) -> None:
        """SB3 asks for a line by number of episodes; ours come by number of decisions."""

    def state_dict(self) -> dict[str, Any]:
        """Everything an exact continuation needs besides the rows of the replay."""
        layout = self.learner_layout()
        return {
            "config": to_dict(self.config),
            "layout": layout,
            "step": self.num_timesteps,
            "vector_steps": self.vector_steps,
            "owed": self.owed,
            "teacher_score": self.teacher_score,
            "schedules": self.curriculum.schedules.to_dict(),
            "curriculum": self.curriculum.state_dict(),
            "learner": self.learner.state_dict(),
            "collector": self.collector.state_dict(),
            "replay": self.replay.state_dict(),
            "teacher": {} if self.teacher is None else self.teacher.state_dict(),
            "random": {
                "torch": torch.get_rng_state(),
                "numpy": np.random.get_state(legacy=False),
                "python": random.getstate(),
            },
        }

    def learner_layout(self) -> dict[str, int]:
        """The layout of the observation, as data."""
        env = self.env
        assert isinstance(env, GamesVecEnv)
        layout = env.games.layout
        return {
            "num_features": layout.num_features,
            "lane_features": layout.lane_features,
            "lane_exists": layout.lane_exists,
        }

    def load_state_dict(
        self, state: dict[str, Any], replay: dict[str, NDArray[Any]] | None
    ) -> None:
        """Go on from ``state_dict``; without ``replay`` the buffer fills up anew first."""
        self.curriculum.schedules = Schedules.from_dict(state["schedules"], self.config)
        if "curriculum" in state:
            self.curriculum.load_state_dict(state["curriculum"])
        self.curriculum.start_levels.apply(self.collector.games)
        self.learner.load_state_dict(state["learner"])
        self.collector.load_state_dict(state["collector"], int(state["step"]))
        if self.teacher is not None and state.get("teacher"):
            self.teacher.load_state_dict(state["teacher"])
        if replay is None:
            self.replay.load_random(state["replay"])
        else:
            self.replay.load(replay, state["replay"])
        self.num_timesteps = int(state["step"])
        self.vector_steps = int(state["vector_steps"])
        self.owed = int(state["owed"])
        self.teacher_score = float(state["teacher_score"])
        self._n_updates = self.learner.updates
        torch.set_rng_state(state["random"]["torch"])
        numpy_state = state["random"]["numpy"]
        inner = {**numpy_state["state"], "key": np.asarray(numpy_state["state"]["key"])}
        np.random.set_state({**numpy_state, "state": inner})
        version, internal, gauss = state["random"]["python"]
        random.setstate((version, tuple(internal), gauss))
        self._rates.restart(self.num_timesteps, self.collector.history.frames, self.learner.updates)
        # SB3 resets the games at the first learn() unless it believes to be in the middle.
        env = self.env
        assert isinstance(env, GamesVecEnv)
        self._last_obs = env.games.observe().astype(np.float32) / np.float32(127.0)

    def save(
        self,
        path: str | pathlib.Path | io.BufferedIOBase,
        exclude: Any = None,
        include: Any = None,
    ) -> None:
        """Write a checkpoint without the replay to ``path`` (not SB3's pickled zip)."""
        if not isinstance(path, str | pathlib.Path):
            raise UserError("HybridDQN.save needs a path; a checkpoint is written whole or not")
        write_checkpoint(pathlib.Path(path), self.state_dict())

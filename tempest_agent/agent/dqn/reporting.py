"""What ``HybridDQN`` tells: lines of metrics, SB3's figures of episodes, what the guard sees."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.agent.games.env_games import EnvGames
from tempest_agent.agent.learner.update_metrics import return_bound
from tempest_agent.agent.ranks.rank_figures import share_figures

if TYPE_CHECKING:
    from .hybrid_dqn import HybridDQN

log = logging.getLogger("tempest_agent")


class Reporting:
    """The part of ``HybridDQN`` that counts and logs."""

    def _count_episodes(  # type: ignore[misc]
        self: HybridDQN,
    ) -> tuple[list[dict[str, Any]], NDArray[np.bool_], NDArray[np.float32]]:
        """Infos ``(N,)``, ends and rewards of the last decision."""
        played = self.collector.last
        assert played is not None
        step = played.step
        if played.left is not None:
            self.episodes.begin(played.left.games)
        given = self.games.infos if isinstance(self.games, EnvGames) else None
        infos = self.episodes.infos(step, given)
        if step.game_over.any():
            self._update_info_buffer(infos, step.game_over)
            self._episode_num += int(np.count_nonzero(step.game_over))
        return infos, step.game_over, step.reward

    def write_metrics(self: HybridDQN) -> dict[str, float]:  # type: ignore[misc]
        """One line of metrics to the logger and to ``on_metrics``; running figures begin anew."""
        step, updates = self.num_timesteps, self.learner.updates
        share_figures(self)
        figures: dict[str, float] = {
            "steps": float(step),
            "updates": float(updates),
            "skipped_updates": float(self.learner.precision.skipped),
            "epsilon": float(self.collector.drivers.epsilon(self.curriculum.epsilon(step)).mean()),
            "imitation_gate": self.imitation_gate(),
            "return_bound": return_bound(self.collector.largest_reward, self.gamma),
            "replay_size": float(len(self.replay) * self.replicas.size),
            "replay_fill": self.replay.filled / self.replay.length,
        }
        figures |= self.curriculum.figures(step)
        figures |= {
            "expert_ratio": self.expert_ratio(step),
            "learning_rate": self.learning_rate_at(step),
        }
        figures |= self.collector.read() | self.learner.metrics.read()
        figures |= self._rates.read(step, self.collector.history.frames, updates)
        # The same in all processes, to the last bit: the guard acts on them.
        self.last_metrics = figures = self.replicas.gather(figures)[0]
        for event in self.guard.observe(figures):
            if self.on_guard is None:
                log.warning("%s", event)
            else:
                self.on_guard(event)
        figures |= self.guard.figures()
        if hasattr(self, "_logger"):
            for name, value in figures.items():
                self.logger.record(f"train/{name}", value)
            self._record_episodes()
            self.logger.dump(step)
        if self.on_metrics is not None:
            self.on_metrics(figures)
        return figures

    def _record_episodes(self: HybridDQN) -> None:  # type: ignore[misc]
        """The figures that every algorithm of SB3 logs."""
        for name, key in (("ep_rew_mean", "r"), ("ep_len_mean", "l")):
            if self.ep_info_buffer:
                mean = np.mean([episode[key] for episode in self.ep_info_buffer])
                self.logger.record(f"rollout/{name}", float(mean))
        self.logger.record("rollout/exploration_rate", self.exploration_rate)
        self.logger.record("time/episodes", self._episode_num, exclude="tensorboard")
        self.logger.record("time/total_timesteps", self.num_timesteps, exclude="tensorboard")

    def _restart_rates(self: HybridDQN) -> None:  # type: ignore[misc]
        """Speeds are of the time since now."""
        self._rates.restart(self.num_timesteps, self.collector.history.frames, self.learner.updates)

    def dump_logs(self: HybridDQN) -> None:  # type: ignore[misc]
        """SB3 asks for a line by number of episodes; ours come by number of decisions."""

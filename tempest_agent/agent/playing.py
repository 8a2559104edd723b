"""The environments of ``HybridDQN``, and replay and drivers that fit them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from tempest_agent.errors import UserError

from .collector import Collector
from .curriculum import Curriculum
from .drivers import Drivers
from .episodes import Episodes
from .games_in_play import GamesInPlay, PlayedElsewhere, Source
from .rates import Rates
from .replay_storage import make_replay
from .run_seeds import seeds_of
from .vector_adapter import as_vec_env
from .whole_update import WholeUpdate

if TYPE_CHECKING:
    from .hybrid_dqn import HybridDQN


class Playing:
    """The part of ``HybridDQN`` that plays."""

    def _make_collector(self: HybridDQN) -> None:  # type: ignore[misc]
        """Replay and drivers for the games of the environment."""
        config, layout, num_games = self.config, self.layout, self.games.num_games
        replay_seed, drivers_seed = seeds_of(config.run.seed)
        self.replay = make_replay(config, layout, num_games, replay_seed, self.device)
        self.whole_update = WholeUpdate.of(self.learner, self.replay)
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
                f"the model was made for {self.observation_space} and {self.action_space}, not for "
                f"{vec.observation_space} and {vec.action_space}; make a new one"
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

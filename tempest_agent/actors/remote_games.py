"""The games of a run whose actors play them: where the learner's process gets its decisions."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.agent.collect.drivers import Drivers
from tempest_agent.agent.collect.source import Left, Played, PlayFailedError, PlayStoppedError
from tempest_agent.agent.games.interface import Step
from tempest_agent.agent.games.tempest_games import TEMPEST_LAYOUT, TempestGames, teacher_of
from tempest_agent.agent.learner.learner import Learner
from tempest_agent.agent.networks.layout import Layout
from tempest_agent.config import Config
from tempest_agent.errors import UserError, shown
from tempest_agent.ray_support.cluster import require_cluster

from .chunks import Stretch
from .executor import Engine, MakePlayer
from .games_player import GamesPlayer
from .messages import Order, Part
from .pool import ActorEvent, ActorPool
from .publisher import WeightsPublisher

log = logging.getLogger("tempest_agent")


class RemoteGames:
    """``run.num_envs`` games that ``actors.count`` actors play, in place of ``TempestGames``.

    Actors begin at the first ``play``.  Asynchronous ones are given new orders as soon as a
    round of theirs is taken, so they play while the learner learns, at most ``actors.queue`` orders
    ahead; synchronous ones play one decision per ``play``, with the weights of that moment.

    An actor that is begun anew begins its games anew too; the unfinished ones are told of as
    ``Played.left``.  A resumed run begins all games anew.

    Args:
        config: of the whole run.
        make_engine: where actors run.
        make_player: what they do; the arcade's games if left out.
        layout: of their observations and actions.
    """

    def __init__(
        self,
        config: Config,
        make_engine: Callable[[MakePlayer], Engine],
        make_player: MakePlayer | None = None,
        layout: Layout = TEMPEST_LAYOUT,
    ) -> None:
        self.num_games = config.run.num_envs
        self.layout = layout
        self.drivers: Drivers
        self._config, self._actors = config, config.actors
        self._make_engine = make_engine
        self._make_player = make_player or partial(GamesPlayer, config)
        self._learner: Learner | None = None
        self._engine: Engine | None = None
        self._pool: ActorPool | None = None
        self._publisher: WeightsPublisher | None = None
        self._incarnations = [0] * config.actors.count
        self._totals: dict[str, Any] | None = None
        self._levels: list[int] | None = None
        self._order = Order(1)
        self._stops = False
        self._nothing()

    def _nothing(self) -> None:
        """Before the first decision."""
        games, layout = self.num_games, self.layout
        self._stretch: Stretch | None = None
        self._t = 0
        self._seen = (
            np.zeros((games, layout.num_features), layout.stored),
            np.zeros(games, np.bool_),
        )
        self._on_levels = np.zeros(games, np.int64)
        self._left: Left | None = None

    def connect(self) -> None:
        """Start, or join, what the actors run on; the first ``play`` does it otherwise.

        Raises:
            UserError: it cannot be started, or is not there.
        """
        if self._engine is None and self._pool is None:
            self._engine = self._make_engine(self._make_player)

    # What the decisions come from.

    def source(self, learner: Learner, drivers: Drivers) -> RemoteGames:
        """These games, played with the weights of ``learner``."""
        self._learner, self.drivers = learner, drivers
        return self

    def play(self, expert_ratio: float, epsilon_floor: float) -> Played:
        """The next decision of every game.

        The arguments are for the orders that are sent meanwhile, see ``Source.play``.

        Raises:
            PlayStoppedError: ``stop`` was called and the actors are not there yet.
            PlayFailedError: an actor is lost again and again, or Ray is gone.  The actors that are
                left have been ended.
        """
        actors = self._actors
        steps = 1 if actors.synchronous else actors.chunk_steps
        self._order = Order(steps, expert_ratio, epsilon_floor, self._start_levels())
        stretch = self._stretch
        if stretch is None or self._t == stretch.steps:
            stretch = self._stretch = self._next()
            self._t = 0
        played = stretch.played(self._t)._replace(left=self._left)
        self._left = None
        levels = stretch.levels(self._t)
        if levels is not None:
            self._on_levels = levels
        self._t += 1
        self._seen = stretch.seen(self._t)
        return played

    def _next(self) -> Stretch:
        if self._pool is None or self._publisher is None:
            self._pool, self._publisher = self._begin()
        try:
            self._publisher.publish_if_due()
            taken = self._pool.next_round(self._make_order)
        except PlayFailedError:
            self._end()
            raise
        if taken.restarted:
            new = np.isin(np.arange(self.num_games) % self._actors.count, taken.restarted)
            self._left = Left(new, *self._seen)
        return Stretch(taken.chunks)

    def _make_order(self, part: Part) -> Order:
        return self._order

    def _begin(self) -> tuple[ActorPool, WeightsPublisher]:
        actors = self._actors
        if self._learner is None:
            raise RuntimeError("source() before play(): there are no weights to play with")
        engine, self._engine = self._engine or self._make_engine(self._make_player), None
        pool = ActorPool(
            engine,
            actors.count,
            queue=actors.queue,
            deadline_seconds=actors.deadline_seconds,
            max_restarts=actors.max_restarts,
            on_event=_tell,
            synchronous=actors.synchronous,
            incarnations=self._incarnations,
            on_silence=self._raise_if_stopped,
        )
        if self._totals is not None:
            pool.counts.load_state_dict(self._totals)
        interval = 1 if actors.synchronous else actors.publish_interval
        return pool, WeightsPublisher(self._learner, pool.publish, interval)

    def stop(self) -> None:
        """Wait for actors no longer than they need anyway; fit for a signal handler.

        Otherwise one that is silent, or still compiling, would hold the end of a run up until its
        deadline.
        """
        self._stops = True

    def _raise_if_stopped(self) -> None:
        if self._stops:
            raise PlayStoppedError

    def leave(self) -> Left:
        """Leave all games, because they are about to be begun anew with ``reset``."""
        return Left(np.ones(self.num_games, np.bool_), *self._seen)

    def figures(self) -> dict[str, float]:
        """Figures of the actors since the last call; none before they have begun."""
        return {} if self._pool is None else self._pool.counts.read()

    def state_dict(self) -> dict[str, Any]:
        """Where the games were left; a run that goes on begins them anew."""
        pool = self._pool
        return {
            "actors": {
                "codes": self._seen[0],
                "zap_legal": self._seen[1],
                "incarnations": self._incarnations if pool is None else pool.incarnations,
                "totals": self._totals if pool is None else pool.counts.state_dict(),
            }
        }

    def load_state_dict(self, state: dict[str, Any], with_games: bool = True) -> None:
        """Go on with new games from what ``state_dict`` gave, or that of games in one process."""
        own = state.get("actors")
        if own is None:
            games = TempestGames(self.num_games, self._config.game, 0)
            games.load_state_dict(state["games"])
            self._seen = games.observe(), games.zap_legal()
            games.close()
            begun = 0
        else:
            self._seen = np.asarray(own["codes"]), np.asarray(own["zap_legal"]).astype(np.bool_)
            self._totals = own["totals"]
            begun = max(own["incarnations"])
        # Whatever each actor has played already: higher than all of them.
        self._incarnations = [begun + 1] * self._actors.count
        self._left = self.leave()

    # What is asked of games.

    def reset(self) -> None:
        """Begin all games anew.  Actors that have played are ended; others begin in their place."""
        self._end()
        self._nothing()

    def _end(self) -> None:
        """End the actors, where there are any, and remember how far they came."""
        if self._pool is not None:
            self._incarnations = [number + 1 for number in self._pool.incarnations]
            self._totals = self._pool.counts.state_dict()
            self.close()

    def observe(self) -> NDArray[np.int8]:
        """Codes ``(N, F)`` after the last decision; zeros before the first."""
        return self._seen[0]

    def zap_legal(self) -> NDArray[np.bool_]:
        """Whether a zap would do something after the last decision, ``(N,)``."""
        return self._seen[1]

    def levels(self) -> NDArray[np.int64]:
        """Levels that the games were on after the last decision, ``(N,)``; 0 before the first."""
        return self._on_levels

    def start_at(self, levels: Sequence[int]) -> None:
        """Let new games draw one entry of ``levels`` each, from the next order on."""
        self._levels = list(levels)

    def _start_levels(self) -> NDArray[np.int64] | None:
        return None if self._levels is None else np.array(self._levels, np.int64)

    def images(self) -> Any:
        """Not to be had: the states are with the actors.

        Raises:
            UserError: always.
        """
        raise UserError("games that actors play have no images here; play with actors.count=0")

    def step(self, spin: NDArray[np.int8], buttons: NDArray[np.uint8]) -> Step:
        """Not to be had: the actors choose the actions.

        Raises:
            UserError: always.
        """
        raise UserError("games that actors play cannot be stepped from here; use actors.count=0")

    def close(self) -> None:
        """End the actors, where there are any, and what they run on."""
        running = self._engine or self._pool
        if running is not None:
            running.close()
        self._engine = self._pool = self._publisher = None


def _tell(event: ActorEvent) -> None:
    log.warning("%s", event)


def remote_games(config: Config) -> RemoteGames | None:
    """The games of a run that is to have actors, on Ray; None where ``actors.count`` is 0.

    Raises:
        UserError: Ray is missing, or nobody listens at its address; there is an address and no
            actor; or (for the real game) MAME or its ROMs are missing.
    """
    if config.actors.count == 0:
        if config.actors.ray_address:
            raise UserError(
                f"actors.ray_address={shown(config.actors.ray_address)} without actors: nothing "
                "would run on that cluster; give --actors N too, or leave the address out"
            )
        return None
    # Here, because Ray is optional.
    from .ray_executor import RayEngine, import_ray

    # What is missing is said now and by one process.
    import_ray()
    require_cluster(config.actors.ray_address)
    TempestGames(1, config.game, 0).close()

    def begin(make_player: MakePlayer) -> Engine:
        _compile(config)
        return RayEngine(make_player, config.actors.ray_address or None)

    return RemoteGames(config, begin)


def _compile(config: Config) -> None:
    """Compile once what every actor needs, so that they find it on the disk."""
    games = TempestGames(1, dataclasses.replace(config.game, backend="sim"), 0)
    games.reset()
    teacher = teacher_of(config)
    if teacher is not None:
        teacher.act(games.images())
    games.step(np.zeros(1, np.int8), np.zeros(1, np.uint8))

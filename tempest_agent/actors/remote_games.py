"""Games played by remote actors, as seen by the learner process."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.agent.collect.drivers import Drivers
from tempest_agent.agent.collect.plan_labeller import merged_plans
from tempest_agent.agent.collect.source import Abandoned, Played, PlayFailedError, PlayStoppedError
from tempest_agent.agent.games.interface import Step
from tempest_agent.agent.games.tempest_games import TempestGames, teacher_of, tempest_layout
from tempest_agent.agent.learner.learner import Learner
from tempest_agent.agent.networks.layout import Layout
from tempest_agent.config import Config
from tempest_agent.envs.messages import shown
from tempest_agent.errors import UserError
from tempest_agent.experts import Planner
from tempest_agent.ray_support.cluster import require_cluster

from .chunks import MergedChunks
from .executor import Executor, MakePlayer
from .games_player import GamesPlayer
from .messages import ActorShare, Order
from .pool import ActorEvent, ActorPool
from .publisher import WeightsPublisher

log = logging.getLogger("tempest_agent")


class RemoteGames:
    """``run.num_envs`` games that ``actors.count`` actors play, instead of ``TempestGames``.

    Actors start at the first ``play``.  Asynchronous ones get new orders as soon as a round is
    taken, so they play while the learner learns, at most ``actors.queue`` orders ahead;
    synchronous ones play one step per ``play``, with the weights of that moment.

    A restarted actor restarts its games; the unfinished ones are reported as ``Played.abandoned``.
    A resumed run restarts all games.

    Args:
        config: of the whole run.
        make_executor: makes what the actors run on.
        make_player: makes their players; of Tempest by default.
        layout: of their observations and actions; Tempest's if left out.
    """

    def __init__(
        self,
        config: Config,
        make_executor: Callable[[MakePlayer], Executor],
        make_player: MakePlayer | None = None,
        layout: Layout | None = None,
    ) -> None:
        self.num_games = config.run.num_envs
        self.layout = layout or tempest_layout(config.game)
        self.drivers: Drivers
        self._config, self._actors = config, config.actors
        self._make_executor = make_executor
        self._make_player = make_player or partial(GamesPlayer, config)
        self._learner: Learner | None = None
        self._executor: Executor | None = None
        self._pool: ActorPool | None = None
        self._publisher: WeightsPublisher | None = None
        self._incarnations = [0] * config.actors.count
        self._totals: dict[str, Any] | None = None
        self._order = Order(1)
        self._stops = False
        self._nothing()

    def _nothing(self) -> None:
        """Set the state before the first step."""
        games, layout = self.num_games, self.layout
        self._stretch: MergedChunks | None = None
        self._t = 0
        self._seen = (
            np.zeros((games, layout.num_features), layout.stored),
            np.zeros(games, np.bool_),
        )
        self._abandoned: Abandoned | None = None

    def connect(self) -> None:
        """Start or join what the actors run on; otherwise the first ``play`` does.

        Raises:
            UserError: it cannot be started or joined.
        """
        if self._executor is None and self._pool is None:
            self._executor = self._make_executor(self._make_player)

    # As a source of steps.

    def source(self, learner: Learner, drivers: Drivers) -> RemoteGames:
        """Return these games, to be played with the weights of ``learner``."""
        self._learner, self.drivers = learner, drivers
        return self

    def play(self, expert_ratio: float, epsilon_floor: float) -> Played:
        """Return the next step of every game.

        The arguments apply to the orders sent meanwhile, see ``Source.play``.

        Raises:
            PlayStoppedError: ``stop`` was called and the actors have not answered yet.
            PlayFailedError: an actor fails repeatedly, or Ray is gone; all actors have been ended.
        """
        actors = self._actors
        steps = 1 if actors.synchronous else actors.chunk_steps
        self._order = Order(steps, expert_ratio, epsilon_floor)
        stretch = self._stretch
        if stretch is None or self._t == stretch.steps:
            stretch = self._stretch = self._next()
            self._t = 0
        played = stretch.played(self._t)._replace(abandoned=self._abandoned)
        self._abandoned = None
        self._t += 1
        self._seen = stretch.seen(self._t)
        return played

    def _next(self) -> MergedChunks:
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
            self._abandoned = Abandoned(new, *self._seen)
        return MergedChunks(taken.chunks)

    def _make_order(self, part: ActorShare) -> Order:
        return self._order

    def _begin(self) -> tuple[ActorPool, WeightsPublisher]:
        actors = self._actors
        if self._learner is None:
            raise RuntimeError("source() before play(): there are no weights to play with")
        executor, self._executor = self._executor or self._make_executor(self._make_player), None
        pool = ActorPool(
            executor,
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
        """Stop waiting for actors that do not answer; callable from a signal handler.

        Otherwise a hung or compiling actor would delay the end of a run until its deadline.
        """
        self._stops = True

    def _raise_if_stopped(self) -> None:
        if self._stops:
            raise PlayStoppedError

    def abandon(self) -> Abandoned:
        """Abandon all running games; the caller is about to ``reset`` them."""
        return Abandoned(np.ones(self.num_games, np.bool_), *self._seen)

    def figures(self) -> dict[str, float]:
        """Return metrics of the actors since the last call; none before they have started."""
        return {} if self._pool is None else self._pool.counts.read()

    def state_dict(self) -> dict[str, Any]:
        """Return the last observations and counts; a resumed run restarts the games."""
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
        """Continue with new games from this ``state_dict``, or that of games in one process."""
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
        # Higher than every earlier incarnation, so that no game is repeated.
        self._incarnations = [begun + 1] * self._actors.count
        self._abandoned = self.abandon()

    # As games.

    def reset(self) -> None:
        """Restart all games, with new actors."""
        self._end()
        self._nothing()

    def _end(self) -> None:
        """End the actors, if there are any, keeping their incarnations and counts."""
        if self._pool is not None:
            self._incarnations = [number + 1 for number in self._pool.incarnations]
            self._totals = self._pool.counts.state_dict()
            self.close()

    def observe(self) -> NDArray[np.int8]:
        """Return codes ``(N, F)`` after the last step; zeros before the first."""
        return self._seen[0]

    def zap_legal(self) -> NDArray[np.bool_]:
        """Return whether a zap is legal after the last step, ``(N,)``."""
        return self._seen[1]

    def images(self) -> Any:
        """Not supported; the actors hold the states.

        Raises:
            UserError: always.
        """
        raise UserError("games that actors play have no images here; play with actors.count=0")

    def step(self, spin: NDArray[np.int8], buttons: NDArray[np.uint8]) -> Step:
        """Not supported; the actors choose the actions.

        Raises:
            UserError: always.
        """
        raise UserError("games that actors play cannot be stepped from here; use actors.count=0")

    def close(self) -> None:
        """End the actors, if there are any, and what they run on."""
        running = self._executor or self._pool
        if running is not None:
            running.close()
        self._executor = self._pool = self._publisher = None


def _tell(event: ActorEvent) -> None:
    log.warning("%s", event)


def remote_games(config: Config) -> RemoteGames | None:
    """Return the games of a run with actors, on Ray; None if ``actors.count`` is 0.

    Raises:
        UserError: Ray is missing or does not answer; an address without actors; or MAME or its
            ROMs are missing (``game.backend=mame``).
    """
    if config.actors.count == 0:
        if config.actors.ray_address:
            raise UserError(
                f"actors.ray_address={shown(config.actors.ray_address)} without actors: nothing "
                "would run on that cluster; give --actors N too, or leave the address out"
            )
        return None
    # Imported here because Ray is optional.
    from .ray_executor import RayExecutor, import_ray

    # Report now, and by one process, what is missing.
    import_ray()
    require_cluster(config.actors.ray_address)
    TempestGames(1, config.game, 0).close()

    def begin(make_player: MakePlayer) -> Executor:
        _compile(config)
        return RayExecutor(make_player, config.actors.ray_address or None)

    return RemoteGames(config, begin)


def _compile(config: Config) -> None:
    """Compile what every actor needs, so that they load it from disk."""
    games = TempestGames(1, dataclasses.replace(config.game, backend="sim"), 0)
    games.reset()
    teacher = teacher_of(config)
    if teacher is not None:
        teacher.act(games.images())
    if config.teacher.labels == "plans":
        merged_plans(Planner(), *games.images())
    games.step(np.zeros(1, np.int8), np.zeros(1, np.uint8))

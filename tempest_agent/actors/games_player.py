"""The player of an actor: plays its share of a run's games as the run itself would."""

from __future__ import annotations

import dataclasses
import time

import numpy as np
import torch
from numpy.typing import NDArray

from tempest_agent.agent.collect.drivers import Drivers
from tempest_agent.agent.collect.local_source import LocalSource
from tempest_agent.agent.collect.plan_labeller import make_labeller
from tempest_agent.agent.games.interface import Games, Teacher
from tempest_agent.agent.games.tempest_games import TempestGames, teacher_of
from tempest_agent.agent.inference.greedy import act
from tempest_agent.agent.inference.inference_copy import InferenceCopy
from tempest_agent.agent.learner.mixed_precision import resolve_precision
from tempest_agent.agent.networks.q_network import QNetwork
from tempest_agent.agent.seeds import seeds_of
from tempest_agent.config import Config

from .chunks import columns_of, last_of
from .messages import ActorShare, Chunk, Order
from .publisher import arithmetic, unpack
from .snapshot import Snapshot

CPU = torch.device("cpu")


class GamesPlayer:
    """Games ``part.actor``, ``part.actor + part.actors``, ... of a run.

    The first incarnations together play the games that one process would have started with, at
    the same exploration rates and with the same teacher-free games.  Later incarnations have random
    streams of their own, and with several actors so have the drivers.

    Args:
        config: of the whole run.
        part: which games.
        games: the games; Tempest by default.
        teacher: labels and drives; the configured one by default.
    """

    def __init__(
        self,
        config: Config,
        part: ActorShare,
        games: Games | None = None,
        teacher: Teacher | None = None,
    ) -> None:
        self.part = part
        self._precision = config.learner.precision
        self._compiled = config.learner.compile
        streams, drivers_seed, teacher_seed = _seeds(config, part)
        own = dataclasses.replace(config, run=dataclasses.replace(config.run, seed=teacher_seed))
        if games is None:
            games = TempestGames(len(streams), config.game, streams)
            teacher = teacher_of(own)
        self._games = games
        # The weights come from the learner; its random stream must not change if both are in one
        # process.
        with torch.random.fork_rng(devices=[]):
            self._network = QNetwork(games.layout, config.network, config.learner)
        self._fast: InferenceCopy | None = None
        self._version: int | None = None
        drivers = Drivers(
            config.run.num_envs,
            config.teacher,
            config.exploration,
            drivers_seed,
            games.layout,
            slice(part.actor, None, part.actors),
        )
        labeller = make_labeller(own, games, drivers_seed)
        self._source = LocalSource(games, self._act, teacher, drivers, labeller)
        self._begun = False

    def play(self, order: Order, snapshot: Snapshot) -> Chunk:
        """Play ``order.steps`` steps of every game with the online network of ``snapshot``."""
        began = time.perf_counter()
        self._take(snapshot)
        games = self._games
        if not self._begun:
            games.reset()
            self._begun = True
        ratio, floor = order.expert_ratio, order.epsilon_floor
        played = [self._source.play(ratio, floor) for _ in range(order.steps)]
        return Chunk(
            self.part.actor,
            self.part.incarnation,
            order.number,
            snapshot.version,
            columns_of(played),
            last_of(played, games.observe(), games.zap_legal()),
            time.perf_counter() - began,
        )

    def _take(self, snapshot: Snapshot) -> None:
        if snapshot.version == self._version:
            return
        self._version = snapshot.version
        unpack(snapshot.network("online"), self._network)
        # The learner may be on a device that is fast at what this one is slow at.
        slow = resolve_precision(self._precision, CPU) == "float32"
        dtype = None if slow else arithmetic(snapshot)
        if self._fast is None or self._fast.dtype != (dtype or torch.float32):
            self._fast = InferenceCopy(self._network, dtype, self._compiled)
        else:
            self._fast.refresh()

    def _act(
        self, codes: NDArray[np.int8], zap_legal: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int8], NDArray[np.uint8]]:
        assert self._fast is not None
        return act(self._network, self._fast, codes, zap_legal, CPU)


def _seeds(config: Config, part: ActorShare) -> tuple[list[np.random.SeedSequence], int, int]:
    """Return the seeds of an actor's games, drivers and teacher."""
    run, num_envs = config.run, config.run.num_envs
    which = range(num_envs)[part.actor :: part.actors]
    fresh = np.random.SeedSequence(run.seed, spawn_key=(part.actor, part.incarnation))
    drivers, teacher = (int(seed) for seed in fresh.generate_state(2))
    if part.incarnation > 0:
        return fresh.spawn(len(which)), drivers, teacher
    games = np.random.SeedSequence(run.seed).spawn(num_envs)
    if part.actors == 1:
        drivers, teacher = seeds_of(run.seed)[1], run.seed
    return [games[i] for i in which], drivers, teacher

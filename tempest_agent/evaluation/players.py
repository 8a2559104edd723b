"""Scripted players and trained checkpoints behind one interface.

A player decides for many games at once, but each decision depends on its own game only: its RAM
image and its number.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from tempest_agent.config import Config
from tempest_agent.envs.engine.batch import GameBatch
from tempest_agent.envs.engine.game_step import RUNNING
from tempest_agent.envs.features.layout import NUM_FEATURES, PLAIN_FEATURES, ZAP_LEGAL_FEATURE
from tempest_agent.envs.machine.inputs import SPINNER_MAX
from tempest_agent.envs.machine.memory import RAM_DTYPE
from tempest_agent.envs.messages import shown
from tempest_agent.errors import UserError, suggestion
from tempest_agent.experts import TEACHER_NAMES, RandomPlayer, Teacher, make_teacher
from tempest_agent.experts.interface import pending_of
from tempest_agent.runs.file_names import LATEST

if TYPE_CHECKING:
    from tempest_agent.agent.checkpoints.policy import Policy

CHAMPION = "champion"
"""The player that comes with the package, never overwritten by a run."""

PLAYER_NAMES = (*TEACHER_NAMES, CHAMPION, "latest", "random")

log = logging.getLogger("tempest_agent")


Actions = tuple[NDArray[np.int8], NDArray[np.uint8]]
"""Knob counts (positive towards lower lanes) and buttons (fire + 2 * zap), ``(N,)`` each."""


class Player(Protocol):
    """Decides for all games of a batch."""

    def act(self, batch: GameBatch) -> Actions:
        """Return the next decision of every game."""


MakePlayer = Callable[[NDArray[np.int64], int], Player]
"""Makes a player for the games of these numbers, ``(N,)``, with a seed for its randomness."""


@dataclass(frozen=True)
class PlayerChoice:
    """A player by name, and how to make it for given games."""

    name: str
    make: MakePlayer
    frame_skip: int = 1
    sees_features: bool = False
    """Whether it reads ``batch.codes`` rather than the RAM image."""
    sha256: str | None = None
    step: int | None = None
    policy: Policy | None = None
    """The network, where one plays."""

    @property
    def config(self) -> Config | None:
        """Configuration of the run that trained a network."""
        return None if self.policy is None else self.policy.config

    @property
    def trained_delays(self) -> tuple[int, ...] | None:
        """Ticks of input delay that a network was trained with, without repetitions."""
        return None if self.policy is None else self.policy.input_delays

    @property
    def description(self) -> str:
        """One line that says what plays."""
        if self.sha256 is None:
            return f"player {self.name}"
        return f"checkpoint {self.name}, step {self.step:,}, sha256 {self.sha256[:16]}"


class TeacherPlayer:
    """A scripted player; with delayed inputs it is given the pending ones."""

    def __init__(self, teacher: Teacher, numbers: NDArray[np.int64]) -> None:
        self._teacher = teacher
        self._numbers = numbers

    def act(self, batch: GameBatch) -> Actions:
        """Return the next decision of every game."""
        pending = pending_of(batch.games, batch.delays)
        return self._teacher.act(batch.ram, pending if pending.shape[1] else None, self._numbers)


class RandomGames:
    """The random player with one generator per game, so that games do not affect each other."""

    BLOCK = 256

    def __init__(self, numbers: NDArray[np.int64], seed: int) -> None:
        entropy = [np.random.SeedSequence((seed, int(number))) for number in numbers]
        self._players = [RandomPlayer(int(e.generate_state(1, np.uint64)[0])) for e in entropy]
        self._images = np.zeros(self.BLOCK, RAM_DTYPE)  # Not used by the player.
        self._spins = np.zeros((len(numbers), self.BLOCK), np.int8)
        self._buttons = np.zeros((len(numbers), self.BLOCK), np.uint8)
        self._next = self.BLOCK

    def act(self, batch: GameBatch) -> Actions:
        """Return the next decision of every game."""
        if self._next == self.BLOCK:
            for row, player in enumerate(self._players):
                self._spins[row], self._buttons[row] = player.act(self._images)
            self._next = 0
        at = self._next
        self._next += 1
        return self._spins[:, at].copy(), self._buttons[:, at].copy()


class NetworkPlayer:
    """A trained network that plays greedily in the games still running."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def act(self, batch: GameBatch) -> Actions:
        """Return the next action of every game; finished games get neutral inputs."""
        running = np.flatnonzero(batch.games["status"] == RUNNING)
        spins = np.zeros(batch.num_games, np.int8)
        buttons = np.zeros(batch.num_games, np.uint8)
        # The plain observation is the beginning of the whole one.
        codes = batch.codes[running, : self._policy.network.layout.num_features]
        spins[running], buttons[running] = self._policy.act(codes, codes[:, ZAP_LEGAL_FEATURE] > 0)
        return spins, buttons


def find_player(name: str) -> PlayerChoice:
    """Return the player ``name``: a scripted one, ``champion``, ``latest``, or a checkpoint file.

    ``latest`` is the newest checkpoint of a run in this folder, or the champion if there is none.

    Raises ``UserError`` for an unknown name and for a file that is not a checkpoint.
    """
    if name == "random":
        return PlayerChoice(name, RandomGames)
    if name in TEACHER_NAMES:
        return PlayerChoice(
            name, lambda numbers, seed: TeacherPlayer(make_teacher(name, seed), numbers)
        )
    if name == CHAMPION:
        return _champion()
    if name == "latest":
        return _checkpoint(LATEST) if os.path.lexists(LATEST) else _champion()
    if not name or "\0" in name:
        raise UserError(
            f"{shown(name)} names no player (an unset variable?): give a checkpoint's path or one "
            f"of {', '.join(PLAYER_NAMES)}"
        )
    path = Path(name)
    if path.absolute() == LATEST.absolute() and not os.path.lexists(path):
        log.warning(
            "%s does not exist yet: no run has written one; using the shipped champion", name
        )
        return _champion()
    return _checkpoint(path)


def _champion() -> PlayerChoice:
    shipped = resources.files("tempest_agent.checkpoints") / f"{CHAMPION}.pt"
    if isinstance(shipped, Path) and shipped.is_file():
        return _checkpoint(shipped, CHAMPION)
    raise UserError(
        f"the shipped player {CHAMPION}.pt is missing from this installation: install "
        "tempest-agent again, train a player (tempest-agent train) or give a checkpoint's path"
    )


def _checkpoint(path: Path, name: str | None = None) -> PlayerChoice:
    """Return the player in a checkpoint file, called ``name`` or by its path."""
    if not path.exists():
        near = suggestion(str(path), PLAYER_NAMES)
        raise UserError(
            f"{shown(path)} is neither a player nor a file: {near}{' ' if near else ''}"
            f"give a checkpoint's path or one of {', '.join(PLAYER_NAMES)}"
        )
    if path.is_dir():
        raise UserError(f"{path} is a folder: give the checkpoint file (*.pt) inside it")
    # Imported here because importing torch takes longer than a scripted player's whole game.
    import torch

    from tempest_agent.agent.checkpoints.policy import load_policy

    torch.set_num_threads(1)  # Games are divided over threads; torch's own would compete.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's, on files that are refused with one line
        policy = load_policy(path)
    layout = policy.network.layout
    known = (PLAIN_FEATURES, NUM_FEATURES)
    if layout.num_features not in known or layout.counts != SPINNER_MAX:
        raise UserError(
            f"{path} was trained on {layout.num_features} features of a game and "
            f"{layout.counts} counts of its knob; Tempest has {PLAIN_FEATURES} or {NUM_FEATURES}, "
            f"and {SPINNER_MAX}"
        )
    return network_choice(policy, name or str(path))


def network_choice(policy: Policy, name: str) -> PlayerChoice:
    """Return a player that plays with a loaded network."""
    return PlayerChoice(
        name=name,
        make=lambda _numbers, _seed: NetworkPlayer(policy),
        frame_skip=policy.frame_skip,
        sees_features=True,
        sha256=policy.sha256,
        step=policy.step,
        policy=policy,
    )

"""``MameBatch``: games on real machines, with the interface of the simulator's ``GameBatch``."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arcade.inputs import SPINNER_MAX
from ..arcade.memory import RAM_DTYPE, as_bytes
from ..arcade.randomness import STREAM_DTYPE
from ..batch import NEVER
from ..feature_layout import NUM_FEATURES
from ..features import as_floats
from ..game_step import (
    FIRE,
    GAME_DTYPE,
    IDLE_LIMIT,
    LOST,
    NO_CAUSE,
    NOT_STARTED,
    RUNNING,
    TERMINATED,
    TRUNCATED,
    ZAP,
)
from ..seeds import Seeds, streams_for
from ..settings import GameSettings
from . import bookkeeping, protocol
from .bookkeeping import IDLE, OVER
from .errors import MachineError, MameError
from .game import WAITS, GameStarter, NewGame, switches
from .machine import MameMachine, converse
from .options import MameOptions
from .protocol import Dialogue, Frame


class MachineLostWarning(RuntimeWarning):
    """A MAME failed; the step it was playing is lost, and its game truncated."""


class MameBatch:
    """``num_games`` games, each on a MAME process of its own, stepped together.

    Arrays and methods are those of ``GameBatch``, with these differences:

    * ``streams`` decide how long a game waits on the level select, which is where the machine's
      chance comes from; with ``random_bytes="simulator"`` they are the games' random bytes.
    * States cannot be cloned.
    * A machine that fails ends its game as ``truncated`` (status ``LOST``): the record and the
      image are those before the lost step.  A warning tells, ``failures`` keeps the reasons, the
      other games go on, and the next game there gets a new process.  After ``max_restarts``
      failures in a row without a finished game the last one is raised.

    Raises ``MameError`` where MAME or its ROMs are not there (at the first ``reset``).
    """

    def __init__(
        self,
        num_games: int,
        settings: GameSettings | None = None,
        machine: MameOptions | None = None,
        *,
        autoreset: bool = False,
        observe: bool = True,
    ) -> None:
        if num_games < 1:
            raise ValueError(f"num_games={num_games!r}: at least one game is needed")
        if machine is None:
            raise MameError("rom_path is missing: give the folder with tempest1.zip")
        self.num_games = num_games
        self.settings = settings or GameSettings()
        self.machine = machine
        self.autoreset = autoreset
        self.observing = observe
        self.num_threads = 1
        self.ram = np.zeros(num_games, RAM_DTYPE)
        self.streams = np.zeros(num_games, STREAM_DTYPE)
        self.games = np.zeros(num_games, GAME_DTYPE)
        self.games["status"] = NOT_STARTED
        self.codes = np.zeros((num_games if observe else 0, NUM_FEATURES), np.int8)
        ending = num_games if autoreset else 0
        self.last_ram = np.zeros(ending, RAM_DTYPE)
        self.last_games = np.zeros(ending, GAME_DTYPE)
        self.last_codes = np.zeros((ending if observe else 0, NUM_FEATURES), np.int8)
        self.points = np.zeros(num_games, np.int32)
        self.terminated = np.zeros(num_games, np.bool_)
        self.truncated = np.zeros(num_games, np.bool_)
        self.failures: list[MachineError] = []
        self._options = self.settings.records()
        self._max_ticks = int(self.settings.max_ticks or NEVER)
        self._max_steps = int(self.settings.max_steps or NEVER)
        self._simulated_bytes = machine.random_bytes == "simulator"
        self._machines: list[MameMachine | None] = [None] * num_games
        self._starters = [GameStarter(machine) for _ in range(num_games)]
        self._failures_in_a_row = [0] * num_games
        self._before = np.zeros(1, RAM_DTYPE)
        self._seeded = False
        self._started = False

    @property
    def pids(self) -> list[int | None]:
        """Process id of each game's MAME, ``None`` where there is none at the moment."""
        return [each.pid if each is not None and each.alive else None for each in self._machines]

    def reset(self, mask: NDArray[np.bool_] | None = None, seeds: Seeds | None = None) -> None:
        """Begin new games where ``mask`` (default: everywhere) is set.

        ``seeds`` as in ``GameBatch.reset``.
        """
        if mask is None:
            mask = np.ones(self.num_games, np.bool_)
        if not self._seeded:
            self.streams[:] = streams_for(np.random.SeedSequence(), self.num_games)[0]
            self._seeded = True
        if seeds is not None:
            streams, named = streams_for(seeds, self.num_games)
            self.streams[mask & named] = streams[mask & named]
        self._begin_games(np.flatnonzero(mask).tolist())
        self.points[mask] = 0
        self.terminated[mask] = False
        self.truncated[mask] = False
        self._started = self._started or not bool((self.games["status"] == NOT_STARTED).any())

    def step(
        self, spin: NDArray[np.int8], buttons: NDArray[np.uint8]
    ) -> tuple[NDArray[np.int32], NDArray[np.bool_], NDArray[np.bool_]]:
        """Play one step of every game; as ``GameBatch.step``."""
        self._check_actions(spin, buttons)
        running = np.flatnonzero(self.games["status"] == RUNNING).tolist()
        self._rest_records()
        ram_before, games_before = self.ram.copy(), self.games.copy()
        work = {
            self._running_machine(at): partial(self._play_step, at, int(spin[at]), int(buttons[at]))
            for at in running
        }
        results = converse(work)
        for at, machine in zip(running, work, strict=True):
            result = results[machine]
            if isinstance(result, MachineError):
                self.ram[at], self.games[at] = ram_before[at], games_before[at]
                self.games["status"][at] = LOST
                self.games["points"][at] = 0
                self._note_failure(at, result)
            elif self.games["status"][at] != RUNNING:
                self._failures_in_a_row[at] = 0
            self._observe(at)
        status = self.games["status"]
        self.points[:] = self.games["points"]
        self.terminated[:] = status == TERMINATED
        self.truncated[:] = (status == TRUNCATED) | (status == LOST)
        if self.autoreset:
            self._begin_anew(np.flatnonzero(status != RUNNING).tolist())
        return self.points, self.terminated, self.truncated

    def observations(self) -> NDArray[np.float32]:
        """The observation of every game as floats, ``(num_games, NUM_FEATURES)``: a new array."""
        return as_floats(self.codes)

    def clone(self, games: NDArray[np.int64] | list[int] | None = None) -> NDArray[np.uint8]:
        """Not to be had of the real machine: raises ``MameError``."""
        raise MameError(
            "the real machine's state cannot be cloned; use the simulator (backend='sim')"
        )

    def restore(
        self, states: NDArray[np.uint8], games: NDArray[np.int64] | list[int] | None = None
    ) -> None:
        """Not to be had of the real machine: raises ``MameError``."""
        raise MameError(
            "the real machine's state cannot be restored; use the simulator (backend='sim')"
        )

    def close(self) -> None:
        """End every MAME; a later ``reset`` starts new ones."""
        for machine in self._machines:
            if machine is not None:
                machine.close()
        self._machines = [None] * self.num_games
        self._starters = [GameStarter(self.machine) for _ in range(self.num_games)]

    def __enter__(self) -> MameBatch:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _check_actions(self, spin: NDArray[np.int8], buttons: NDArray[np.uint8]) -> None:
        if not self._started:
            raise RuntimeError("step() before reset(): every game has to be reset once first")
        shape = (self.num_games,)
        if spin.shape != shape or buttons.shape != shape:
            raise ValueError(
                f"spin has shape {spin.shape} and buttons {buttons.shape}, "
                f"but {self.num_games} games need shape {shape} for both"
            )
        if spin.dtype != np.int8 or buttons.dtype != np.uint8:
            raise TypeError(
                f"spin is {spin.dtype} and buttons {buttons.dtype}: int8 and uint8 are needed; "
                "actions.py converts the environment's actions"
            )

    def _rest_records(self) -> None:
        """Clear what the records of finished games say about a single step."""
        resting = self.games["status"] != RUNNING
        for name in ("points", "step_idle_ticks", "step_deaths"):
            self.games[name][resting] = 0
        self.games["step_death"][resting] = NO_CAUSE

    def _play_step(self, at: int, spin: int, buttons: int, _frame: Frame) -> Dialogue[None]:
        """One step of game ``at``: the same rules as ``game_step.play_step``."""
        bookkeeping.start_step(self.games, at)
        record = self.games[at]
        spin = max(-SPINNER_MAX, min(SPINNER_MAX, spin))
        first_spin = seen_buttons = flags = 0
        for repeat in range(self.settings.frame_skip):
            flags = yield from self._play_tick(at, spin, buttons)
            if repeat == 0:
                first_spin = int(record["executed_spin"])
                seen_buttons = int(record["executed_buttons"])
            seen_buttons |= int(record["executed_buttons"]) & ZAP
            if flags & OVER or record["ticks"] >= self._max_ticks:
                break
            if self.settings.skip_idle and flags & IDLE:
                break
        if self.settings.skip_idle:
            idle = 0
            while flags == IDLE and int(record["ticks"]) < self._max_ticks and idle < IDLE_LIMIT:
                flags = yield from self._play_tick(at, 0, 0)
                idle += 1
            record["step_idle_ticks"] = idle
            record["idle_ticks"] += idle
        record["executed_spin"] = first_spin
        record["executed_buttons"] = seen_buttons
        bookkeeping.finish_step(self.ram, self.games, at, self._max_ticks, self._max_steps)

    def _play_tick(self, at: int, spin: int, buttons: int) -> Dialogue[int]:
        delay = self.settings.input_delay
        bookkeeping.before_tick(self.ram, self.games, at, spin, buttons, delay)
        record = self.games[at]
        executed = int(record["executed_buttons"])
        fire, zap = bool(executed & FIRE), bool(executed & ZAP)
        frame = yield protocol.go(int(record["executed_spin"]), fire, zap)
        self._before[0] = self.ram[at]
        as_bytes(self.ram)[at] = frame.ram
        if self._simulated_bytes:
            self.streams["state"][at] = frame.stream
        return int(bookkeeping.after_tick(self._before, self.ram, self.games, at))

    def _begin_anew(self, ended: list[int]) -> None:
        for at in ended:
            self.last_ram[at] = self.ram[at]
            self.last_games[at] = self.games[at]
            if self.observing:
                self.last_codes[at] = self.codes[at]
        self._begin_games(ended)

    def _begin_games(self, numbers: list[int]) -> None:
        """Start new games, with new processes where there is none or it fails."""
        games = {at: self._prepare(at) for at in numbers}
        while games:
            try:
                work = {
                    self._running_machine(at): partial(self._start_game, at, game)
                    for at, game in games.items()
                }
                results = converse(work)
            except MameError:
                self.close()
                raise
            for at, machine in zip(list(games), work, strict=True):
                result = results[machine]
                if isinstance(result, MachineError):
                    self._note_failure(at, result)
                    continue
                del games[at]
                as_bytes(self.ram)[at] = result.ram
                if self._simulated_bytes:
                    self.streams["state"][at] = result.stream
                bookkeeping.start_record(self.ram, self.games, at)
                self._observe(at)

    def _prepare(self, at: int) -> NewGame:
        wait = stream = 0
        if self._simulated_bytes:
            bookkeeping.prepare_simulated_game(self.ram, self.streams, at, self._options)
            stream = int(self.streams["state"][at])
        else:
            chance = bookkeeping.prepare_game(self.ram, self.streams, at, self._options)
            wait = int(chance) % WAITS
        return NewGame(as_bytes(self.ram)[at].copy(), wait, stream)

    def _running_machine(self, at: int) -> MameMachine:
        machine = self._machines[at]
        if machine is None or not machine.alive:
            machine = MameMachine(self.machine, switches(self._options[0]))
            self._machines[at] = machine
            self._starters[at] = GameStarter(self.machine)
        return machine

    def _start_game(self, at: int, game: NewGame, frame: Frame) -> Dialogue[Frame]:
        machine = self._machines[at]
        assert machine is not None
        return self._starters[at].start(machine, frame, game)

    def _note_failure(self, at: int, error: MachineError) -> None:
        self.failures.append(error)
        self._failures_in_a_row[at] += 1
        if self._failures_in_a_row[at] > self.machine.max_restarts:
            self.close()
            raise error
        warnings.warn(f"game {at}: {error}", MachineLostWarning, stacklevel=4)

    def _observe(self, at: int) -> None:
        if self.observing:
            bookkeeping.observe(self.ram, self.games, at, self.settings.input_delay, self.codes)

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("games on real machines cannot be pickled: make them where they are used")

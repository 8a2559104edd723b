"""``MameBatch``: games on real machines, with the interface of the simulator's ``GameBatch``."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.engine.batch import NEVER, GameBatch, StepOutput, rows_of
from tempest_agent.envs.engine.game_step import (
    IDLE_LIMIT,
    LOST,
    NO_CAUSE,
    NOT_STARTED,
    RUNNING,
    TERMINATED,
    TRUNCATED,
)
from tempest_agent.envs.engine.settings import GameSettings
from tempest_agent.envs.engine.state_check import check_states
from tempest_agent.envs.engine.step_kernels import ENDED, NOTED
from tempest_agent.envs.machine.inputs import FIRE, SPINNER_MAX, ZAP
from tempest_agent.envs.machine.memory import RAM_DTYPE, as_bytes

from . import bookkeeping, protocol
from .bookkeeping import IDLE, OVER
from .connection import MameMachine, converse
from .errors import MachineError, MameError
from .game_start import GameStarter, NewGame, switches
from .mame_options import MameOptions
from .protocol import Dialogue, Frame
from .roms import find_rom_set

DRAWN = -1
"""In ``MameBatch.moments``: the game's stream decides."""


class MachineLostWarning(RuntimeWarning):
    """A MAME failed; the step it was playing is lost, and its game truncated."""


class MameBatch(GameBatch):
    """``num_games`` games, each on its own MAME process, stepped together.

    Arrays and methods are those of ``GameBatch``, with these differences:

    * ``streams`` decide at which moment a game's level is chosen, which is where the machine's
      chance comes from; with ``random_bytes="simulator"`` they are the games' random bytes.
      ``moments`` (int64, below ``protocol.RANDOM_CYCLE``) may name it for the next games instead.
    * States cannot be cloned.
    * A machine that fails ends its game as ``truncated`` (status ``LOST``): the record and the
      image are those before the lost step.  A warning is issued, ``failures`` keeps the reasons,
      the other games continue, and the next game there gets a new process.  After ``max_restarts``
      failures in a row without a finished game the last one is raised.

    Raises ``MameError`` if MAME or its ROMs are missing (at the first ``reset``), and
    ``MachineError``.
    """

    def __init__(
        self,
        num_games: int,
        settings: GameSettings | None,
        machine: MameOptions,
        *,
        autoreset: bool = False,
        observe: bool = True,
        plain: bool = False,
    ) -> None:
        super().__init__(num_games, settings, autoreset=autoreset, observe=observe, plain=plain)
        self.machine = machine
        self.failures: list[MachineError] = []
        self._max_ticks = int(self.settings.max_ticks or NEVER)
        self._max_steps = int(self.settings.max_steps or NEVER)
        self.rom_set: str | None = None
        """MAME's name of the ROM set that is played, once a game has started."""
        self.moments = np.full(num_games, DRAWN, np.int64)
        self._simulated_bytes = machine.random_bytes == "simulator"
        self._machines: list[MameMachine | None] = [None] * num_games
        self._starters = [GameStarter(machine) for _ in range(num_games)]
        self._failures_in_a_row = [0] * num_games
        self._left = False
        self._before = np.zeros(1, RAM_DTYPE)
        # NumPy copies a record of many fields one by one; bytes are copied at once.
        self._images = as_bytes(self.ram)
        self._records = rows_of(self.games)
        self._image_before = as_bytes(self._before)[0]

    @property
    def pids(self) -> list[int | None]:
        """Process id of each game's MAME, ``None`` where there is none at the moment."""
        return [each.pid if each is not None and each.alive else None for each in self._machines]

    def clone(self, games: NDArray[np.int64] | list[int] | None = None) -> NDArray[np.uint8]:
        """Raise ``MameError``: not supported on the real machine."""
        raise MameError(
            "the real machine's state cannot be cloned; use the simulator (backend='sim')"
        )

    def restore(
        self, states: NDArray[np.uint8], games: NDArray[np.int64] | list[int] | None = None
    ) -> None:
        """Raise ``MameError``: not supported on the real machine."""
        raise MameError(
            "the real machine's state cannot be restored; use the simulator (backend='sim')"
        )

    def snapshot(self) -> NDArray[np.uint8]:
        """Return images, streams and records of all games, for ``leave_at``; not machine states."""
        return super().clone()

    def leave_at(self, snapshot: NDArray[np.uint8]) -> None:
        """Show the games of ``snapshot`` as a run left them; their machines are gone.

        The next step is lost (status ``LOST``), and new games start after it.
        """
        states = check_states(snapshot, self.num_games)
        self.close()
        self._put_back(states, np.arange(self.num_games))
        self._left = True

    def close(self) -> None:
        """End every MAME; a later ``reset`` starts new ones."""
        for machine in self._machines:
            if machine is not None:
                machine.close()
        self._machines = [None] * self.num_games

    def frame(self, at: int) -> Frame:
        """Return the tick at which game ``at``'s machine stands."""
        machine = self._playing_machine(at)
        if machine.frame is None:
            raise MachineError("it does not stand at a tick", machine.phase)
        return machine.frame

    def command(self, at: int, commands: bytes, seconds: float | None = None) -> Frame:
        """Send ``commands`` to game ``at``'s machine; the game is no longer a fair one.

        ``seconds``: limit for the next tick.  Raises ``MachineError``.
        """

        def say(_frame: Frame) -> Dialogue[Frame]:
            machine.time_for_answer = seconds
            frame = yield commands
            machine.time_for_answer = None
            return frame

        machine = self._playing_machine(at)
        result = converse({machine: say})[machine]
        if isinstance(result, MachineError):
            raise result
        self._images[at] = result.ram
        return result

    def __enter__(self) -> MameBatch:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _play(self, spin: NDArray[np.int8], buttons: NDArray[np.uint8], out: StepOutput) -> int:
        self._rest_records()
        if self._left:
            self.games["status"][self.games["status"] == RUNNING] = LOST
            self.games["points"] = 0
        running = np.flatnonzero(self.games["status"] == RUNNING).tolist()
        images_before, records_before = self._images.copy(), self._records.copy()
        # No new machine in place of an ended one: it would not be in the middle of the game.
        work = {
            self._playing_machine(at): partial(self._play_step, at, int(spin[at]), int(buttons[at]))
            for at in running
        }
        results = converse(work)
        for at, machine in zip(running, work, strict=True):
            result = results[machine]
            if isinstance(result, MachineError):
                self._images[at], self._records[at] = images_before[at], records_before[at]
                self.games["status"][at] = LOST
                self.games["points"][at] = 0
                self._note_failure(at, result)
            elif self.games["status"][at] != RUNNING:
                self._failures_in_a_row[at] = 0
        status = self.games["status"].copy()
        self._observe(status != NOT_STARTED)
        self.points[:] = self.games["points"]
        self.terminated[:] = status == TERMINATED
        self.truncated[:] = (status == TRUNCATED) | (status == LOST)
        ended = status != RUNNING
        if self.autoreset and ended.any():
            self.last_ram[ended] = self.ram[ended]
            self.last_games[ended] = self.games[ended]
            if self.num_codes:
                self.last_codes[ended] = self.codes[ended]
            self._begin_games(ended)
            self._observe(ended)
        self.fill(out, np.ones(self.num_games, np.bool_))
        noted = (self.games["step_death"] != NO_CAUSE) | (self.games["status"] != RUNNING)
        over = self.terminated | self.truncated
        return NOTED * bool(noted.any()) | ENDED * bool(over.any())

    def _rest_records(self) -> None:
        """Clear the single-step fields of finished games' records."""
        resting = self.games["status"] != RUNNING
        for name in ("points", "step_idle_ticks", "step_deaths"):
            self.games[name][resting] = 0
        self.games["step_death"][resting] = NO_CAUSE

    def _play_step(self, at: int, spin: int, buttons: int, _frame: Frame) -> Dialogue[None]:
        """Play one step of game ``at`` by the same rules as ``game_step.play_step``."""
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
        self._image_before[:] = self._images[at]
        self._images[at] = frame.ram
        if self._simulated_bytes:
            self.streams["state"][at] = frame.stream
        return int(bookkeeping.after_tick(self._before, self.ram, self.games, at))

    def _begin_games(self, mask: NDArray[np.bool_]) -> None:
        """Start new games, with new processes where there is none or it fails."""
        self._left = False
        games = {at: self._prepare(at) for at in np.flatnonzero(mask).tolist()}
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
                self._images[at] = result.ram
                if self._simulated_bytes:
                    self.streams["state"][at] = result.stream
                bookkeeping.start_record(self.ram, self.games, at)

    def _prepare(self, at: int) -> NewGame:
        moment, self.moments[at] = int(self.moments[at]), DRAWN
        stream = 0
        if self._simulated_bytes:
            bookkeeping.prepare_simulated_game(self.ram, self.streams, at, self._switches)
            stream = int(self.streams["state"][at])
        else:
            chance = int(bookkeeping.prepare_game(self.ram, self.streams, at, self._switches))
            moment = chance % protocol.RANDOM_CYCLE if moment == DRAWN else moment
        return NewGame(self._images[at].copy(), moment, stream)

    def _running_machine(self, at: int) -> MameMachine:
        machine = self._machines[at]
        if machine is None or not machine.alive:
            machine = self._machines[at] = self._new_machine()
            self._starters[at] = GameStarter(self.machine)
        return machine

    def _playing_machine(self, at: int) -> MameMachine:
        machine = self._machines[at]
        if machine is None:
            raise RuntimeError("step() after close(): reset() starts new machines")
        return machine

    def _new_machine(self) -> MameMachine:
        return MameMachine(self.machine, self._found_set(), switches(self._switches[0]))

    def _found_set(self) -> str:
        if self.rom_set is None:
            self.rom_set = find_rom_set(self.machine)
        return self.rom_set

    def _start_game(self, at: int, game: NewGame, frame: Frame) -> Dialogue[Frame]:
        machine = self._playing_machine(at)
        return self._starters[at].start(machine, frame, game)

    def _note_failure(self, at: int, error: MachineError) -> None:
        self.failures.append(error)
        self._failures_in_a_row[at] += 1
        if self._failures_in_a_row[at] > self.machine.max_restarts:
            self.close()
            raise error
        warnings.warn(f"game {at}: {error}", MachineLostWarning, stacklevel=4)

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("games on real machines cannot be pickled: make them where they are used")

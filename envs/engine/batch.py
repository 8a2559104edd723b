"""``GameBatch``: many games side by side in compiled code.

The engine of both environments, of training and of evaluation.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.checks import check_whole
from tempest_agent.envs.engine.hybrid_controls import NOT_ACTING
from tempest_agent.envs.features.floats import as_floats
from tempest_agent.envs.features.layout import NUM_FEATURES, PLAIN_FEATURES
from tempest_agent.envs.forecast.table import TABLE_DTYPE
from tempest_agent.envs.machine.memory import RAM_DTYPE, RAM_SIZE, as_bytes
from tempest_agent.envs.machine.randomness import STREAM_DTYPE

from .game_step import GAME_DTYPE, NOT_STARTED
from .report import REPORT_SIZE
from .seeds import Seeds, streams_for
from .settings import GameSettings
from .state_check import STATE_SIZE, STREAM_END, check_images, check_states
from .step_job import new_job, set_switches
from .step_kernels import (
    ALONE,
    REFUSED,
    fill_output,
    observe_games,
    prepare_steps,
    reset_games,
    step_games,
)
from .threads import StepThreads

NEVER = 2**62
MOST_GAMES = 2**31 - 1
_NOT_RESET = "step() before reset(): every game has to be reset once first"


class StepOutput(NamedTuple):
    """Arrays that a step fills besides the batch's own, each with an entry a game or none."""

    observations: NDArray[np.float32]
    """``(num_games, num_codes)``, the observations as floats; or ``(0, ...)``."""

    report: NDArray[np.int64]
    """``(num_games, REPORT_SIZE)``, the numbers of ``info``; or ``(0, REPORT_SIZE)``."""

    ends: NDArray[np.bool_] = np.empty((2, 0), np.bool_)
    """``(2, num_games)``, terminated and truncated; or ``(2, 0)``."""

    rewards: NDArray[np.float64] = np.empty((2, 0))
    """``(2, num_games)``, the points times ``scale``, twice; or ``(2, 0)``."""

    scale: float = 0.0


NO_OUTPUT = StepOutput(
    np.empty((0, NUM_FEATURES), np.float32), np.empty((0, REPORT_SIZE), np.int64)
)


class GameBatch:
    """``num_games`` games that are stepped together.

    Public arrays, one entry a game, updated in place by every step:

    * ``ram``: ``RAM_DTYPE``; ``streams``: ``STREAM_DTYPE``; ``games``: ``GAME_DTYPE``;
    * ``codes``: int8 ``(num_games, num_codes)``, the observation (``observe=True`` only): of
      ``NUM_FEATURES`` numbers, or with ``plain`` of the first ``PLAIN_FEATURES``;
    * ``points`` int32, ``terminated`` bool, ``truncated`` bool of the last step;
      ``happened``, an int of the last ``step()``: the bits ``NOTED`` and ``ENDED``;
    * with ``autoreset``: ``last_ram``, ``last_games``, ``last_codes``, the end of each game's
      last finished episode, valid where the last step returned terminated or truncated.

    A step puts in the action and plays ``frame_skip`` ticks; the spinner counts are put in at
    every one of them.  A superzap that could not start or would kill nobody is not put in; what
    was put in is in ``games["executed_spin"]`` (first tick) and ``games["executed_buttons"]``
    (fire of the first tick, the zap of any).  With ``input_delay`` these are older inputs than
    the step's action: each tick puts in the input chosen that many ticks before.

    ``skip_idle``: when a tick of the step leaves the game where the next tick needs no decision,
    the step continues by itself, with spinner and buttons at rest, until a decision is needed or
    the game ends; the rest of ``frame_skip`` is dropped.  Such ticks are those of a dead player
    and those between two phases of play (pause, end of life, new life, end of wave, level
    entry).  The game is exactly the one that actions at rest would have made;
    ``games["step_idle_ticks"]`` counts the ticks.

    A game ends (``terminated``) when the machine reaches its high-score check.  At ``max_ticks``
    or ``max_steps`` it is ``truncated``, unless the last life is already lost: then it is
    terminated.  Without ``autoreset`` a finished game stays as it is, its flag stays set and its
    points are 0, until it is reset; with it a new game starts within the same step.

    The games are the machine's, byte for byte, with one exception: where it would count more
    nymphs than its 64 places hold (hard setting, levels 96 to 99) and the level could never end,
    the count is 64.

    The result does not depend on ``num_threads``.  Instances can be pickled and survive a fork.
    """

    def __init__(
        self,
        num_games: int,
        settings: GameSettings | None = None,
        *,
        autoreset: bool = False,
        observe: bool = True,
        plain: bool = False,
        num_threads: int = 1,
    ) -> None:
        check_whole("num_games", num_games, 1, MOST_GAMES, "a game is the least to play")
        check_whole("num_threads", num_threads, 1, MOST_GAMES, "1 plays in the calling thread")
        self.num_games = num_games
        self.settings = settings or GameSettings()
        self.autoreset = autoreset
        self.num_codes = 0 if not observe else PLAIN_FEATURES if plain else NUM_FEATURES
        self.num_threads = min(num_threads, num_games)
        self.ram = np.zeros(num_games, RAM_DTYPE)
        self.streams = np.zeros(num_games, STREAM_DTYPE)
        self.games = np.zeros(num_games, GAME_DTYPE)
        self.games["status"] = NOT_STARTED
        self.codes = np.zeros((num_games if observe else 0, self.num_codes), np.int8)
        ending = num_games if autoreset else 0
        self.last_ram = np.zeros(ending, RAM_DTYPE)
        self.last_games = np.zeros(ending, GAME_DTYPE)
        self.last_codes = np.zeros((ending if observe else 0, self.num_codes), np.int8)
        self.points = np.zeros(num_games, np.int32)
        self.terminated = np.zeros(num_games, np.bool_)
        self.truncated = np.zeros(num_games, np.bool_)
        self._controls = np.zeros(num_games, np.int8), np.zeros(num_games, np.uint8)
        self._switches = self.settings.records()
        self._tables = np.zeros(self.num_threads, TABLE_DTYPE)
        self.happened = 0
        self._job: NDArray[np.int64] | None = None
        self._threads: StepThreads | None = None
        self._stepper: Callable[..., int] | None = None
        self.play_actions: Callable[..., int] | None = None
        """Plays a step with hybrid actions: buttons, spinner and the fields of a ``StepOutput``.

        Returns what ``happened``.  Where these are no actions nothing is played, and it returns
        ``REFUSED`` or, for other types of arrays than the action space's, raises ``TypeError``.
        After a step of many games everything in Python is slow; this does little of it.  ``None``
        before the first ``step``, and on backends without it.  Like ``step_job()`` it is valid
        only as long as the batch.
        """
        self._started = False

    def reset(self, mask: NDArray[np.bool_] | None = None, seeds: Seeds | None = None) -> None:
        """Start new games where ``mask`` (default: everywhere) is set.

        ``seeds``: see ``seeds.streams_for``; ``None`` continues each game's random stream, and
        draws one from the operating system the first time.
        """
        if mask is None:
            mask = np.ones(self.num_games, np.bool_)
        unseeded = self.streams["state"] == 0
        if unseeded.any():
            drawn = streams_for(np.random.SeedSequence(), self.num_games)[0]
            self.streams[unseeded] = drawn[unseeded]
        if seeds is not None:
            streams, named = streams_for(seeds, self.num_games)
            self.streams[mask & named] = streams[mask & named]
        self._begin_games(mask)
        self.points[mask] = 0
        self.terminated[mask] = False
        self.truncated[mask] = False
        self._observe(mask)
        self._started = self._started or not bool((self.games["status"] == NOT_STARTED).any())

    def step(
        self,
        spin: NDArray[np.int8],
        buttons: NDArray[np.uint8],
        out: StepOutput = NO_OUTPUT,
    ) -> tuple[NDArray[np.int32], NDArray[np.bool_], NDArray[np.bool_]]:
        """Play one step of every game.

        ``spin``: int8 ``(num_games,)``, counts a tick, cut to -31..31, positive towards lower
        lanes.  ``buttons``: uint8 ``(num_games,)``, fire + 2*zap.  ``out``: arrays to fill as
        well.  Returns ``points``, ``terminated`` and ``truncated``: the batch's own arrays,
        overwritten by the next step.
        """
        if not self._started:
            raise RuntimeError(_NOT_RESET)
        shape = (self.num_games,)
        if spin.shape != shape or buttons.shape != shape:
            raise ValueError(
                f"spin has shape {spin.shape} and buttons {buttons.shape}, "
                f"but {self.num_games} games need shape {shape} for both"
            )
        if spin.dtype != np.int8 or buttons.dtype != np.uint8:
            raise TypeError(
                f"spin is {spin.dtype} and buttons {buttons.dtype}: int8 and uint8 are needed; "
                "api/action_spaces.py converts the environment's actions"
            )
        happened = self._play(spin, buttons, out)
        if happened == REFUSED:
            raise ValueError(
                f"out has arrays of {[each.shape for each in out[:-1]]}: each of StepOutput's "
                f"needs a place for each of the {self.num_games} games, or none"
            )
        self.happened = happened
        return self.points, self.terminated, self.truncated

    def set_start_levels(self, levels: Sequence[int]) -> None:
        """Let new games draw one entry of ``levels``, with equal chances."""
        self.settings = replace(self.settings, start_level=list(levels))
        self._switches = self.settings.records()
        if self._job is not None:
            set_switches(self._job, self._switches)

    def fill(self, out: StepOutput, mask: NDArray[np.bool_]) -> None:
        """Write the present state of the games where ``mask`` is set into ``out``."""
        fill_output(self.ram, self.games, self.codes, out.observations, out.report, mask)
        if out.ends.shape[1] > 0:
            out.ends[0, mask] = self.terminated[mask]
            out.ends[1, mask] = self.truncated[mask]
        if out.rewards.shape[1] > 0:
            out.rewards[:, mask] = self.points[mask] * out.scale

    def observations(self) -> NDArray[np.float32]:
        """Return every game's observation as floats, a new array ``(num_games, num_codes)``."""
        return as_floats(self.codes)

    def clone(self, games: NDArray[np.int64] | list[int] | None = None) -> NDArray[np.uint8]:
        """Return the states of the chosen games (default: all) as bytes, ``(count, STATE_SIZE)``.

        A state is all that the future of a game depends on besides the settings and the actions:
        RAM image, random stream and record, the pending inputs included.
        """
        chosen = np.arange(self.num_games) if games is None else np.asarray(games, np.int64)
        states = np.empty((len(chosen), STATE_SIZE), np.uint8)
        states[:, :RAM_SIZE] = as_bytes(self.ram)[chosen]
        states[:, RAM_SIZE:STREAM_END] = rows_of(self.streams)[chosen]
        states[:, STREAM_END:] = rows_of(self.games)[chosen]
        return states

    def restore(
        self, states: NDArray[np.uint8], games: NDArray[np.int64] | list[int] | None = None
    ) -> None:
        """Restore ``states`` from ``clone()`` of any batch into the chosen games.

        The flags of the last step are cleared, the observation is rewritten.  Raises
        ``ValueError`` if ``states`` does not fit ``games`` or holds what no game has, such as a
        byte that leads the rules out of a table; the games are then unchanged.
        """
        chosen = np.arange(self.num_games) if games is None else np.asarray(games, np.int64)
        states = check_states(states, len(chosen))
        check_images(states)
        self._put_back(states, chosen)

    def _put_back(self, states: NDArray[np.uint8], chosen: NDArray[np.int64]) -> None:
        as_bytes(self.ram)[chosen] = states[:, :RAM_SIZE]
        rows_of(self.streams)[chosen] = states[:, RAM_SIZE:STREAM_END]
        rows_of(self.games)[chosen] = states[:, STREAM_END:]
        self.points[chosen] = 0
        self.terminated[chosen] = False
        self.truncated[chosen] = False
        mask = np.zeros(self.num_games, np.bool_)
        mask[chosen] = True
        self._observe(mask)
        self._started = not bool((self.games["status"] == NOT_STARTED).any())
        if not self._started:
            self.play_actions = None

    def close(self) -> None:
        """End the threads; the batch can still be used and then starts new ones."""
        if self._threads is not None:
            self._threads.close()

    def step_job(self) -> NDArray[np.int64]:
        """Return the job of ``step_games``: addresses, valid only as long as the batch."""
        if self._job is None:
            settings = self.settings
            constants = [
                self.num_games,
                len(self._switches),
                settings.frame_skip,
                settings.skip_idle,
                settings.max_ticks or NEVER,
                settings.max_steps or NEVER,
                settings.input_delay,
                self.autoreset,
                self.num_codes,
            ]
            self._job = new_job(self._arrays(), [int(each) for each in constants], self.num_threads)
        return self._job

    def _arrays(self) -> list[NDArray[Any]]:
        return [
            self.ram,
            self.streams,
            self.games,
            self.codes,
            self.last_ram,
            self.last_games,
            self.last_codes,
            self._switches,
            self.points,
            self.terminated,
            self.truncated,
            self._tables,
        ]

    def _begin_games(self, mask: NDArray[np.bool_]) -> None:
        reset_games(self.ram, self.streams, self.games, self._switches, mask)

    def _observe(self, mask: NDArray[np.bool_]) -> None:
        if self.num_codes:
            delay = int(self.settings.input_delay)
            observe_games(self.ram, self.games, self.codes, delay, self._tables, mask)

    def _play(self, spin: NDArray[np.int8], buttons: NDArray[np.uint8], out: StepOutput) -> int:
        """Step every game; bits of what happened."""
        if self._stepper is None:
            self._stepper = self._new_stepper()
        if self.play_actions is None:
            self.play_actions = partial(self._stepper, *self._controls, True)
        try:
            return self._stepper(spin, buttons, *NOT_ACTING, *out)
        except TypeError:  # The kernel takes no strided arrays and no read-only ones.
            return self._stepper(spin.copy(), buttons.copy(), *NOT_ACTING, *out)

    def _new_stepper(self) -> Callable[..., int]:
        """Return ``step_games`` with the arguments bound that never change."""
        prepare_steps()
        job = self.step_job()
        if self.num_threads == 1:
            return partial(step_games, job, ALONE)
        self._threads = StepThreads(job, self._arrays(), self.num_threads)
        weakref.finalize(self, self._threads.close)
        return self._threads.step

    def __getstate__(self) -> dict[str, Any]:
        own = dict.fromkeys(("_job", "_stepper", "_threads", "play_actions"))
        return {**self.__dict__, **own}


def rows_of(records: NDArray[np.void]) -> NDArray[np.uint8]:
    """Return the bytes of the records, one row each, without copying."""
    return records.view(np.uint8).reshape(len(records), records.dtype.itemsize)

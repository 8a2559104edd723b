"""The kernels that Python calls to step, reset and observe the games of a batch."""

from __future__ import annotations

import threading
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.engine.hybrid_controls import NOT_ACTING, write_controls
from tempest_agent.envs.features.floats import expect_floats, write_floats
from tempest_agent.envs.features.layout import NUM_FEATURES
from tempest_agent.envs.machine.compiled import int64, kernel, rule
from tempest_agent.envs.machine.intrinsics import array_at, bits_of, fetch_or, float_of, load
from tempest_agent.envs.machine.memory import RAM_DTYPE
from tempest_agent.envs.machine.randomness import STREAM_DTYPE
from tempest_agent.envs.machine.switches import SWITCHES_DTYPE

from . import step_job as at
from .game_step import (
    GAME_DTYPE,
    RUNNING,
    TERMINATED,
    TRUNCATED,
    begin_game,
    observe_game,
    play_step,
    rest_game,
)
from .report import REPORT_SIZE, write_report
from .work_sharing import await_share, claim, finish, linger, open_shares

NOTED, ENDED, UNFINISHED, REFUSED = 1, 2, 4, 8
"""Bits of what happened in a step: a life was lost or a game is over as far as ``info`` goes; a
game is terminated or truncated; and of ``step_games`` alone: a thread is still playing; nothing
was played."""


@rule
def _play_games(job: NDArray[np.int64], start: int, stop: int) -> int:
    """Step the games ``start`` to ``stop - 1``; what happened."""
    total = job[at.TOTAL]
    ram = array_at(job[at.RAM], (total,), RAM_DTYPE)
    streams = array_at(job[at.STREAMS], (total,), STREAM_DTYPE)
    games = array_at(job[at.GAMES], (total,), GAME_DTYPE)
    codes = array_at(job[at.CODES], (total, NUM_FEATURES), np.int8)
    last_ram = array_at(job[at.LAST_RAM], (total,), RAM_DTYPE)
    last_games = array_at(job[at.LAST_GAMES], (total,), GAME_DTYPE)
    last_codes = array_at(job[at.LAST_CODES], (total, NUM_FEATURES), np.int8)
    switches = array_at(job[at.SWITCHES], (job[at.NUM_SWITCHES],), SWITCHES_DTYPE)
    points = array_at(job[at.POINTS], (total,), np.int32)
    terminated = array_at(job[at.TERMINATED], (total,), np.bool_)
    truncated = array_at(job[at.TRUNCATED], (total,), np.bool_)
    spin = array_at(job[at.SPIN], (total,), np.int8)
    buttons = array_at(job[at.BUTTONS], (total,), np.uint8)
    floats = array_at(job[at.FLOATS], (total, NUM_FEATURES), np.float32)
    report = array_at(job[at.REPORT], (total, REPORT_SIZE), np.int64)
    ends = array_at(job[at.ENDS], (2, total), np.bool_)
    rewards = array_at(job[at.REWARDS], (2, total), np.float64)
    scale = float_of(job[at.SCALE])
    frame_skip, skip_idle = job[at.FRAME_SKIP], job[at.SKIP_IDLE] != 0
    max_ticks, max_steps = job[at.MAX_TICKS], job[at.MAX_STEPS]
    input_delay = job[at.INPUT_DELAY]
    autoreset, observing = job[at.AUTORESET] != 0, job[at.OBSERVING] != 0
    floating, reporting = job[at.FLOATING] != 0, job[at.REPORTING] != 0
    ending, rewarding = job[at.ENDING] != 0, job[at.REWARDING] != 0
    happened = int64(0)
    for i in range(start, stop):
        game = games[i]
        if floating:
            expect_floats(floats[i], 1)
        if game.status == RUNNING:
            play_step(
                ram[i],
                streams[i],
                game,
                int64(spin[i]),
                int64(buttons[i]),
                frame_skip,
                skip_idle,
                max_ticks,
                max_steps,
                input_delay,
            )
            if floating:
                expect_floats(floats[i], 2)
            if observing:
                observe_game(ram[i], game, input_delay, codes[i])
        else:
            rest_game(game)
        points[i] = game.points
        over, cut = game.status == TERMINATED, game.status == TRUNCATED
        terminated[i] = over
        truncated[i] = cut
        if ending:
            ends[0, i] = over
            ends[1, i] = cut
        if rewarding:
            rewards[0, i] = game.points * scale
            rewards[1, i] = rewards[0, i]
        if over or cut:
            happened |= ENDED
        if autoreset and game.status != RUNNING:
            last_ram[i] = ram[i]
            last_games[i] = games[i]
            begin_game(ram[i], streams[i], game, switches)
            if observing:
                # For whole rows Numba would compile an error message as well, which takes seconds.
                for code in range(NUM_FEATURES):
                    last_codes[i, code] = codes[i, code]
                observe_game(ram[i], game, input_delay, codes[i])
        if floating:
            write_floats(codes[i], floats[i])
            if i + 1 < stop:
                expect_floats(floats[i + 1], 0)
        if reporting:
            happened |= NOTED * write_report(ram[i], game, report[i])
    return happened


@rule
def _fit(
    total: int,
    floats: NDArray[np.float32],
    report: NDArray[np.int64],
    ends: NDArray[np.bool_],
    rewards: NDArray[np.float64],
) -> bool:
    """Return whether each of a step's outputs has a place for every game, or none."""
    if len(floats) > 0 and floats.shape != (total, NUM_FEATURES):
        return False
    if len(report) > 0 and report.shape != (total, REPORT_SIZE):
        return False
    if ends.shape[1] > 0 and ends.shape != (2, total):
        return False
    return rewards.shape[1] == 0 or rewards.shape == (2, total)


@rule
def _note_arrays(
    job: NDArray[np.int64],
    spin: NDArray[np.int8],
    buttons: NDArray[np.uint8],
    floats: NDArray[np.float32],
    report: NDArray[np.int64],
    ends: NDArray[np.bool_],
    rewards: NDArray[np.float64],
    scale: float,
) -> None:
    job[at.SPIN], job[at.BUTTONS] = spin.ctypes.data, buttons.ctypes.data
    job[at.FLOATS], job[at.FLOATING] = floats.ctypes.data, len(floats) > 0
    job[at.REPORT], job[at.REPORTING] = report.ctypes.data, len(report) > 0
    job[at.ENDS], job[at.ENDING] = ends.ctypes.data, ends.shape[1] > 0
    job[at.REWARDS], job[at.REWARDING] = rewards.ctypes.data, rewards.shape[1] > 0
    job[at.SCALE] = bits_of(scale)


@kernel
def step_games(
    job: NDArray[np.int64],
    share: int,
    spin: NDArray[np.int8],
    buttons: NDArray[np.uint8],
    acting: bool,
    pairs: NDArray[np.int64],
    turns: NDArray[np.float32],
    floats: NDArray[np.float32],
    report: NDArray[np.int64],
    ends: NDArray[np.bool_],
    rewards: NDArray[np.float64],
    scale: float,
) -> int:
    """Play one step of the games of ``job``; return what happened (``NOTED``, ``ENDED``, ...).

    ``spin`` and ``buttons`` are what the step puts in.  When ``acting`` they are written first
    from hybrid actions, ``pairs`` and ``turns``; where these are none, the answer is ``REFUSED``
    and nothing is played, nor if an output does not fit.  ``floats``, ``report``, ``ends`` and
    ``rewards``, where they have a place for each game, receive what ``StepOutput`` says.

    The owner of ``share`` 0 calls this for every step, the other threads once: they play in all
    steps that come, whatever their other arguments, and return when it is time to sleep.
    """
    if share == 0:
        total = job[at.TOTAL]
        if not _fit(total, floats, report, ends, rewards):
            return REFUSED
        if acting:
            if len(pairs) != total or turns.shape != (total, 1):
                return REFUSED
            if write_controls(pairs, turns, spin, buttons) != 0:
                return REFUSED
        _note_arrays(job, spin, buttons, floats, report, ends, rewards, scale)
        if job[at.THREADS] == 1:
            return _play_games(job, 0, job[at.TOTAL])
        job[at.HAPPENED] = 0
        open_shares(job)
    woken = True
    while share == 0 or await_share(job, share, woken):
        woken = False
        start, stop = claim(job, share)
        while start < stop:
            happened = _play_games(job, start, stop)
            if happened != 0:
                fetch_or(job, at.HAPPENED, happened)
            finish(job, stop - start)
            start, stop = claim(job, share)
        if share == 0:
            return load(job, at.HAPPENED) if linger(job) else UNFINISHED
    return 0


NOTHING: tuple[Any, ...] = (
    np.empty(0, np.int8),
    np.empty(0, np.uint8),
    *NOT_ACTING,
    np.empty((0, 0), np.float32),
    np.empty((0, 0), np.int64),
    np.empty((0, 0), np.bool_),
    np.empty((0, 0)),
    0.0,
)
"""What ``step_games`` takes besides job and share, empty."""

_lock = threading.Lock()


def prepare_steps() -> None:
    """Compile ``step_games``, or find it on disk; from now on it takes arrays of its types alone.

    For others it raises ``TypeError``, where Numba would compile for most of a minute.
    """
    compiled: Any = step_games
    wanted = tuple(map(numba.typeof, (np.empty(0, np.int64), 0, *NOTHING)))
    with _lock:
        if wanted not in compiled.signatures:
            compiled.compile(wanted)
        compiled.disable_compile()


@kernel
def reset_games(
    ram: NDArray[np.void],
    streams: NDArray[np.void],
    games: NDArray[np.void],
    switches: NDArray[np.void],
    mask: NDArray[np.bool_],
) -> None:
    """Start new games where ``mask`` is set."""
    for i in range(len(ram)):
        if mask[i]:
            begin_game(ram[i], streams[i], games[i], switches)


@kernel
def observe_games(
    ram: NDArray[np.void],
    games: NDArray[np.void],
    codes: NDArray[np.int8],
    input_delay: int,
    mask: NDArray[np.bool_],
) -> None:
    """Write the observation codes of the games where ``mask`` is set."""
    for i in range(len(ram)):
        if mask[i]:
            observe_game(ram[i], games[i], input_delay, codes[i])


@kernel
def fill_output(
    ram: NDArray[np.void],
    games: NDArray[np.void],
    codes: NDArray[np.int8],
    floats: NDArray[np.float32],
    report: NDArray[np.int64],
    mask: NDArray[np.bool_],
) -> None:
    """Write what ``step_games`` writes into ``floats`` and ``report``, where ``mask`` is set."""
    for i in range(len(ram)):
        if mask[i]:
            if len(floats) > 0:
                write_floats(codes[i], floats[i])
            if len(report) > 0:
                write_report(ram[i], games[i], report[i])

"""The kernels that Python calls to step, reset and observe the games of a batch."""

from __future__ import annotations

import threading
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.engine.hybrid_controls import NOT_ACTING, write_controls
from tempest_agent.envs.features.floats import expect_floats, write_floats
from tempest_agent.envs.forecast.table import TABLE_DTYPE
from tempest_agent.envs.machine.compiled import int64, kernel, rule
from tempest_agent.envs.machine.intrinsics import array_at, bits_of, float_of
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
from .work_sharing import claim, finish, linger, open_shares

NOTED, ENDED, REFUSED = 1, 2, 4
"""Bits of what happened in a step: a life was lost or a game is over, so that ``info`` names a
cause; a game is terminated or truncated; nothing was played, because the arrays do not fit."""

ALONE = -1
"""Instead of a thread's share: the caller plays all games."""


@rule
def _play_games(job: NDArray[np.int64], share: int, start: int, stop: int) -> int:
    """Step the games ``start`` to ``stop - 1`` in the thread of ``share``; what happened."""
    total, num_codes = job[at.TOTAL], job[at.NUM_CODES]
    ram = array_at(job[at.RAM], (total,), RAM_DTYPE)
    streams = array_at(job[at.STREAMS], (total,), STREAM_DTYPE)
    games = array_at(job[at.GAMES], (total,), GAME_DTYPE)
    codes = array_at(job[at.CODES], (total, num_codes), np.int8)
    last_ram = array_at(job[at.LAST_RAM], (total,), RAM_DTYPE)
    last_games = array_at(job[at.LAST_GAMES], (total,), GAME_DTYPE)
    last_codes = array_at(job[at.LAST_CODES], (total, num_codes), np.int8)
    switches = array_at(job[at.SWITCHES], (job[at.NUM_SWITCHES],), SWITCHES_DTYPE)
    points = array_at(job[at.POINTS], (total,), np.int32)
    terminated = array_at(job[at.TERMINATED], (total,), np.bool_)
    truncated = array_at(job[at.TRUNCATED], (total,), np.bool_)
    table = array_at(job[at.TABLES], (job[at.THREADS],), TABLE_DTYPE)[share]
    spin = array_at(job[at.SPIN], (total,), np.int8)
    buttons = array_at(job[at.BUTTONS], (total,), np.uint8)
    floats = array_at(job[at.FLOATS], (total, num_codes), np.float32)
    report = array_at(job[at.REPORT], (total, REPORT_SIZE), np.int64)
    ends = array_at(job[at.ENDS], (2, total), np.bool_)
    rewards = array_at(job[at.REWARDS], (2, total), np.float64)
    scale = float_of(job[at.SCALE])
    frame_skip, skip_idle = job[at.FRAME_SKIP], job[at.SKIP_IDLE] != 0
    max_ticks, max_steps = job[at.MAX_TICKS], job[at.MAX_STEPS]
    input_delay = job[at.INPUT_DELAY]
    autoreset, observing = job[at.AUTORESET] != 0, num_codes > 0
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
                observe_game(ram[i], game, input_delay, table, codes[i])
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
                for code in range(num_codes):
                    last_codes[i, code] = codes[i, code]
                observe_game(ram[i], game, input_delay, table, codes[i])
        if floating:
            write_floats(codes[i], floats[i])
            if i + 1 < stop:
                expect_floats(floats[i + 1], 0)
        if reporting:
            happened |= NOTED * write_report(ram[i], game, report[i])
    return happened


@rule
def _take_arrays(
    job: NDArray[np.int64],
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
) -> bool:
    """Write a step's arrays into ``job``; return whether they fit.

    ``spin`` and ``buttons`` are the step's controls.  With ``acting`` they are first written from
    hybrid actions, ``pairs`` and ``turns``.  ``floats``, ``report``, ``ends`` and ``rewards`` have
    a place for every game, or none.
    """
    total = job[at.TOTAL]
    if len(floats) > 0 and floats.shape != (total, job[at.NUM_CODES]):
        return False
    if len(report) > 0 and report.shape != (total, REPORT_SIZE):
        return False
    if ends.shape[1] > 0 and ends.shape != (2, total):
        return False
    if rewards.shape[1] > 0 and rewards.shape != (2, total):
        return False
    if acting:
        if len(pairs) != total or turns.shape != (total, 1):
            return False
        if write_controls(pairs, turns, spin, buttons) != 0:
            return False
    job[at.SPIN], job[at.BUTTONS] = spin.ctypes.data, buttons.ctypes.data
    job[at.FLOATS], job[at.FLOATING] = floats.ctypes.data, len(floats) > 0
    job[at.REPORT], job[at.REPORTING] = report.ctypes.data, len(report) > 0
    job[at.ENDS], job[at.ENDING] = ends.ctypes.data, ends.shape[1] > 0
    job[at.REWARDS], job[at.REWARDING] = rewards.ctypes.data, rewards.shape[1] > 0
    job[at.SCALE] = bits_of(scale)
    return True


@kernel
def open_step(
    job: NDArray[np.int64],
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
    """Let threads play a step with these arrays; return ``REFUSED`` if they do not fit, else 0."""
    if not _take_arrays(
        job, spin, buttons, acting, pairs, turns, floats, report, ends, rewards, scale
    ):
        return REFUSED
    open_shares(job)
    return 0


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
    """Play one step of the games of ``job``; return what happened.

    With the ``share`` ``ALONE`` one thread plays all games with the arrays given, see
    ``_take_arrays``; nothing is played, and the answer is ``REFUSED``, if they do not fit.
    Otherwise the thread of that share plays in the step that ``open_step`` opened.
    """
    if share == ALONE:
        if not _take_arrays(
            job, spin, buttons, acting, pairs, turns, floats, report, ends, rewards, scale
        ):
            return REFUSED
        return _play_games(job, 0, 0, job[at.TOTAL])
    start, stop = claim(job, share)
    while start < stop:
        finish(job, share, stop - start, _play_games(job, share, start, stop))
        start, stop = claim(job, share)
    if share == 0:
        linger(job)
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
"""The arrays of a step, empty."""

_lock = threading.Lock()


def prepare_steps() -> None:
    """Compile both kernels, or find them on disk; from now on they take arrays of these types only.

    For others they raise ``TypeError``, where Numba would compile for most of a minute.
    """
    job = np.empty(0, np.int64)
    wanted: list[tuple[Any, tuple[Any, ...]]] = [
        (open_step, (job, *NOTHING)),
        (step_games, (job, ALONE, *NOTHING)),
    ]
    with _lock:
        for compiled, arguments in wanted:
            types = tuple(map(numba.typeof, arguments))
            if types not in compiled.signatures:
                compiled.compile(types)
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
    tables: NDArray[np.void],
    mask: NDArray[np.bool_],
) -> None:
    """Write the observation codes of the games where ``mask`` is set."""
    for i in range(len(ram)):
        if mask[i]:
            observe_game(ram[i], games[i], input_delay, tables[0], codes[i])


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

"""Speed of the environment.

The ticks are real play: the scripted expert's actions, recorded beforehand in games that start on
all levels, are replayed from the same states with the same random streams.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.bench.figures import Figure, compared, figure
from tempest_agent.bench.timing import fastest, paired, seconds_of
from tempest_agent.envs.api.vector_env import TempestVectorEnv
from tempest_agent.envs.arcade.tick import tick
from tempest_agent.envs.engine.batch import NO_OUTPUT, GameBatch, rows_of
from tempest_agent.envs.engine.hybrid_controls import NOT_ACTING
from tempest_agent.envs.engine.settings import GameSettings
from tempest_agent.envs.engine.step_kernels import ALONE, step_games
from tempest_agent.envs.machine.compiled import int64, kernel
from tempest_agent.envs.machine.inputs import FIRE, SPINNER_MAX, ZAP, set_inputs
from tempest_agent.experts import make_teacher

SETTINGS = GameSettings(start_level=range(1, 100), skip_idle=False)
GAMES = 64
"""Games in parallel when one core's speed is measured: their images fit its cache."""

MANY_GAMES = 1024
TICKS = 1500
MANY_TICKS = 200
CROWD_GAMES = 16_384
"""Games whose images exceed all caches."""

CROWD_TICKS = 40
PAIRS = 25
CROWD_PAIRS = 9
WARM_STARTS = 3
ALE_FRAMES = 5_000
ALE_GAME = "space_invaders"


FIRST_STEP = (
    "import gymnasium\n"
    "env = gymnasium.make('tempest_agent:Tempest-v0')\n"
    "env.reset(seed=0)\n"
    "env.step(env.action_space.sample())\n"
)


@dataclass(frozen=True)
class Play:
    """Recorded play: initial states and the inputs of each tick, ``(ticks, games)``."""

    states: NDArray[np.uint8]
    spins: NDArray[np.int8]
    buttons: NDArray[np.uint8]

    @property
    def decisions(self) -> int:
        """Ticks of all games together."""
        return self.spins.size


def measure() -> dict[str, Figure]:
    """Return every figure of the environment, see ``docs/commands.md``."""
    few, many = record(GAMES, TICKS), record(MANY_GAMES, MANY_TICKS)
    seconds = fastest(lambda: _replay(few), lambda: _steps(few, threads=1))
    ticks, steps = (few.decisions / each for each in seconds)
    vector, batch = _vector_and_batch(many)
    (two, one), (both, alone) = paired(
        PAIRS,
        (lambda: _steps(many, threads=2), lambda: _steps(many, threads=1)),
        (
            lambda: _at_once(_compiled_steps(many), _compiled_steps(many)),
            lambda: _compiled_steps(many),
        ),
    )
    crowd = record(CROWD_GAMES, CROWD_TICKS)
    (crowd_two, crowd_one), (at_once, by_few) = paired(
        CROWD_PAIRS,
        (lambda: _steps(crowd, threads=2), lambda: _steps(crowd, threads=1)),
        (lambda: _compiled_steps(crowd), lambda: _compiled_steps(crowd, together=GAMES)),
    )
    ale = _ale_frames_per_second()
    return {
        "ticks_per_second_core": figure(ticks, "ticks/s"),
        "steps_per_second_core_features": figure(steps, "steps/s"),
        "two_threads_ratio": compared(
            one / two,
            f"speed of 2 threads to 1, {MANY_GAMES} games with features",
            many.decisions / one,
        ),
        "two_batches_ratio": compared(
            2 * alone / both,
            f"speed of 2 batches of {MANY_GAMES} games at once, which share nothing, to one alone: "
            "what the machine allows",
            many.decisions / alone,
        ),
        "two_threads_crowd_ratio": compared(
            crowd_one / crowd_two,
            f"speed of 2 threads to 1, {CROWD_GAMES} games with features",
            crowd.decisions / crowd_one,
        ),
        "vector_overhead": compared(
            batch / vector,
            "time that Gymnasium's vector form adds to the batched step with the same "
            f"float observations, of the same {MANY_GAMES} games",
            many.decisions / batch,
            value=vector / batch - 1.0,
        ),
        "many_games_ratio": compared(
            by_few / at_once,
            f"speed of {CROWD_GAMES} games at once to {GAMES} at a time, with features",
            crowd.decisions / by_few,
        ),
        "warm_start_seconds": figure(
            min(_first_step(None) for _ in range(WARM_STARTS)),
            f"s from nothing to the first step, the least of {WARM_STARTS}",
        ),
        "first_compile_seconds": figure(_first_compile(), "s the same with nothing compiled"),
        "bytes_per_game": figure(_bytes_per_game(), "bytes"),
        "ale_ratio": figure(None, "needs ale-py: pip install ale-py")
        if ale is None
        else compared(
            steps / ale, f"steps with features to ALE frames without picture ({ALE_GAME})", ale
        ),
    }


def record(games: int, ticks: int) -> Play:
    """Let the expert play ``games`` games for ``ticks`` ticks, and record its inputs."""
    batch = GameBatch(games, SETTINGS, observe=False)
    batch.reset(seeds=np.random.SeedSequence(1))
    states = batch.clone()
    expert = make_teacher("expert")
    spins = np.zeros((ticks, games), np.int8)
    buttons = np.zeros((ticks, games), np.uint8)
    for at in range(ticks):
        batch.step(*expert.act(batch.ram))
        spins[at] = batch.games["executed_spin"]
        buttons[at] = batch.games["executed_buttons"]
    return Play(states, spins, buttons)


@kernel
def replay_ticks(
    ram: NDArray[np.void],
    streams: NDArray[np.void],
    spins: NDArray[np.int8],
    buttons: NDArray[np.uint8],
) -> None:
    """Play recorded inputs through the bare game."""
    for at in range(spins.shape[0]):
        for game in range(spins.shape[1]):
            pressed = int64(buttons[at, game])
            set_inputs(ram[game], int64(spins[at, game]), pressed & FIRE != 0, pressed & ZAP != 0)
            tick(ram[game], streams[game])


@kernel
def replay_steps(
    job: NDArray[np.int64],
    actions: Any,
    spins: NDArray[np.int8],
    buttons: NDArray[np.uint8],
    outputs: Any,
) -> None:
    """Run all steps of a batch in one call, without overhead."""
    acting, pairs, turns = actions
    floats, report, ends, rewards, scale = outputs
    for at in range(spins.shape[0]):
        step_games(
            job, ALONE, spins[at], buttons[at], acting, pairs, turns,
            floats, report, ends, rewards, scale,
        )  # fmt: skip


def _replay(play: Play) -> Callable[[], None]:
    batch = GameBatch(play.spins.shape[1], SETTINGS)
    batch.restore(play.states)
    return lambda: replay_ticks(batch.ram, batch.streams, play.spins, play.buttons)


def _compiled_steps(play: Play, together: int = 0) -> Callable[[], None]:
    """Prepare ``play``'s steps as one compiled call, ``together`` games at a time (0: all)."""
    games = play.spins.shape[1]
    together = together or games
    whole, batch = GameBatch(games, SETTINGS), GameBatch(together, SETTINGS)
    whole.restore(play.states)
    batch.restore(play.states[:together])
    # As bytes, without restore()'s observations: putting games in costs next to nothing.
    pairs = [
        (rows_of(batch.ram), rows_of(whole.ram)),
        (rows_of(batch.streams), rows_of(whole.streams)),
        (rows_of(batch.games), rows_of(whole.games)),
    ]
    inputs = [
        (np.ascontiguousarray(play.spins[:, at : at + together]),
         np.ascontiguousarray(play.buttons[:, at : at + together]))
        for at in range(0, games, together)
    ]  # fmt: skip

    def run() -> None:
        for group, (spins, buttons) in enumerate(inputs):
            for here, there in pairs:
                here[:] = there[group * together : (group + 1) * together]
            replay_steps(batch.step_job(), NOT_ACTING, spins, buttons, NO_OUTPUT)

    return run


def _at_once(*runs: Callable[[], None]) -> Callable[[], None]:
    """Return a run of all ``runs`` at once, each in its own thread."""

    def run() -> None:
        with ThreadPoolExecutor(len(runs)) as pool:
            for each in [pool.submit(one) for one in runs]:
                each.result()

    return run


def _steps(play: Play, threads: int) -> Callable[[], None]:
    """Prepare ``play``'s steps, with observations as codes."""
    batch = GameBatch(play.spins.shape[1], SETTINGS, num_threads=threads)
    batch.restore(play.states)

    def run() -> None:
        for spin, buttons in zip(play.spins, play.buttons, strict=True):
            batch.step(spin, buttons)
        batch.close()

    return run


def _vector_and_batch(play: Play) -> tuple[float, float]:
    """Return the seconds of ``play``'s steps through the vector environment, and its batch alone.

    Both use the same games and memory, because the effect of another memory layout may exceed the
    difference.  So they take turns step by step, alternating who is first.  Actions are new arrays,
    as an agent makes them.

    The least time of each step counts: the work is the same in every run, and other load, which is
    often more than the difference, only adds to it.
    """
    env = TempestVectorEnv(play.spins.shape[1], start_level=range(1, 100), skip_idle=False)
    observations = env.reset(seed=0)[0]
    nothing = NO_OUTPUT.observations
    knob = (play.spins / np.float32(SPINNER_MAX)).astype(np.float32)[..., None]
    pairs = play.buttons.astype(np.int64)
    seconds = np.zeros((PAIRS + 1, 2, len(pairs)))
    for number in range(2 * (PAIRS + 1)):
        env.batch.restore(play.states)
        for at in range(len(pairs)):
            way = (at + number) % 2
            if way == 0:
                action = {"buttons": pairs[at].copy(), "spinner": knob[at].copy()}
                # The last observations are released, so the environment reuses their memory.
                observations, out = nothing, NO_OUTPUT
                began = time.perf_counter()
                observations = env.step(action)[0]
            else:
                out = NO_OUTPUT._replace(observations=observations)
                spin, buttons = play.spins[at].copy(), play.buttons[at].copy()
                began = time.perf_counter()
                env.batch.step(spin, buttons, out)
            seconds[number // 2, way, at] = time.perf_counter() - began
    vector, batch = seconds[1:].min(0).sum(1)  # The first ones compile.
    return float(vector), float(batch)


def _first_step(cache: str | None) -> float:
    """Return the seconds from the start of a new process to its first environment step."""
    environment = dict(os.environ)
    if cache is not None:
        environment["TEMPEST_AGENT_CACHE"] = cache
    command = [sys.executable, "-c", FIRST_STEP]
    return seconds_of(lambda: subprocess.run(command, check=True, env=environment))


def _first_compile() -> float:
    with tempfile.TemporaryDirectory() as folder:
        return _first_step(folder)


def _bytes_per_game() -> float:
    batch = GameBatch(1, SETTINGS)
    arrays = [each for each in vars(batch).values() if isinstance(each, np.ndarray)]
    shared = batch.settings.records().nbytes  # The start levels to choose from.
    return float(sum(array.nbytes for array in arrays) - shared)


def _ale_frames_per_second() -> float | None:
    """Return frames per second of an Atari 2600 game, RAM only; None without ALE."""
    try:
        import ale_py
        from ale_py import roms
    except ImportError:
        return None
    rom = roms.get_rom_path(ALE_GAME)
    if rom is None:
        return None
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    console = ale_py.ALEInterface()
    console.setInt("random_seed", 1)
    console.loadROM(rom)
    actions = console.getMinimalActionSet()
    chosen = np.random.default_rng(1).integers(0, len(actions), ALE_FRAMES)

    def prepare() -> Callable[[], None]:
        console.reset_game()
        return run

    def run() -> None:
        for choice in chosen:
            console.act(actions[choice])
            console.getRAM()
            if console.game_over():
                console.reset_game()

    return ALE_FRAMES / fastest(prepare)[0]

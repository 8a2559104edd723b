"""Damaged states and recordings, given to all that reads one: refused in a line, or played safely.

A program, ``NUMBA_BOUNDSCHECK=1 python tests/support/fuzz_states.py COUNT [SEED]``, tries COUNT
damaged images and prints what became of them; exit status 1 where one led out of an array, broke
what always holds, or ended in another error than a line that says what is wrong.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from places import DATA

from tempest_agent.envs.api.info import describe_games
from tempest_agent.envs.api.rewards import cleared_share
from tempest_agent.envs.api.tempest_env import TempestEnv
from tempest_agent.envs.api.vector_env import TempestVectorEnv
from tempest_agent.envs.arcade.playable import find_misfit
from tempest_agent.envs.engine.batch import GameBatch
from tempest_agent.envs.engine.game_step import GAME_DTYPE, RUNNING
from tempest_agent.envs.engine.settings import GameSettings
from tempest_agent.envs.engine.state_check import STATE_SIZE
from tempest_agent.envs.features.floats import as_floats
from tempest_agent.envs.features.layout import NUM_FEATURES
from tempest_agent.envs.features.observe import observe
from tempest_agent.envs.machine import memory as m
from tempest_agent.envs.mame import bookkeeping
from tempest_agent.envs.recordings.recording import RecordingError
from tempest_agent.envs.recordings.verify import verify_files
from tempest_agent.envs.render.renderer import Renderer, grayscale
from tempest_agent.experts import Budget, Novice, Planner, ScriptedExpert

RECORDINGS = sorted((DATA / "recordings").glob("*.npz"))
BLOCK = 256
TICKS = 200
VALUES = (0x00, 0x01, 0x7F, 0x80, 0xFF, None)
"""What each single cell is set to in turn; None: a random byte."""

_RENDERERS = (Renderer(84, 112, glow=False), Renderer(240, 320))
_BUDGET = Budget(lanes=5, horizon=12, streams=1, fire_choices=2)


@dataclass
class Report:
    """What became of the damaged images."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def fail(self, what: str, error: object, image: NDArray[np.uint8]) -> None:
        """Note a failure, with the image that brought it about."""
        kept = Path(tempfile.gettempdir()) / f"damaged_{len(self.failures)}.npy"
        np.save(kept, image)
        self.failures.append(f"{what}: {error!r} ({kept})")
        print(self.failures[-1], file=sys.stderr, flush=True)


def real_states(random: np.random.Generator, ticks: int = 400) -> NDArray[np.uint8]:
    """States of games on all levels and settings, most of them in the midst of play."""
    states = []
    for difficulty in ("easy", "medium", "hard"):
        settings = GameSettings(
            start_level=range(1, 100), difficulty=difficulty, skip_idle=False, input_delay=2
        )
        batch = GameBatch(99, settings, autoreset=True)
        batch.reset(seeds=int(random.integers(2**31)))
        expert = ScriptedExpert()
        for tick in range(ticks):
            if tick % 40 == 39:
                states.append(batch.clone())
            spin, buttons = expert.act(batch.ram)
            wild = random.random(99) < 0.3
            spin[wild] = random.integers(-31, 32, int(wild.sum()), np.int8)
            buttons[wild] = random.integers(0, 4, int(wild.sum()), np.uint8)
            batch.step(spin, buttons)
    return np.concatenate(states)


def recorded_images(random: np.random.Generator, count: int = 50) -> NDArray[np.uint8]:
    """Images of the real machine, some of them from between two games."""
    images = []
    for path in RECORDINGS:
        with np.load(path) as data:
            ram = data["ram"]
        images.append(ram[random.integers(0, len(ram), count)])
    return np.concatenate(images)


def damaged(
    states: NDArray[np.uint8], count: int, random: np.random.Generator
) -> Iterator[NDArray[np.uint8]]:
    """Blocks of damaged states, ``(BLOCK, STATE_SIZE)`` each, ``count`` states in all."""
    contract = m.CONTRACT_ADDRESSES
    single = random.permutation(m.RAM_SIZE * len(VALUES))
    made = 0
    while made < count:
        block = states[random.integers(0, len(states), min(BLOCK, count - made))].copy()
        for number, state in enumerate(block, made):
            way = number % 8
            if way < 3 and number // 8 * 3 + way < len(single):
                cell, value = divmod(int(single[number // 8 * 3 + way]), len(VALUES))
                chosen = VALUES[value]
                state[cell] = random.integers(256) if chosen is None else chosen
                continue
            if number % 1000 == 7:
                state[: m.RAM_SIZE] = random.integers(0, 256, m.RAM_SIZE)
                continue
            if number % 5000 == 15:
                state[: m.RAM_SIZE] = random.choice([0x00, 0xFF])
                continue
            among = contract if way % 2 else np.arange(m.RAM_SIZE if way < 7 else STATE_SIZE)
            cells = random.choice(among, random.integers(1, 65 if way < 6 else 9))
            state[cells] = random.integers(0, 256, len(cells))
        yield block
        made += len(block)


def read_images(images: NDArray[np.void], random: np.random.Generator) -> None:
    """Everything that only looks at images, which may hold any bytes."""
    count = len(images)
    codes = observe(images)
    assert codes.min() >= -127
    assert np.abs(as_floats(codes)).max() <= 1
    share = cleared_share(images)
    assert ((share >= 0) & (share <= 1)).all()
    records = np.zeros(count, GAME_DTYPE)
    describe_games(records, images)
    before = images.copy()
    for at in range(count):
        bookkeeping.before_tick(images, records, at, 31, 3, 1)
        bookkeeping.after_tick(before[at - 1 : at] if at else before[:1], images, records, at)
        bookkeeping.finish_step(images, records, at, 10**6, 10**6)
    pending = np.stack(
        [random.integers(-31, 32, (count, 3)), random.integers(0, 4, (count, 3))], axis=2
    ).astype(np.int16)
    for player in (ScriptedExpert(), Novice(0.7), Planner(_BUDGET)):
        for inputs in (None, pending):
            spin, buttons = player.act(images, inputs)
            assert np.abs(spin.astype(np.int64)).max() <= 31
            assert buttons.max() <= 3
    for number, image in enumerate(images):
        picture = _RENDERERS[number % 8 == 0].draw(image, None if number % 2 else 10**7)
        assert picture.ndim == 3
        grayscale(picture)
    assert (images == before).all()


def play_states(states: NDArray[np.uint8], random: np.random.Generator) -> int:
    """Restore the states that are not refused and play on; how many were not."""
    settings = GameSettings(input_delay=2, skip_idle=bool(random.integers(2)))
    taken = np.concatenate([state[None] for state in states if _taken(state, settings)] or [[]])
    if len(taken) == 0:
        return 0
    batch = GameBatch(len(taken), settings, autoreset=bool(random.integers(2)))
    batch.restore(taken)
    for _ in range(TICKS):
        spin = random.integers(-31, 32, len(taken), np.int8)
        buttons = random.integers(0, 4, len(taken), np.uint8)
        batch.step(spin, buttons)
        assert batch.codes.min() >= -127
        # What the rules make of a state that was taken is one that is taken.
        assert find_misfit(batch.ram, batch.games["status"] == RUNNING) is None
    batch.restore(batch.clone())
    return len(taken)


def _expect_one_line(error: Exception) -> None:
    if "\n" in str(error):
        raise AssertionError("an error of more than a line") from error


def _taken(state: NDArray[np.uint8], settings: GameSettings) -> bool:
    batch = GameBatch(1, settings)
    before = batch.clone()
    try:
        batch.restore(state[None])
    except ValueError as error:
        _expect_one_line(error)
        assert batch.clone().tobytes() == before.tobytes()
        return False
    return True


def play_environments(state: NDArray[np.uint8], random: np.random.Generator) -> None:
    """The same through both forms of the environment, in which a state has a head of its own."""
    env: Any = TempestEnv(input_delay=2, obs_type="grayscale", render_mode="rgb_array")
    vector: Any = TempestVectorEnv(2, input_delay=2)
    row = np.concatenate([np.full(1, 2, np.uint8), state])
    try:
        env.restore_state(b"TEMPEST2" + row.tobytes())
        assert vector.restore_states(np.stack([row, row])).shape == (2, NUM_FEATURES)
    except ValueError as error:
        _expect_one_line(error)
        return
    vector.action_space.seed(int(random.integers(2**31)))
    env.action_space.seed(int(random.integers(2**31)))
    for _ in range(10):
        env.step(env.action_space.sample())
        env.render()
        vector.step(vector.action_space.sample())


def slices(random: np.random.Generator) -> Iterator[dict[str, NDArray[Any]]]:
    """Without end: 40 ticks of a recording, as the arrays of a recording of its own."""
    loaded = []
    for path in RECORDINGS[::3]:
        with np.load(path) as data:
            loaded.append({key: data[key] for key in data.files})
    while True:
        arrays = loaded[random.integers(len(loaded))]
        first = int(random.integers(0, len(arrays["ram"]) - 40))
        part = {"meta": arrays["meta"]}
        for key in ("ram", "seen_spin", "seen_latched", "seen_held"):
            part[key] = arrays[key][first : first + 40].copy()
        for offsets, events in (
            ("random_offsets", ("random_value", "random_pc")),
            ("io_offsets", ("io_addr", "io_pc", "io_value", "io_write")),
        ):
            inside = arrays[offsets][first : first + 41].astype(np.int64)
            part[offsets] = inside - inside[0]
            for key in events:
                part[key] = arrays[key][inside[0] : inside[-1]].copy()
        yield part


def verify_damaged(
    part: dict[str, NDArray[Any]], image: NDArray[np.uint8], random: np.random.Generator
) -> bool:
    """Verify a recording with a damaged image or array; whether it was not refused."""
    at = int(random.integers(len(part["ram"])))
    way = int(random.integers(4))
    if way < 2:
        cells = random.choice(m.RAM_SIZE, random.integers(1, 9))
        part["ram"][at, cells] = random.integers(0, 256, len(cells))
    elif way == 2:
        part["ram"][at] = image
    else:
        key = sorted(set(part) - {"meta"})[random.integers(len(part) - 1)]
        flat = part[key].reshape(-1).view(np.uint8)
        if len(flat):
            flat[random.integers(0, len(flat), 4)] = random.integers(0, 256, 4)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "damaged.npz"
        np.savez(path, **part)  # type: ignore[arg-type]
        try:
            result = verify_files([path])
        except RecordingError as error:
            _expect_one_line(error)
            return False
    assert result["exact_ticks"] <= result["ticks"]
    return True


def try_block(block: NDArray[np.uint8], seed: int, report: Report) -> None:
    """Give a block to all; where something fails, find out which of its states it was."""
    records = m.from_bytes(block[:, : m.RAM_SIZE])

    def attempt(what: str, work: Callable[[slice, np.random.Generator], int]) -> None:
        every = slice(0, len(block))
        try:
            report.counts[what] += work(every, np.random.default_rng(seed))
        except Exception:
            for at in range(len(block)):
                one = slice(at, at + 1)
                try:
                    work(one, np.random.default_rng(seed))
                except Exception as error:
                    report.fail(what, error, block[at])
                    return
            report.fail(f"{what}, in company", sys.exc_info()[1], block)

    def read(part: slice, random: np.random.Generator) -> int:
        read_images(records[part], random)
        return len(records[part])

    attempt("images read", read)
    attempt("states played", lambda part, random: play_states(block[part], random))


def fuzz(count: int, seed: int) -> Report:
    """Try ``count`` damaged states."""
    random = np.random.default_rng(seed)
    report = Report()
    states = real_states(random)
    images = recorded_images(random)
    recorded = states[random.integers(0, len(states), len(images))].copy()
    recorded[:, : m.RAM_SIZE] = images
    parts = slices(random)
    done = 0
    for block in damaged(np.concatenate([states, recorded]), count, random):
        report.counts["damaged states"] += len(block)
        try_block(block, int(random.integers(2**31)), report)
        for state in block[::64]:
            image = state[: m.RAM_SIZE]
            try:
                play_environments(state, random)
                for _ in range(8):
                    report.counts["damaged recordings"] += 1
                    taken = verify_damaged(next(parts), image, random)
                    report.counts["recordings compared"] += taken
            except Exception as error:
                report.fail("recordings and environments", error, state)
        done += len(block)
        if done % (40 * BLOCK) == 0:
            print(done, dict(report.counts), file=sys.stderr, flush=True)
    return report


def indices_are_checked() -> bool:
    """Whether compiled code notices an index that leaves an array."""
    batch = GameBatch(1)
    batch.reset(seeds=0)
    batch.ram["game_state"], batch.ram["player_up"] = m.STATE_NEW_LIFE, 9
    try:
        batch.step(np.zeros(1, np.int8), np.zeros(1, np.uint8))
    except IndexError:
        return True
    return False


def main() -> int:
    """Try as many damaged states as the command line says."""
    if not indices_are_checked():
        print("set NUMBA_BOUNDSCHECK=1: without it nothing is checked", file=sys.stderr)
        return 2
    count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    report = fuzz(count, seed)
    print(dict(report.counts), f"{len(report.failures)} failures")
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())

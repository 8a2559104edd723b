"""The compiled code as plain Python, where every index is looked at, on damaged images.

A program, ``python tests/support/uncompiled.py COUNT``: it replaces the decorators before any other
module uses them.  It is slow where the game is concerned, but nothing has to be compiled, as it has
for ``fuzz_states.py`` with bounds checks.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.machine import compiled, randomness

TICKS = 12
"""How far an image is played on."""


def _as_it_is(function: Any) -> Any:
    return function


class Record:
    """One record of a structured array, its fields as attributes; no index counts from the end."""

    def __init__(self, record: Any) -> None:
        object.__setattr__(self, "record", record)

    def __getattr__(self, name: str) -> Any:
        value = self.record[name]
        return Cells(value) if isinstance(value, np.ndarray) else value

    def __setattr__(self, name: str, value: Any) -> None:
        self.record[name] = np.asarray(value).astype(self.record.dtype[name])


class Cells:
    """An array whose entries wrap as in compiled code, and whose indices have to be inside."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, index: Any) -> Any:
        value = self.array[self._inside(index)]
        if self.array.dtype.names:
            return Record(value)
        return Cells(value) if isinstance(value, np.ndarray) else value

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(value, Record):
            value = value.record
        elif isinstance(index, slice) or self.array.dtype.names is None:
            value = np.asarray(value).astype(self.array.dtype)
        self.array[self._inside(index)] = value

    def _inside(self, index: Any) -> Any:
        for each in index if isinstance(index, tuple) else (index,):
            if not isinstance(each, slice) and each < 0:
                raise IndexError(f"index {each} is below 0")
        return index

    @property
    def shape(self) -> Any:
        return self.array.shape


def _draw(source: Record, address: int) -> int:
    """xorshift64*, as in ``randomness``."""
    x, every = int(source.state), 2**64 - 1
    x ^= x >> 12
    x ^= x << 25 & every
    x ^= x >> 27
    source.state = np.uint64(x)
    return np.int64((x * 0x2545F4914F6CDD1D & every) >> 56)


compiled.rule = compiled.kernel = _as_it_is
randomness.draw = _draw
warnings.filterwarnings("ignore", "overflow encountered", RuntimeWarning)


def main() -> int:
    """Read ``sys.argv[1]`` damaged images, and play those on that the rules can play."""
    from fuzz_states import damaged, recorded_images

    from tempest_agent.envs.arcade.playable import misfit
    from tempest_agent.envs.arcade.tick import tick
    from tempest_agent.envs.engine.state_check import STATE_SIZE
    from tempest_agent.envs.features.layout import NUM_FEATURES
    from tempest_agent.envs.features.observe import write_features
    from tempest_agent.envs.forecast.table import TABLE_DTYPE
    from tempest_agent.envs.game_state.controls import needs_no_input
    from tempest_agent.envs.game_state.death_cause import death_cause
    from tempest_agent.envs.machine import memory as m
    from tempest_agent.envs.machine.inputs import MAX_INPUT_DELAY, set_inputs
    from tempest_agent.experts import Budget, Weights
    from tempest_agent.experts.planner.plan_values import PLAN_PARTS, most_plans
    from tempest_agent.experts.planner.planner import HELD_DTYPE, plan_batch
    from tempest_agent.experts.scripted.decision import PLAN_DTYPE

    random = np.random.default_rng(1)
    recorded = recorded_images(random)
    states = np.zeros((len(recorded), STATE_SIZE), np.uint8)
    states[:, : m.RAM_SIZE] = recorded
    source = Record(np.ones(1, randomness.STREAM_DTYPE)[0])
    tried = Budget(lanes=1, horizon=3, streams=1)
    budget, weights = tried.record(), Weights().record()
    playable = 0
    for block in damaged(states, int(sys.argv[1]), random):
        for image in m.from_bytes(block[:, : m.RAM_SIZE]):
            ram = Record(image)
            write_features(
                ram,
                Cells(np.zeros(MAX_INPUT_DELAY, np.int8)),
                Cells(np.zeros(MAX_INPUT_DELAY, np.uint8)),
                MAX_INPUT_DELAY,
                Record(np.zeros(1, TABLE_DTYPE)[0]),
                Cells(np.zeros(NUM_FEATURES, np.int8)),
            )
            death_cause(ram)
            plan_batch(
                Cells(image[None]), Cells(np.zeros(1, np.int64)),
                Cells(np.zeros((1, 2, 2), np.int16)),
                0, Cells(budget), Cells(weights), Cells(np.zeros(1, HELD_DTYPE)),
                Cells(np.zeros(1, randomness.STREAM_DTYPE)), Cells(np.zeros(2, m.RAM_DTYPE)),
                Cells(np.zeros(1, PLAN_DTYPE)),
                Cells(np.zeros((most_plans(tried), PLAN_PARTS), np.int64)),
                Cells(np.zeros((1, m.LANES))),
                Cells(np.zeros(1, np.int8)), Cells(np.zeros(1, np.uint8)),
            )  # fmt: skip
            playable += misfit(ram) < 0
            for _ in range(TICKS if misfit(ram) < 0 else 0):
                needs_no_input(ram)
                set_inputs(
                    ram, random.integers(-31, 32), random.random() < 0.8, random.random() < 0.1
                )
                tick(ram, source)
                assert misfit(ram) < 0
    print(playable, "of", sys.argv[1], "played on")
    return 0


if __name__ == "__main__":
    sys.exit(main())

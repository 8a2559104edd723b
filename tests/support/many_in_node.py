"""More of ``tests/web/test_exact.py`` than the suite has time for.

``python tests/support/many_in_node.py --games 100 --ticks 3000``: free games from all start levels
with all switches under random inputs, then games of the expert and the champion, or of other
players and checkpoints (``--players``), each compared with Python in every byte and every decision.
"""

from __future__ import annotations

import argparse
import hashlib
from itertools import product
from time import perf_counter

import numpy as np
from in_node import DECISION, decisions_of, states_of
from numpy.typing import NDArray

from tempest_agent.envs.engine.batch import GameBatch
from tempest_agent.envs.engine.settings import GameSettings
from tempest_agent.envs.machine.memory import as_bytes
from tempest_agent.envs.machine.switches import BONUS_LIFE, DIFFICULTIES, LIVES
from tempest_agent.evaluation.players import find_player
from tempest_agent.web.network_file import network_bytes

SWITCHES = list(product(LIVES, BONUS_LIFE, DIFFICULTIES, (False, True)))


def random_inputs(seed: int, ticks: int) -> NDArray[np.int8]:
    """Return knob counts and buttons ``(ticks, 2)`` that stay for a while, as a player's do."""
    chance = np.random.default_rng(seed)
    inputs = np.stack([chance.integers(-31, 32, ticks), chance.integers(0, 4, ticks)], axis=1)
    again = chance.random(ticks) < 0.7
    for tick in range(1, ticks):
        if again[tick]:
            inputs[tick] = inputs[tick - 1]
    # A superzap now and then: held, it would be used up at once.
    inputs[:, 1] &= np.where(chance.random(ticks) < 0.02, 3, 1)
    return inputs.astype(np.int8)


def played(settings: GameSettings, seed: int, inputs: NDArray[np.int8]) -> NDArray[np.uint8]:
    """Return a game's bytes in Python before the first and after each tick."""
    batch = GameBatch(1, settings, observe=False)
    batch.reset(seeds=seed)
    states = [batch.clone()[0]]
    for spin, buttons in inputs:
        batch.step(np.array([spin]), np.array([buttons], np.uint8))
        states.append(batch.clone()[0])
    return np.stack(states)


def decided(name: str, level: int, seed: int, ticks: int) -> NDArray[np.uint8]:
    """Return a player's decisions in Python, as ``in_node.decisions_of`` does."""
    batch = GameBatch(1, GameSettings(start_level=level, max_ticks=ticks))
    batch.reset(seeds=seed)
    player = find_player(name).make(np.zeros(1, np.int64), 0)
    decisions = []
    while not (batch.terminated[0] or batch.truncated[0]):
        spins, buttons = player.act(batch)
        digest = hashlib.sha256(as_bytes(batch.ram)[0].tobytes()).digest()[: DECISION - 2]
        decisions.append([int(spins[0]) & 0xFF, int(buttons[0]), *digest])
        batch.step(spins, buttons)
    return np.array(decisions, np.uint8)


def plays_in_node(name: str) -> bytes | str:
    """Return what makes the player ``name`` in node."""
    policy = find_player(name).policy
    return name if policy is None else network_bytes(policy.network, name)


def main() -> None:
    """Compare as many games as asked for; the first difference ends it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--games", type=int, default=100)
    parser.add_argument("--ticks", type=int, default=3000)
    parser.add_argument("--players", nargs="*", default=["expert", "champion"])
    options = parser.parse_args()
    began, ticks, decisions = perf_counter(), 0, 0
    for number in range(options.games):
        lives, bonus, difficulty, start_bonus = SWITCHES[number * 37 % len(SWITCHES)]
        settings = GameSettings(
            start_level=number % 99 + 1,
            lives=lives,
            bonus_life=bonus,
            difficulty=difficulty,
            start_bonus=start_bonus,
            skip_idle=False,
        )
        inputs = random_inputs(number, options.ticks)
        states = states_of(settings, number, inputs)
        assert np.array_equal(states, played(settings, number, inputs)), (settings, number)
        ticks += len(inputs)
    for name in options.players:
        for number in range(options.games):
            level = number % 99 + 1
            expected = decided(name, level, number, options.ticks)
            settings = GameSettings(start_level=level)
            got = decisions_of(settings, number, plays_in_node(name), options.ticks)
            assert np.array_equal(got, expected), (name, level, number)
            decisions += len(expected)
    seconds = perf_counter() - began
    print(f"{ticks:,} ticks and {decisions:,} decisions are equal ({seconds:.0f} s)")


if __name__ == "__main__":
    main()

"""Causes of death against the same tick played again without each possible killer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tempest_agent.envs.engine.batch import GameBatch
from tempest_agent.envs.engine.settings import GameSettings
from tempest_agent.envs.game_state.death_cause import DEATH_CAUSES, death_cause
from tempest_agent.envs.machine.compiled import kernel
from tempest_agent.envs.machine.memory import FUSEBALL, KIND_MASK, PULSAR, RAM_DTYPE, STATE_WARP


@kernel
def _cause(ram: Any) -> int:
    return death_cause(ram)


def killed(batch: GameBatch, before: np.ndarray, game: int, without: str) -> bool:
    """Whether the player dies in the tick when the named killers cannot reach him."""
    trial = GameBatch(1, batch.settings, observe=False)
    trial.restore(before[game : game + 1])
    image = trial.ram[0]
    kinds = image["enemy_kind"] & KIND_MASK
    if without == "pulsar":
        image["pulse_phase"] = 0x90  # the pulse is off, and stays off in this tick
    elif without == "fuseball":
        # A fuseball that has gone kills nobody; the pulse clock does not depend on it.
        image["enemy_depth"][kinds == FUSEBALL] = 0
    elif without == "enemy_shot":
        image["enemy_shot_depth"] = 0
        image["enemy_shot_top_slot"] = 0xFF
    trial.step(
        batch.games["executed_spin"][game : game + 1].copy(),
        batch.games["executed_buttons"][game : game + 1].copy(),
    )
    return bool(trial.games["step_deaths"][0])


@pytest.mark.parametrize(
    ("levels", "seed"), [(range(1, 12), 1), (range(17, 33), 2), (range(33, 100), 3)]
)
def test_the_named_killer_is_the_one_without_which_the_player_lives(
    levels: range, seed: int
) -> None:
    settings = GameSettings(start_level=levels, lives=5, skip_idle=False)
    batch = GameBatch(64, settings, autoreset=True, observe=False)
    batch.reset(seeds=seed)
    random = np.random.default_rng(seed)
    checked = {cause: 0 for cause in DEATH_CAUSES}
    for _ in range(1500):
        before = batch.clone()
        warping = batch.ram["game_state"] == STATE_WARP
        buttons = random.integers(0, 2, 64, dtype=np.uint8)
        batch.step(random.integers(-8, 9, 64).astype(np.int8), buttons)
        for game in np.flatnonzero(batch.games["step_deaths"]).tolist():
            cause = DEATH_CAUSES[batch.games["step_death"][game]]
            checked[cause] += 1
            assert (cause == "spike") == warping[game]
            if cause in ("pulsar", "fuseball", "enemy_shot"):
                killers = [
                    other
                    for other in ("pulsar", "fuseball", "enemy_shot")
                    if not killed(batch, before, game, other)
                ]
                # With two killers in one tick, taking one away does not help.
                assert killers in ([cause], [])
    assert sum(checked.values()) > 50
    assert checked["grab"] > 0
    assert checked["enemy_shot"] > 0
    assert checked["pulsar"] > 0 or levels.start < 17


def dead_image(**cells: Any) -> np.ndarray:
    ram = np.zeros(1, RAM_DTYPE)
    image = ram[0]
    image["game_state"] = 4
    image["player_lane"] = 5
    image["player_lane_ccw"] = 0x81
    image["player_depth"] = 0x10
    image["pulse_phase"], image["pulse_step"] = 7, 4
    image["pulse_depth"] = 0xA0
    image["enemy_lane"] = 9
    image["enemy_shot_lane"] = 9
    for name, value in cells.items():
        image[name] = value
    return ram


def slots(*values: int) -> np.ndarray:
    return np.array([*values, *[0] * (7 - len(values))], np.uint8)


@pytest.mark.parametrize(
    ("cells", "cause"),
    [
        ({"game_state": STATE_WARP}, "spike"),
        ({"player_lane_ccw": 0x80}, "grab"),
        (
            {"enemy_kind": slots(FUSEBALL), "enemy_lane": slots(5), "enemy_depth": slots(0x10)},
            "fuseball",
        ),
        ({"enemy_kind": slots(PULSAR), "enemy_lane": slots(5), "enemy_depth": slots(0x50)},
         "pulsar"),
        # A shot of the player removed the pulsar in the same tick.
        (
            {
                "enemy_kind": slots(PULSAR),
                "enemy_lane": slots(5),
                "boom_lane": 5,
                "boom_depth": 0x50,
                "boom_seq": 3,
            },
            "pulsar",
        ),
        # It was shot some ticks before.
        (
            {
                "enemy_kind": slots(PULSAR),
                "enemy_lane": slots(5),
                "boom_lane": 5,
                "boom_depth": 0x50,
                "boom_seq": 6,
            },
            "enemy_shot",
        ),
        # The pulse was off: 3 units before it was at -1.
        ({"enemy_kind": slots(PULSAR), "enemy_lane": slots(5), "enemy_depth": slots(0x50),
          "pulse_phase": 3}, "enemy_shot"),
        # Deeper than its reach.
        ({"enemy_kind": slots(PULSAR), "enemy_lane": slots(5), "enemy_depth": slots(0xA0)},
         "enemy_shot"),
        ({"enemy_shot_lane": 5}, "enemy_shot"),
    ],
)  # fmt: skip
def test_cause_from_hand_made_images(cells: dict[str, Any], cause: str) -> None:
    assert DEATH_CAUSES[_cause(dead_image(**cells)[0])] == cause


def test_deaths_are_counted_once_each_and_by_cause() -> None:
    batch = GameBatch(16, GameSettings(start_level=[5, 17], lives=5))
    batch.reset(seeds=8)
    total = np.zeros(16, np.int64)
    for _ in range(4000):
        batch.step(np.zeros(16, np.int8), np.ones(16, np.uint8))
        total += batch.games["step_deaths"]
    assert batch.terminated.all()
    np.testing.assert_array_equal(batch.games["deaths"].sum(1), total)
    assert (total >= 5).all()

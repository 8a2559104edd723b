"""What the observation says of enemies' next turns, against what they then do."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tempest_agent.envs.engine.batch import GameBatch
from tempest_agent.envs.engine.settings import GameSettings
from tempest_agent.envs.features import layout as at
from tempest_agent.envs.features.observe import observe
from tempest_agent.envs.machine.memory import (
    FLAG_MOVING_DOWN,
    FUSEBALL,
    KIND_CCW,
    KIND_FLIPPING,
    PULSAR,
    STATE_PLAY,
)

GAMES, TICKS = 24, 160
LEVELS = (4, 11, 16, 20, 3, 17, 22, 29, 33, 44, 58, 67)


@pytest.fixture(scope="module")
def played() -> NDArray[np.void]:
    """Images ``(ticks, games)`` on levels with every program, the player standing still."""
    batch = GameBatch(GAMES, GameSettings(start_level=LEVELS, skip_idle=False))
    batch.reset(seeds=4)
    still, fire = np.zeros(GAMES, np.int8), np.zeros(GAMES, np.uint8)
    for _ in range(150):
        batch.step(still, fire)
    images = np.zeros((TICKS, GAMES), batch.ram.dtype)
    for tick in range(TICKS):
        images[tick] = batch.ram
        batch.step(still, fire)
    return images


def alone(image: np.void, slot: int) -> dict[str, int]:
    """The forecast of the lane that the enemy in ``slot`` stands or rolls in, with no other."""
    kept = np.array([image])
    depth = int(image["enemy_depth"][slot])
    kept["enemy_depth"] = 0
    kept["enemy_depth"][0, slot] = depth
    lane = (int(image["enemy_lane"][slot]) - int(image["player_lane"])) & 15
    start = at.FORECAST_START + lane * at.FORECAST_FEATURES
    block = observe(kept)[0, start : start + at.FORECAST_FEATURES].astype(int)
    return {
        "ticks": block[at.FLIP_TICKS], "side": block[at.FLIP_SIDE], "left": block[at.FLIPS_LEFT],
        "down": block[at.PULSAR_DOWN],
        "up_climbs": block[at.ROLL_UP_CLIMBS], "down_climbs": block[at.ROLL_DOWN_CLIMBS],
    }  # fmt: skip


def test_enemies_flip_when_and_where_it_says(played: NDArray[np.void]) -> None:
    flips = right = 0
    for game in range(GAMES):
        for slot in range(7):
            for tick in range(0, TICKS - 20, 3):
                here = played[tick : tick + 20, game]
                kind, depth = here["enemy_kind"][:, slot], here["enemy_depth"][:, slot]
                walks = (here["enemy_script_pc"][:, slot] >= 66) & (
                    here["enemy_script_pc"][:, slot] < 83
                )
                same = (here["game_state"] == STATE_PLAY) & (depth > 0) & ~walks
                same &= (here["player_lane_ccw"] < 0x80) & (kind & 7 == kind[0] & 7)
                if not same.all() or kind[0] & KIND_FLIPPING or kind[0] & 7 == FUSEBALL:
                    continue
                said = alone(here[0], slot)
                if said["ticks"] == 0:
                    continue
                started = np.flatnonzero(kind[1:] & KIND_FLIPPING)
                first = int(started[0]) if len(started) else 19
                flips += 1
                code = 127 if first == 0 else 254 // (first + 2)
                if first >= 19:
                    right += said["ticks"] <= 254 // 18
                    continue
                up = bool(kind[1 + first] & KIND_CCW)
                right += said["ticks"] == code and said["side"] == (127 if up else -127)
    assert flips > 200
    assert right >= 0.98 * flips


def test_flips_left_are_those_until_an_alternating_enemy_turns_round(
    played: NDArray[np.void],
) -> None:
    seen = 0
    for game in range(GAMES):
        for slot in range(7):
            track = played[:, game]
            pc, kind = track["enemy_script_pc"][:, slot], track["enemy_kind"][:, slot]
            live = (track["enemy_depth"][:, slot] > 0) & (pc >= 36) & (pc < 66)
            flips: list[tuple[int, bool]] = []
            for tick in range(1, TICKS):
                if live[tick] and kind[tick] & KIND_FLIPPING and not kind[tick - 1] & KIND_FLIPPING:
                    flips.append((tick, bool(kind[tick] & KIND_CCW)))
            for (before, one), (tick, other), (after, third) in zip(
                flips, flips[1:], flips[2:], strict=False
            ):
                if not live[before:after].all() or one == other:
                    continue
                # Between the last flip of a run and the first of the next, of two or three.
                assert other == third
                assert alone(track[tick - 1], slot)["left"] in (127 * 2 // 3, 127)
                seen += 1
    assert seen > 5


def test_pulsars_and_rolling_fuseballs_show_which_way_they_move(played: NDArray[np.void]) -> None:
    rolls, pulsars = {True: 0, False: 0}, {True: 0, False: 0}
    for image in played[::4].ravel():
        for slot in np.flatnonzero(image["enemy_depth"]):
            kind, down = int(image["enemy_kind"][slot]), int(image["enemy_flags"][slot]) & 0x80
            assert FLAG_MOVING_DOWN == 0x80
            if kind & 7 == PULSAR and not kind & KIND_FLIPPING:
                if not 66 <= image["enemy_script_pc"][slot] < 83:
                    assert alone(image, slot)["down"] == (127 if down else 0)
                    pulsars[bool(down)] += 1
            elif kind & 7 == FUSEBALL and kind & KIND_FLIPPING:
                side = "down_climbs" if kind & KIND_CCW else "up_climbs"
                assert alone(image, slot)[side] == (127 if down else 0)
                rolls[bool(down)] += 1
    assert min(*rolls.values(), *pulsars.values()) > 5

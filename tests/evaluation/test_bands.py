"""Ticks and deaths by bands of levels: counted step by step, and counted tick by tick."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from tempest_agent.envs.engine.batch import GameBatch
from tempest_agent.envs.engine.settings import GameSettings
from tempest_agent.envs.game_state.death_cause import DEATH_CAUSES
from tempest_agent.envs.mame.mame_options import MameOptions
from tempest_agent.evaluation.bands import BANDS, band_rows, pooled_bands
from tempest_agent.evaluation.games import (
    LIMIT_POINTS,
    STANDARD_MAX_TICKS,
    EvaluationGames,
    play_games,
)
from tempest_agent.evaluation.playback import play_ticks
from tempest_agent.evaluation.players import find_player


def test_the_bands_hold_every_level_once() -> None:
    levels = [level for first, last in BANDS for level in range(first, last + 1)]
    assert levels == list(range(1, 100))


@pytest.mark.parametrize(
    ("name", "level", "frame_skip"),
    [("expert", 15, 1), ("expert", 63, 1), ("novice", 79, 1), ("random", 32, 2), ("random", 99, 1)],
)
def test_every_tick_and_death_is_counted_at_the_level_of_its_image(
    name: str, level: int, frame_skip: int
) -> None:
    player = dataclasses.replace(find_player(name), frame_skip=frame_skip)
    games = EvaluationGames(2, seed=8, level=level, max_ticks=1_300)
    counted = play_games(player, games).bands
    for number in range(games.episodes):
        expected = np.zeros((len(BANDS), 2), np.int64)
        before = np.zeros(2, np.int64)
        for batch in play_ticks(player, games, number):
            now = np.array([batch.games["ticks"][0], batch.games["deaths"][0].sum()])
            at_level = int(batch.ram["cur_wave"][0]) + 1
            band = [first <= at_level <= last for first, last in BANDS].index(True)
            expected[band] += now - before
            before = now
        np.testing.assert_array_equal(counted[number], expected)
    if name == "expert":
        assert (counted[:, :, 0] > 0).sum(axis=1).tolist() == [2, 2]  # The band has changed.


@pytest.mark.parametrize("name", ["random", "novice"])
def test_the_bands_add_up_to_the_totals(name: str) -> None:
    games = EvaluationGames(9, seed=2, level=10, to_level=60, max_ticks=2_000)
    outcomes = play_games(find_player(name), games, threads=2)
    np.testing.assert_array_equal(outcomes.bands[:, :, 0].sum(axis=1), outcomes.ticks)
    np.testing.assert_array_equal(outcomes.bands[:, :, 1].sum(axis=1), outcomes.deaths.sum(axis=1))
    assert outcomes.deaths.shape == (9, len(DEATH_CAUSES))
    assert outcomes.deaths.sum() > 0


def test_games_that_are_played_in_turn_are_counted_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a real machine, whose place the simulator takes."""

    def simulated(count: int, settings: GameSettings, *_: object, observe: bool) -> GameBatch:
        return GameBatch(count, settings, observe=observe)

    games = EvaluationGames(3, seed=4, level=14, to_level=16, max_ticks=700)
    together = play_games(find_player("expert"), games)
    monkeypatch.setattr("tempest_agent.evaluation.games.make_batch", simulated)
    in_turn = play_games(
        find_player("expert"),
        dataclasses.replace(games, machine=MameOptions(Path("roms"))),
        threads=2,
    )
    np.testing.assert_array_equal(in_turn.bands, together.bands)
    assert (in_turn.bands[:, 1] > 0).any()


def test_start_levels_are_drawn_from_the_whole_range_for_each_game() -> None:
    games = EvaluationGames(60, seed=1, level=97, to_level=99, max_ticks=1)
    levels = play_games(find_player("random"), games).levels
    assert set(levels.tolist()) == {97, 98, 99}
    np.testing.assert_array_equal(play_games(find_player("random"), games, 3).levels, levels)


def test_pooled_bands_are_those_of_all_games_together() -> None:
    random = np.random.default_rng(0)
    parts = random.integers(0, 1_000, (3, len(BANDS), 2))
    rows = [{"bands": band_rows(part)} for part in parts]
    assert pooled_bands(rows) == band_rows(parts.sum(axis=0))


def test_the_share_of_the_limit_is_for_30_000_ticks_from_level_1_alone() -> None:
    assert EvaluationGames().limit_share(LIMIT_POINTS / 2) == 0.5
    assert EvaluationGames(input_delay=2).limit_share(LIMIT_POINTS) == 1.0
    assert EvaluationGames().max_ticks == STANDARD_MAX_TICKS
    for other in ({"level": 2}, {"to_level": 16}, {"max_ticks": 29_999}):
        assert EvaluationGames(**other).limit_share(1.0) is None

"""The evaluation: fixed games played to their ends, the same however they are grouped."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from tempest_agent.agent.checkpoints.policy import Policy
from tempest_agent.agent.games.tempest_games import TEMPEST_LAYOUT
from tempest_agent.agent.networks.q_network import QNetwork
from tempest_agent.cli import cli
from tempest_agent.config import load_config
from tempest_agent.envs.api.tempest_env import TempestEnv
from tempest_agent.envs.engine.game_step import RUNNING
from tempest_agent.envs.game_state.death_cause import DEATH_CAUSES
from tempest_agent.envs.machine.memory import STATE_HIGH_SCORE_CHECK
from tempest_agent.evaluation.bands import BANDS
from tempest_agent.evaluation.games import EvaluationGames, play_games
from tempest_agent.evaluation.outcomes import Outcomes, joined, summary
from tempest_agent.evaluation.playback import play_ticks
from tempest_agent.evaluation.players import (
    PlayerChoice,
    RandomGames,
    TeacherPlayer,
    find_player,
    network_choice,
)
from tempest_agent.evaluation.statistics import bootstrap_interval, median_interval
from tempest_agent.experts import ScriptedExpert

EVAL_KEYS = {
    "policy",
    "episodes",
    "scores",
    "truncated",
    "score_mean",
    "score_iqm",
    "score_iqm_ci95",
    "score_median",
    "score_max",
    "level_mean",
    "level_max",
    "ticks_mean",
    "points_per_1000_ticks",
    "deaths_per_1000_ticks",
    "deaths",
    "seed",
    "backend",
    "checkpoint_sha256",
    "checkpoint_step",
}


def evaluate(*arguments: str) -> dict[str, Any]:
    """The JSON object of ``tempest-agent eval``."""
    result = CliRunner().invoke(cli, ["eval", *arguments, "--json"])
    assert result.exit_code == 0, result.output
    figures: dict[str, Any] = json.loads(result.stdout)
    return figures


def assert_equal(one: Outcomes, other: Outcomes) -> None:
    for field in dataclasses.fields(Outcomes):
        np.testing.assert_array_equal(getattr(one, field.name), getattr(other, field.name))


@pytest.mark.parametrize("name", ["expert", "novice", "random"])
@pytest.mark.parametrize("delay", [0, 1])
def test_threads_and_grouping_do_not_change_the_games(name: str, delay: int) -> None:
    games = EvaluationGames(episodes=7, seed=3, max_ticks=1500, input_delay=delay)
    player = find_player(name)
    alone = play_games(player, games, threads=7)
    assert_equal(play_games(player, games), alone)
    assert_equal(play_games(player, games, threads=3), alone)
    # The first games of more are the same games.
    more = play_games(player, dataclasses.replace(games, episodes=9))
    np.testing.assert_array_equal(more.scores[:7], alone.scores)


def test_the_seed_decides() -> None:
    player = find_player("random")
    scores = [play_games(player, EvaluationGames(6, seed)).scores.tolist() for seed in (0, 0, 1, 2)]
    assert scores[0] == scores[1]
    assert len({tuple(each) for each in scores}) == 3
    # Neighbouring seeds share no game.
    seeds = [
        {EvaluationGames(100, seed).game_seed(number) for number in range(100)} for seed in (1, 2)
    ]
    assert not seeds[0] & seeds[1]
    assert len(seeds[0]) == 100


def test_every_game_is_played_to_its_end() -> None:
    outcomes = play_games(find_player("random"), EvaluationGames(12))
    assert not outcomes.truncated.any()
    np.testing.assert_array_equal(outcomes.deaths.sum(axis=1) >= 3, True)
    cut = play_games(find_player("random"), EvaluationGames(12, max_ticks=1000))
    assert cut.truncated.all()
    np.testing.assert_array_equal(cut.ticks, 1000)
    # Cutting changes nothing before the cut.
    assert (cut.scores <= outcomes.scores).all()


@pytest.mark.parametrize("name", ["expert", "novice", "random"])
@pytest.mark.parametrize("frame_skip", [1, 3])
def test_the_game_to_watch_is_the_game_that_was_scored(name: str, frame_skip: int) -> None:
    player = dataclasses.replace(find_player(name), frame_skip=frame_skip)
    games = EvaluationGames(3, seed=5, level=9, max_ticks=2500)
    outcomes = play_games(player, games)
    for number in range(3):
        for ticks, batch in enumerate(play_ticks(player, games, number)):
            assert batch.games["ticks"][0] == ticks
        assert batch.games["score"][0] == outcomes.scores[number]
        assert batch.games["ticks"][0] == outcomes.ticks[number]
        over = batch.ram["game_state"][0] == STATE_HIGH_SCORE_CHECK
        assert over != outcomes.truncated[number]


def test_the_score_is_that_of_the_environment_whatever_its_reward() -> None:
    games = EvaluationGames(1, seed=11, max_ticks=1200)
    env = TempestEnv(max_ticks=1200, death_penalty=50.0, action_type="hybrid")
    expert = ScriptedExpert()
    env.reset(seed=games.game_seed(0))
    ended = False
    while not ended:
        spin, buttons = expert.act(env.batch.ram)
        turn = spin.astype(np.float32) / np.float32(31.0)
        action = {"buttons": np.int64(buttons[0]), "spinner": turn}
        _, _, terminated, truncated, info = env.step(action)
        ended = terminated or truncated
    assert play_games(find_player("expert"), games).scores[0] == info["score"]


def test_summary_against_a_hand_computed_case() -> None:
    deaths = np.zeros((4, len(DEATH_CAUSES)), np.int64)
    deaths[0, 0], deaths[3, 4] = 2, 1
    bands = np.zeros((4, len(BANDS), 2), np.int64)
    bands[:, 0] = [(500, 2), (1_000, 0), (1_500, 0), (1_000, 0)]
    bands[3, 5] = 2_000, 1
    figures = summary(
        Outcomes(
            scores=np.array([0, 10_000, 20_000, 1_500_000]),
            levels=np.array([1, 3, 5, 99]),
            ticks=np.array([500, 1_000, 1_500, 3_000]),
            truncated=np.array([False, False, False, True]),
            deaths=deaths,
            bands=bands,
        )
    )
    assert figures["scores"] == [0, 10_000, 20_000, 1_500_000]
    assert figures["truncated"] == 1
    assert figures["score_mean"] == 382_500.0
    assert figures["score_iqm"] == 15_000.0
    assert figures["score_median"] == 15_000.0
    assert figures["score_max"] == 1_500_000
    assert figures["level_mean"] == 27.0
    assert figures["level_max"] == 99
    assert figures["ticks_mean"] == 1_500.0
    assert figures["points_per_1000_ticks"] == 255_000.0
    assert figures["deaths_per_1000_ticks"] == 0.5
    assert figures["deaths"] == dict(zip(DEATH_CAUSES, [2, 0, 0, 0, 1], strict=True))
    low, high = figures["score_iqm_ci95"]
    assert 0 <= low <= 15_000 <= high <= 1_500_000
    assert figures["ended_share"] == 0.75
    assert figures["score_median_ci95"] == list(median_interval([0, 10_000, 20_000, 1_500_000]))
    assert figures["ticks_median"] == 1_250.0
    assert figures["ticks_median_ci95"] == list(median_interval([500, 1_000, 1_500, 3_000]))
    first, *empty, last = figures["bands"]
    rate = {"ticks": 4_000, "deaths": 2, "deaths_per_1000_ticks": 0.5}
    assert first == {"levels": [1, 16], **rate}
    assert last == {"levels": [81, 99], "ticks": 2_000, "deaths": 1, "deaths_per_1000_ticks": 0.5}
    assert [band["deaths_per_1000_ticks"] for band in empty] == [None] * 4


def test_the_command_prints_every_key_and_nothing_else() -> None:
    figures = evaluate("expert", "--episodes", "5", "--max-ticks", "1500", "--seed", "4")
    assert figures.keys() >= EVAL_KEYS
    expected = play_games(find_player("expert"), EvaluationGames(5, 4, max_ticks=1500))
    assert figures["scores"] == expected.scores.tolist()
    assert figures["checkpoint_sha256"] is None
    assert figures["seed"] == 4
    assert figures["backend"] == "sim"
    assert figures["truncated"] == 5


def test_options_reach_the_games() -> None:
    games = ("random", "--episodes", "4", "--max-ticks", "3000")
    plain = evaluate(*games)
    assert evaluate(*games, "--threads", "1")["scores"] == plain["scores"]
    assert evaluate(*games, "--seed", "1")["scores"] != plain["scores"]
    assert evaluate(*games, "--level", "20")["level_max"] >= 20
    assert evaluate(*games, "--input-delay", "2")["scores"] != plain["scores"]
    # Bonus lives at every 10,000 points make longer games than none at all.
    often = evaluate("novice", "--episodes", "6", "--bonus-life", "10000")
    never = evaluate("novice", "--episodes", "6", "--bonus-life", "none")
    assert often["ticks_mean"] > never["ticks_mean"]
    assert never["truncated"] == 0
    assert sum(never["deaths"].values()) == 6 * 3


@pytest.mark.parametrize("encoder", ["mlp", "lanes"])
def test_a_networks_games_do_not_depend_on_their_grouping(encoder: str) -> None:
    config = load_config("smoke", [f"network.encoder={encoder}", "network.lane_width=8"])
    torch.manual_seed(5)
    policy = Policy(QNetwork(TEMPEST_LAYOUT, config.network), config)
    player = network_choice(policy, encoder)
    games = EvaluationGames(16, seed=2, level=33, max_ticks=700)
    alone = play_games(player, games)
    assert_equal(play_games(player, games, threads=3), alone)
    assert_equal(play_games(player, games, threads=16), alone)
    assert len(set(alone.ticks.tolist())) > 1


def test_a_fault_in_one_thread_ends_the_evaluation_with_its_own_error() -> None:
    class Broken(TeacherPlayer):
        def act(self, batch: Any) -> Any:
            raise RuntimeError("a player that fails")

    player = PlayerChoice("broken", lambda numbers, _: Broken(ScriptedExpert(), numbers))
    with pytest.raises(RuntimeError, match="a player that fails"):
        play_games(player, EvaluationGames(4), threads=2)


def test_moments_of_one_seed_differ_and_those_of_several_seldom_agree() -> None:
    for seed in range(20):
        games = EvaluationGames(seed=seed)
        assert len({games.moment(number) for number in range(1_000)}) == 1_000
    moments = [
        EvaluationGames(seed=seed).moment(number) for seed in range(100) for number in range(100)
    ]
    # 10,000 of 131,071, drawn at random, would be 9,628 different ones.
    assert len(set(moments)) > 9_500
    assert max(moments) < 2**17 - 1


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("a player that fails")])
def test_games_that_are_complete_are_kept_when_others_are_broken_off(
    error: BaseException,
) -> None:
    class Stopping(RandomGames):
        def act(self, batch: Any) -> Any:
            if (batch.games["status"] != RUNNING).any():
                raise error
            return super().act(batch)

    games = EvaluationGames(12, seed=1, level=60)
    expected = play_games(find_player("random"), games)
    complete: list[Outcomes] = []
    with pytest.raises(type(error)):
        play_games(PlayerChoice("stops", Stopping), games, 2, None, complete)
    found = joined(complete)
    assert 0 < len(found.scores) < 12
    assert set(found.scores.tolist()) <= set(expected.scores.tolist())


def test_a_repeated_game_counts_once_in_the_interval() -> None:
    scores = np.array([10, 20, 20, 30])
    deaths = np.zeros((4, len(DEATH_CAUSES)), np.int64)
    bands = np.zeros((4, len(BANDS), 2), np.int64)
    plain = Outcomes(scores, scores, scores, scores > 99, deaths, bands)
    copies = dataclasses.replace(plain, traces=np.array([7, 5, 5, 9], np.uint64))
    assert plain.repeated == []
    assert copies.repeated == [2]
    assert joined([copies, copies]).repeated == [2, 4, 5, 6, 7]
    assert summary(copies)["scores"] == summary(plain)["scores"]
    assert summary(copies)["score_iqm_ci95"] == list(bootstrap_interval([[10, 20, 30]]))
    assert summary(copies)["score_median_ci95"] == list(median_interval([10, 20, 30]))
    assert summary(plain)["score_iqm_ci95"] == list(bootstrap_interval([scores]))


def test_ticks_expected_follow_the_games_that_are_over() -> None:
    games = EvaluationGames(10, max_ticks=1_000)
    assert games.expected_ticks([]) == 10_000
    assert games.expected_ticks([100, 300]) == 2_000
    assert games.expected_ticks([100] * 10) == 1_000


def test_progress_counts_finished_games_as_whole() -> None:
    seen: list[int] = []
    play_games(find_player("random"), EvaluationGames(3, max_ticks=20_000), on_progress=seen.append)
    assert seen == sorted(seen)
    assert 0 < seen[-1] <= 60_000

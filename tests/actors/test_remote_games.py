"""Runs whose games actors play, against runs that play them in one process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_games import FEATURES, FakeGames, FakeTeacher
from inline_executor import InlineExecutor
from remote_runs import (
    SYNCHRONOUS,
    Run,
    arcade,
    failing_player,
    fake,
    fake_player,
    games_of,
    inline,
    joined,
)

from tempest_agent.actors.chunks import MergedChunks, columns_of, last_of
from tempest_agent.actors.executor import MakePlayer, Ticket
from tempest_agent.actors.games_player import GamesPlayer
from tempest_agent.actors.messages import ActorShare, Chunk
from tempest_agent.actors.remote_games import RemoteGames, remote_games
from tempest_agent.agent.collect.drivers import Drivers
from tempest_agent.agent.collect.local_source import LocalSource
from tempest_agent.agent.collect.source import Played
from tempest_agent.agent.games.tempest_games import TempestGames
from tempest_agent.agent.replay.plans import PLANS, LateLabels
from tempest_agent.agent.replay.rows import EPISODE_START, TERMINATED, TRUNCATED
from tempest_agent.config import Config, ConfigError, load_config
from tempest_agent.errors import UserError
from tempest_agent.training.trainer import Trainer

# --- synchronous actors -------------------------------------------------------------------------


def test_one_synchronous_actor_is_the_run_of_one_process_bit_for_bit(tmp_path: Path) -> None:
    here = Run(Trainer(arcade(0), tmp_path / "here"))
    there = Run(inline(arcade(1, SYNCHRONOUS), tmp_path / "there"))
    assert (here.replay.flags & TRUNCATED).any()
    there.assert_equals(here)


@pytest.mark.parametrize("actors", [2, 3])
def test_several_synchronous_actors_play_the_same_run_again(tmp_path: Path, actors: int) -> None:
    config = arcade(actors, SYNCHRONOUS, "run.steps=800")
    one, two = (Run(inline(config, tmp_path / name)) for name in ("one", "two"))
    assert one.weights["updates"] > 0
    one.assert_equals(two)


@pytest.mark.parametrize("actors", [1, 2, 3])
def test_actors_together_begin_with_the_games_of_one_process(actors: int) -> None:
    config = arcade(actors, "game.input_delay=[0,2,1]")
    games = config.run.num_envs
    whole = TempestGames(games, config.game, config.run.seed)
    whole.reset()
    drivers = Drivers(games, config.teacher, config.exploration, 0)
    learner_free = []
    for actor in range(actors):
        player = GamesPlayer(config, ActorShare(actor, actors))
        player._games.reset()
        which = slice(actor, None, actors)
        np.testing.assert_array_equal(player._games.observe(), whole.observe()[which])
        np.testing.assert_array_equal(player._source.drivers.rates, drivers.rates[which])
        learner_free += player._source.drivers.teacher_free.tolist()
        again = GamesPlayer(config, ActorShare(actor, actors, incarnation=1))
        again._games.reset()
        assert (again._games.observe() != whole.observe()[which]).any()
    assert sum(learner_free) == drivers.teacher_free.sum()


# --- asynchronous actors ------------------------------------------------------------------------


@pytest.mark.parametrize(("queue", "steps"), [(1, 4), (2, 7), (3, 1)])
def test_asynchronous_rows_are_counted_once_and_weights_are_not_much_older(
    tmp_path: Path, queue: int, steps: int
) -> None:
    config = fake(
        3, f"actors.queue={queue}", f"actors.chunk_steps={steps}", "actors.publish_interval=1"
    )
    run = Run(Trainer(config, tmp_path, games=games_of(config), teacher=FakeTeacher()))
    last = run.lines[-1]
    assert run.trainer.steps == run.replay.filled * run.replay.num_envs == 800
    rounds = -(-800 // 16 // steps)
    assert last["actors_taken"] == rounds * steps * 16
    assert (last["actors_lost"], last["actors_duplicates"], last["actors_restarts"]) == (0, 0, 0)
    assert not joined(run)
    # A version each round: the newest and those of the rounds that were ordered meanwhile.
    assert max(line["actors_version_lag_max"] for line in run.lines) == queue


def test_no_episode_goes_on_over_the_restart_of_an_actor(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = fake(2, "actors.chunk_steps=5", "run.steps=1600", "teacher.free_share=1.0")
    games = games_of(config, failing_player)
    run = Run(Trainer(config, tmp_path, games=games, teacher=FakeTeacher()))
    assert run.lines[-1]["actors_restarts"] == 1
    assert run.lines[-1]["actors_lost"] >= 5 * 8
    assert "RuntimeError: out of coins" in caplog.text
    assert "Traceback" in caplog.text
    assert run.trainer.steps == run.replay.filled * run.replay.num_envs == 1600
    assert not joined(run)
    flags = run.replay.flags[:100]
    # Actor 1 has the odd games; its fifth order would have begun with decision 20.
    assert (flags[19, 1::2] & (TERMINATED | TRUNCATED) > 0).all()
    assert (flags[20, 1::2] & EPISODE_START > 0).all()
    assert not (flags[20, 0::2] & EPISODE_START > 0).all()
    cut = [row for row in run.replay.final_observations if row // 16 == 19 and row % 2]
    assert cut
    # What was played of games that were over, by rows; those that were left are not among them.
    returns = []
    for game in range(16):
        total = 0.0
        for t in range(100):
            total += float(run.replay.reward[t, game])
            if flags[t, game] & (TERMINATED | TRUNCATED):
                if t * 16 + game not in cut:
                    returns.append(total)
                total = 0.0
    history = run.loop.collector.history
    assert history.finished == len(returns)
    told = sorted(game[1] for game in history.state_dict()["recent"])
    assert np.isin(np.round(told, 4), np.round(returns, 4)).all()


def late_labels(number: int) -> LateLabels:
    random = np.random.default_rng(number)
    shape = 2, PLANS
    return LateLabels(
        np.array([1, 4]),
        random.integers(0, 3, 2),
        random.integers(-31, 32, shape).astype(np.int8),
        random.integers(0, 4, shape).astype(np.uint8),
        random.integers(0, 2000, shape).astype(np.uint16),
    )


def test_the_decisions_of_all_actors_are_put_back_in_their_places() -> None:
    played: list[list[Played]] = []
    chunks = []
    for actor, games in enumerate((4, 3, 3)):
        config = load_config(None, [f"run.num_envs={games}"])
        drivers = Drivers(games, config.teacher, config.exploration, actor, FakeGames.layout)
        these = FakeGames(games, actor, cut_rate=0.3)

        def act(codes: np.ndarray, legal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return codes[:, 0] // 5, legal.astype(np.uint8)

        source = LocalSource(these, act, FakeTeacher(), drivers)
        played.append([source.play(0.5, 0.1) for _ in range(6)])
        # Late labels at every other step: of two actors, or of the third.
        for t in range(1 + actor // 2, 6, 2):
            played[-1][t] = played[-1][t]._replace(late=late_labels(10 * t + actor))
        last = last_of(played[-1], these.observe(), these.zap_legal())
        chunks.append(Chunk(actor, 0, 0, 1, columns_of(played[-1]), last))
        these.step(np.zeros(games, np.int8), np.zeros(games, np.uint8))
    stretch = MergedChunks(chunks)
    assert stretch.steps == 6
    cuts = 0
    for t in range(6):
        whole = stretch.played(t)
        for game in range(10):
            actor, own = game % 3, game // 3
            one = played[actor][t]
            for ours, theirs in ((whole.rows, one.rows), (whole.step, one.step)):
                cut = bool(one.step.truncated[own] and not one.step.terminated[own])
                for name, value in theirs._asdict().items():
                    if value is not None and (cut or not name.startswith("final")):
                        np.testing.assert_array_equal(getattr(ours, name)[game], value[own], name)
            assert whole.own_spin[game] == one.own_spin[own]
            assert whole.own_buttons[game] == one.own_buttons[own]
            cuts += cut
            if t:
                np.testing.assert_array_equal(stretch.seen(t)[0][game], one.rows.codes[own])
    assert cuts > 5
    for t in range(6):
        late, parts = stretch.played(t).late, [played[actor][t].late for actor in range(3)]
        known = [(actor, part) for actor, part in enumerate(parts) if part is not None]
        assert (late is not None) == bool(known)
        for name in LateLabels._fields if late is not None else ():
            own = [getattr(part, name) for _, part in known]
            if name == "game":
                own = [3 * games + actor for games, (actor, _) in zip(own, known, strict=True)]
            np.testing.assert_array_equal(getattr(late, name), np.concatenate(own), name)
    for actor in range(3):
        for at in (0, 1):
            last = chunks[actor].last["codes" if at == 0 else "zap_legal"]
            np.testing.assert_array_equal(stretch.seen(6)[at][actor::3], last)
    assert stretch.seen(0)[0].shape == (10, FEATURES)


# --- runs that go on ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of two asynchronous actors from its beginning to its end."""
    config = fake(2, "actors.chunk_steps=5")
    folder = tmp_path_factory.mktemp("whole")
    return Run(Trainer(config, folder, games=games_of(config), teacher=FakeTeacher()))


def halves(tmp_path: Path, config: Config) -> tuple[Trainer, Run]:
    """A run that was stopped in its middle, and the same run gone on with to its end."""
    first = Trainer(config, tmp_path, games=games_of(config), teacher=FakeTeacher())
    first.loop.on_metrics = lambda line: line["steps"] >= 400 and first.request_stop()
    first.run()
    second = Trainer.resume(tmp_path, games=games_of, teacher=FakeTeacher())
    assert second.steps == first.steps == 400
    return first, Run(second)


@pytest.mark.parametrize("mode", ["synchronous=true", "synchronous=false"])
def test_a_run_goes_on_with_new_games_and_equal_counters(
    tmp_path: Path, whole: Run, mode: str
) -> None:
    """Neither mode makes other counters."""
    config = fake(2, f"actors.{mode}", "actors.chunk_steps=5")
    _, run = halves(tmp_path, config)
    assert run.trainer.steps == whole.trainer.steps == 800
    assert run.weights["updates"] == whole.weights["updates"]
    for name in ("epsilon", "expert_ratio", "learning_rate", "n_steps", "importance", "steps"):
        assert run.lines[-1][name] == whole.lines[-1][name], name
    assert run.lines[-1]["actors_taken"] >= 800
    flags = run.replay.flags[:50]
    assert (flags[24] & (TERMINATED | TRUNCATED) > 0).all()
    assert (flags[25] & EPISODE_START > 0).all()
    assert not joined(run)
    games = run.trainer.loop.games
    assert isinstance(games, RemoteGames)
    assert games.state_dict()["actors"]["incarnations"] == [1, 1]


class FallsSilent(InlineExecutor):
    """No actor answers any more after so many orders; whoever waits for one is told."""

    def __init__(self, make_player: MakePlayer, orders: int, tell: Callable[[], None]) -> None:
        super().__init__(make_player)
        self._orders, self._tell = orders, tell

    def wait(self, tickets: Sequence[Any], timeout: float) -> list[Ticket]:
        if self._orders == 0:
            self._tell()
            return []
        self._orders -= 1
        return super().wait(tickets, timeout)


@pytest.mark.parametrize(("orders", "steps"), [(0, 0), (1, 0), (13, 480)])
def test_a_stop_waits_for_no_actor_that_is_silent(
    tmp_path: Path, whole: Run, orders: int, steps: int
) -> None:
    config = fake(2, "actors.chunk_steps=5")
    trainers: list[Trainer] = []
    games = RemoteGames(
        config,
        lambda make: FallsSilent(make, orders, lambda: trainers[0].request_stop()),
        partial(fake_player, config),
        FakeGames.layout,
    )
    trainers.append(Trainer(config, tmp_path, games=games, teacher=FakeTeacher()))
    result = trainers[0].run()
    assert result["stopped"]
    assert result["steps"] == steps
    trainers[0].close()
    run = Run(Trainer.resume(tmp_path, games=games_of, teacher=FakeTeacher()))
    assert run.trainer.steps == 800
    assert run.weights["updates"] == whole.weights["updates"]
    assert not joined(run)


def test_a_run_of_one_process_goes_on_with_actors_and_not_the_other_way(tmp_path: Path) -> None:
    config = arcade(0, "run.steps=1200", "run.log_interval=600")
    first = Trainer(config, tmp_path)
    first.loop.on_metrics = lambda _: first.request_stop()
    steps = first.run()["steps"]
    left_at = first.loop.games.observe().copy()

    def remote(config: Config) -> RemoteGames | None:
        return RemoteGames(config, InlineExecutor) if config.actors.count else None

    second = Trainer.resume(tmp_path, actors={"count": 2}, games=remote)
    run = Run(second)
    assert run.trainer.steps == 1200
    last = steps // config.run.num_envs - 1
    assert (run.replay.flags[last + 1] & EPISODE_START > 0).all()
    assert not joined(run)
    cut = [row for row in run.replay.final_observations if row // config.run.num_envs == last]
    assert cut
    for row in cut:
        game = row % config.run.num_envs
        if not first.loop.replay.flags[last, game] & TRUNCATED:
            np.testing.assert_array_equal(run.replay.final_observations[row][0], left_at[game])
    with pytest.raises(UserError, match="resume it with --actors 1 or more"):
        Trainer.resume(tmp_path, actors={"count": 0}, games=remote)
    with pytest.raises(ConfigError, match=r"actors.count=99 is above run.num_envs"):
        Trainer.resume(tmp_path, actors={"count": 99}, games=remote)


def test_learning_anew_begins_with_other_actors(tmp_path: Path) -> None:
    config = fake(2, "actors.chunk_steps=5", "run.steps=320")
    run = Run(Trainer(config, tmp_path, games=games_of(config), teacher=FakeTeacher()))
    games = run.trainer.loop.games
    assert isinstance(games, RemoteGames)
    first = run.replay.codes[0].copy()
    run.loop.collector.abandon()
    run.loop.games.reset()
    for _ in range(20):
        run.loop.play()
    assert games.state_dict()["actors"]["incarnations"] == [1, 1]
    assert (run.replay.codes[20] != first).any()
    assert (run.replay.flags[20] & EPISODE_START > 0).all()
    assert not joined(run)


# --- what cannot be -----------------------------------------------------------------------------


def test_what_games_with_actors_cannot_do_is_said() -> None:
    config = fake(2)
    games = games_of(config)
    assert games.num_games == 16
    assert not games.observe().any()
    with pytest.raises(UserError, match=r"actors\.count=0"):
        games.images()
    with pytest.raises(UserError, match=r"actors\.count=0"):
        games.step(np.zeros(16, np.int8), np.zeros(16, np.uint8))
    with pytest.raises(ConfigError, match="some actors would have no game"):
        fake(17)
    games.close()
    with pytest.raises(UserError, match=r"actors\.ray_address='auto' without actors"):
        remote_games(fake(0, "actors.ray_address=auto"))
    with pytest.raises(UserError, match=r"needs game\.rom_path"):
        remote_games(fake(2, "game.backend=mame"))


def test_actors_that_cannot_begin_end_the_run_with_their_own_words(tmp_path: Path) -> None:
    config = fake(1, "actors.max_restarts=1")

    def broken(part: ActorShare) -> GamesPlayer:
        raise OSError("no coins")

    trainer = Trainer(
        config, tmp_path, games=RemoteGames(config, InlineExecutor, broken, FakeGames.layout),
        teacher=FakeTeacher(),
    )  # fmt: skip
    with pytest.raises(UserError, match="OSError: no coins"):
        trainer.run()


def test_a_mistake_that_an_actor_finds_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # Only an actor notices: its machine begins with its games.
    settings = ["game.backend=mame", "game.rom_path=.", "game.mame_path=no-such-mame"]
    config = load_config("smoke", [*settings, "teacher.score=1", "actors.count=2"])
    trainer = inline(config, tmp_path / "run")
    with pytest.raises(UserError, match=r"^'no-such-mame' is no executable file"):
        trainer.run()
    assert not caplog.records

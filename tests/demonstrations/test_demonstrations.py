"""Demonstrations: recorded as Minari data sets, read back, and put into the replay."""

from __future__ import annotations

import errno
import shutil
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium
import h5py
import minari
import numpy as np
import pytest
from click.testing import CliRunner

from tempest_agent.agent.replay.buffer import ReplayBuffer
from tempest_agent.agent.replay.rows import EXPERT, Rows
from tempest_agent.cli import cli
from tempest_agent.config import GameConfig, load_config
from tempest_agent.demonstrations import recorder as recorder_module
from tempest_agent.demonstrations.dataset import LAYOUT_KEY, Episode, load_demonstrations
from tempest_agent.demonstrations.prefill import prefill
from tempest_agent.demonstrations.recorder import SPARE, Recorder
from tempest_agent.envs.features.layout import NUM_FEATURES, ZAP_LEGAL_FEATURE
from tempest_agent.errors import UserError
from tempest_agent.evaluation.games import EvaluationGames
from tempest_agent.evaluation.players import find_player
from tempest_agent.training.trainer import Trainer

NAME = "tempest/random-v0"
GAMES = EvaluationGames(episodes=2, seed=3, level=5, max_ticks=900, bonus_life="none")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of data sets with two games of the random player."""
    folder = tmp_path_factory.mktemp("minari")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINARI_DATASETS_PATH", str(folder))
        recorder = Recorder(find_player("random"), GAMES, NAME)
        assert all(recorder.record(number, lambda ticks: True) for number in range(2))
        recorder.close()
    return folder


@pytest.fixture
def data_sets(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(folder))
    return folder


@pytest.fixture
def nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of data sets."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    return tmp_path


def test_minari_reads_games_that_the_environment_plays_again(data_sets: Path) -> None:
    data_set = minari.load_dataset(NAME)
    env = gymnasium.make("tempest_agent:Tempest-v0")
    assert data_set.observation_space == env.observation_space
    assert data_set.action_space == env.action_space
    assert data_set.total_episodes == 2
    again = data_set.recover_environment()
    deaths = 0
    for episode in data_set.iterate_episodes():
        seed = next(iter(data_set.storage.get_episode_metadata([episode.id])))["seed"]
        observation, info = again.reset(seed=seed)
        np.testing.assert_array_equal(episode.observations[0], observation)
        for step in range(len(episode.rewards)):
            action = {name: part[step] for name, part in episode.actions.items()}
            assert env.action_space.contains(
                {"buttons": int(action["buttons"]), "spinner": action["spinner"]}
            )
            observation, reward, terminated, truncated, info = again.step(action)
            np.testing.assert_array_equal(episode.observations[step + 1], observation)
            assert episode.rewards[step] == pytest.approx(reward)
            assert episode.terminations[step] == terminated
            assert episode.truncations[step] == truncated
            assert episode.infos["score"][step + 1] == info["score"]
        assert terminated or truncated
        deaths += int(episode.infos["deaths"][-1])
    assert deaths, "the random player should lose a life"


def test_episodes_come_back_as_codes_and_counts(data_sets: Path) -> None:
    episodes = list(load_demonstrations(NAME, GameConfig()))
    raw = list(minari.load_dataset(NAME).iterate_episodes())
    for episode, stored in zip(episodes, raw, strict=True):
        np.testing.assert_array_equal(
            episode.codes.astype(np.float32) / np.float32(127.0), stored.observations
        )
        np.testing.assert_array_equal(episode.spin, stored.infos["executed_spin"][1:])
        legal = episode.codes[:-1, ZAP_LEGAL_FEATURE] > 0
        np.testing.assert_array_equal(
            np.where(legal, episode.buttons, episode.buttons & 1),
            stored.infos["executed_buttons"][1:],
        )
        assert episode.points.sum() == stored.infos["score"][-1] - stored.infos["score"][0]
        assert episode.died.sum() == stored.infos["deaths"][-1]
        assert len(episode) == len(stored.rewards)


def test_an_interrupted_game_is_not_kept_and_complete_ones_are(nothing: Path) -> None:
    games = EvaluationGames(episodes=2, max_ticks=60)
    recorder = Recorder(find_player("expert"), games, "cut-v0")
    assert not recorder.record(0, lambda ticks: ticks < 10)
    assert not (nothing / "cut-v0").exists()
    assert recorder.record(0, lambda ticks: True)
    assert not recorder.record(1, lambda ticks: ticks < 10)
    assert minari.load_dataset("cut-v0").total_episodes == 1


def test_the_command_records_and_overwrites_only_when_told_to(nothing: Path) -> None:
    def run(*more: str) -> Any:
        arguments = [
            "demonstrate",
            "expert",
            "--dataset",
            "tests/games-v0",
            "--max-ticks",
            "50",
            *more,
        ]
        return CliRunner().invoke(cli, arguments)

    first = run("--episodes", "2", "--max-ticks", "50")
    assert first.exit_code == 0, first.stderr
    refused = run("--episodes", "1", "--max-ticks", "50")
    assert refused.exit_code == 2
    assert "--force" in refused.stderr
    assert minari.load_dataset("tests/games-v0").total_episodes == 2
    assert run("--episodes", "1", "--max-ticks", "50", "--force").exit_code == 0
    assert minari.load_dataset("tests/games-v0").total_episodes == 1


def test_a_data_set_is_compressed_once_it_is_complete(nothing: Path) -> None:
    recorder = Recorder(
        find_player("expert"), EvaluationGames(episodes=1, max_ticks=300), "small-v0"
    )
    recorder.record(0, lambda ticks: True)
    (file,) = nothing.rglob("*.hdf5")
    size = file.stat().st_size
    before = next(iter(minari.load_dataset("small-v0")))
    recorder.close()
    assert file.stat().st_size < 0.2 * size
    after = next(iter(minari.load_dataset("small-v0")))
    np.testing.assert_array_equal(before.observations, after.observations)
    np.testing.assert_array_equal(before.actions["spinner"], after.actions["spinner"])
    np.testing.assert_array_equal(before.infos["score"], after.infos["score"])
    assert list(nothing.rglob("*.hdf5*")) == [file]


def test_a_disk_that_is_nearly_full_keeps_what_there_is(
    nothing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def record(games: int, force: bool, left: int) -> None:
        recorder = Recorder(
            find_player("random"), EvaluationGames(9, max_ticks=60), "full-v0", force
        )
        with closing(recorder):
            for number in range(games):
                assert recorder.record(number, lambda ticks: True)
            usage = shutil.disk_usage(nothing)._replace(free=left)
            monkeypatch.setattr(recorder_module.shutil, "disk_usage", lambda _path: usage)
            recorder.record(games, lambda ticks: True)

    record(1, False, 10**9)
    before = read_all(nothing)
    # A game of 60 decisions takes 61 observations of 911 float32, twice.
    needed = 2 * 61 * NUM_FEATURES * 4
    with pytest.raises(UserError, match=r"full-v0 has 4 MB left, too few .* complete before are"):
        record(0, True, SPARE + needed - 1)
    assert read_all(nothing) == before
    monkeypatch.undo()
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(nothing))
    with pytest.raises(UserError, match="too few"):
        record(3, True, SPARE)
    assert len(list(load_demonstrations("full-v0", GameConfig()))) == 3


def read_all(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_older_data_set_comes_back_where_the_new_one_cannot_be_made(
    nothing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder(find_player("random"), EvaluationGames(1, max_ticks=60), "old-v0")
    recorder.record(0, lambda ticks: True)
    before = read_all(nothing)

    def full(*_: Any, **__: Any) -> None:
        (nothing / "old-v0" / "data").mkdir(parents=True)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(minari, "create_dataset_from_buffers", full)
    recorder = Recorder(
        find_player("random"), EvaluationGames(1, max_ticks=60), "old-v0", force=True
    )
    with pytest.raises(OSError, match="No space"):
        recorder.record(0, lambda ticks: True)
    assert read_all(nothing) == before


@pytest.mark.parametrize("name", ["no name!", "../x-v0", "tempest/expert", "bad", ""])
def test_a_name_that_is_none_is_refused(nothing: Path, name: str) -> None:
    with pytest.raises(UserError, match="is no name of a data set: give one like"):
        Recorder(find_player("random"), GAMES, name)


def test_a_damaged_data_set_is_named(nothing: Path) -> None:
    data = nothing / "tempest" / "broken-v0" / "data"
    data.mkdir(parents=True)
    (data / "metadata.json").write_text("{}")
    with pytest.raises(UserError, match=r"'tempest/broken-v0' cannot be read .*--force"):
        load_demonstrations("tempest/broken-v0", GameConfig())


def lose_scores(file: h5py.File) -> None:
    del file["episode_1/infos/score"]


def lose_the_game(file: h5py.File) -> None:
    del file["episode_1"]


def lose_the_end(file: h5py.File) -> None:
    deaths = file["episode_1/infos/deaths"][:-3]
    del file["episode_1/infos/deaths"]
    file["episode_1/infos/deaths"] = deaths


def spoil_observations(file: h5py.File) -> None:
    file["episode_1/observations"][7, 3] = np.nan


def turn_wildly(file: h5py.File) -> None:
    file["episode_1/actions/spinner"][2] = 40.0


def press_wildly(file: h5py.File) -> None:
    file["episode_1/actions/buttons"][2] = -1


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (lose_scores, "cannot be read"),
        (lose_the_game, "cannot be read"),
        (lose_the_end, "its columns have shapes"),
        (spoil_observations, "observations are not all from -1 to 1"),
        (turn_wildly, "spinner are not all from -1 to 1"),
        (press_wildly, "buttons are not all from 0 to 3"),
    ],
)
def test_a_damaged_game_is_named(
    folder: Path, nothing: Path, harm: Callable[[h5py.File], None], words: str
) -> None:
    shutil.copytree(folder, nothing, dirs_exist_ok=True)
    (path,) = nothing.rglob("*.hdf5")
    with h5py.File(path, "r+") as file:
        harm(file)
    games = load_demonstrations(NAME, GameConfig())
    assert len(next(games)) > 0
    with pytest.raises(UserError, match=f"game 1 of the data set '{NAME}'.*{words}"):
        next(games)


@pytest.mark.parametrize("kept", [0, 100, 0.5])
def test_a_truncated_file_is_named(folder: Path, nothing: Path, kept: float) -> None:
    shutil.copytree(folder, nothing, dirs_exist_ok=True)
    (path,) = nothing.rglob("*.hdf5")
    whole = path.read_bytes()
    path.write_bytes(whole[: int(kept * len(whole)) if kept < 1 else int(kept)])
    with pytest.raises(UserError, match=f"'{NAME}' cannot be read"):
        list(load_demonstrations(NAME, GameConfig()))


@pytest.mark.parametrize("name", ["tempest/none-v0", "bad"])
def test_a_run_whose_demonstrations_are_missing_leaves_no_folder(nothing: Path, name: str) -> None:
    with CliRunner().isolated_filesystem(nothing):
        setting = f"replay.demonstrations={name}"
        done = CliRunner().invoke(
            cli, ["train", "--config", "smoke", "--run-dir", "mine", "--set", setting]
        )
        assert isinstance(done.exception, SystemExit | UserError), done.output
        assert repr(name) in f"{done.output} {done.exception}"
        assert not Path("mine").exists()


def test_what_does_not_fit_is_refused(data_sets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=f"did you mean '{NAME}'"):
        load_demonstrations("tempest/randon-v0", GameConfig())
    with pytest.raises(UserError, match=r"frame_skip=1 and this run has 2.*game\.frame_skip=1"):
        load_demonstrations(NAME, GameConfig(frame_skip=2))
    with pytest.raises(UserError, match="input_delay"):
        load_demonstrations(NAME, GameConfig(input_delay=1))
    with pytest.raises(UserError, match=r"features_plain: set game\.observation=features, or"):
        load_demonstrations(NAME, GameConfig(observation="features_plain"))
    storage = minari.load_dataset(NAME).storage
    digest = storage.metadata[LAYOUT_KEY]
    storage.update_metadata({LAYOUT_KEY: "of another version"})
    with pytest.raises(UserError, match="record it again"):
        load_demonstrations(NAME, GameConfig())
    storage.update_metadata({LAYOUT_KEY: digest})


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(UserError, match=r"tempest-agent\[demonstrations\]"):
        load_demonstrations(NAME, GameConfig())


def made_up(length: int, first: int, died: list[int], terminated: bool) -> Episode:
    """A game whose first feature counts its decisions and whose points are 100, 200, ..."""
    codes = np.zeros((length + 1, NUM_FEATURES), np.int8)
    codes[:, 0] = first + np.arange(length + 1)
    codes[:, ZAP_LEGAL_FEATURE] = codes[:, 0] % 2
    return Episode(
        codes=codes,
        spin=np.arange(length, dtype=np.int8),
        buttons=np.full(length, 3, np.uint8),
        points=100 * np.arange(1, length + 1),
        died=np.isin(np.arange(length), died),
        terminated=terminated,
    )


def test_the_rows_of_two_games_in_two_columns() -> None:
    """Games of 5 and 4 decisions, 8 of them kept: by hand."""
    replay = ReplayBuffer(40, 2, NUM_FEATURES, n_steps=3, gamma=0.5)
    games = [made_up(5, 10, [1], terminated=False), made_up(4, 20, [3], terminated=True)]
    game = GameConfig(reward_scale=0.01, death_penalty=10.0)
    assert prefill(replay, iter(games), game, most=8) == 8
    # Column 0 holds decisions 0-3 of the first game, column 1 its last and 0-2 of the second.
    np.testing.assert_array_equal(replay.codes[:4, :, 0].T, [[10, 11, 12, 13], [14, 20, 21, 22]])
    np.testing.assert_allclose(replay.reward[:4].T, [[1, 2 - 10, 3, 4], [5, 1, 2, 3]])
    np.testing.assert_array_equal(replay.buttons[:4].T, [[1, 3, 1, 3], [1, 1, 3, 1]])
    np.testing.assert_array_equal(replay.label_spin[:4].T, [[0, 1, 2, 3], [4, 0, 1, 2]])
    cut = {row: (int(codes[0]), legal) for row, (codes, legal) in replay.final_observations.items()}
    assert cut == {6: (14, False), 1: (15, True), 7: (23, True)}
    replay.add(_blank(2))
    batch = replay.sample(200)
    assert (batch.driver == EXPERT).sum() > 150
    found = {}
    for i in range(200):
        if batch.driver[i] == EXPERT:
            assert batch.labelled[i]
            found[int(batch.codes[i, 0])] = (float(batch.returns[i]), int(batch.next_codes[i, 0]))
    # Death ends a return, a cut bootstraps on what came next.
    assert found == {
        10: (1 + 0.5 * -8, 0),
        11: (-8.0, 0),
        12: (3 + 0.5 * 4, 14),
        13: (4.0, 14),
        14: (5.0, 15),
        20: (1 + 0.5 * 2 + 0.25 * 3, 23),
        21: (2 + 0.5 * 3, 23),
        22: (3.0, 23),
    }


def _blank(count: int) -> Rows:
    none = np.zeros(count, np.bool_)
    codes = np.zeros((count, NUM_FEATURES), np.int8)
    small, large = np.zeros(count, np.int8), np.zeros(count, np.float32)
    byte = np.zeros(count, np.uint8)
    ends = none, none, ~none, none
    return Rows(codes, small, byte, large, *ends, byte, small, byte, none, codes, none)


def test_too_few_decisions_are_refused() -> None:
    replay = ReplayBuffer(1000, 20, NUM_FEATURES, n_steps=3, gamma=0.5)
    with pytest.raises(UserError, match=r"provide 5 decisions.*20 games"):
        prefill(replay, [made_up(5, 0, [], True)], GameConfig(), 500)


def test_a_run_that_begins_with_demonstrations_resumes_exactly(
    data_sets: Path, tmp_path: Path
) -> None:
    overrides = [
        "game.frame_skip=1", f"replay.demonstrations={NAME}", "replay.demonstrations_share=0.1",
        "run.steps=960", "run.log_interval=480", "run.device=cpu",
    ]  # fmt: skip
    config = load_config("smoke", overrides)
    whole = Trainer(config, tmp_path / "whole")
    whole.run()
    replay = whole.loop.replay
    assert replay.filled == 400 // 16 + 960 // 16
    drivers = (replay.flags[:26] >> 4) & 3
    assert (drivers[:25] == EXPERT).all()
    assert not (drivers[25] == EXPERT).all()
    first = Trainer(config, tmp_path / "parts")
    first.loop.on_metrics = lambda _: first.request_stop()
    assert first.run()["steps"] < 960
    part = Trainer.resume(tmp_path / "parts")
    part.run()
    for name, column in replay.arrays().items():
        np.testing.assert_array_equal(column, part.loop.replay.arrays()[name], err_msg=name)
    assert whole.loop.learner.updates == part.loop.learner.updates
    ours, theirs = (t.loop.learner.online.state_dict() for t in (whole, part))
    assert all((ours[name] == theirs[name]).all() for name in ours)

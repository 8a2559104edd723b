"""``TempestVectorEnv``: equal to single environments in all three autoreset modes."""

from __future__ import annotations

import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import wrappers
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from tempest_agent.envs.api.tempest_env import TempestEnv
from tempest_agent.envs.api.vector_env import TempestVectorEnv
from tempest_agent.envs.features.observe import NUM_FEATURES

GAMES = 4
OPTIONS: dict[str, Any] = {
    "lives": 2, "start_level": [1, 17], "max_ticks": 300, "death_penalty": 2.0, "shaping": 0.5,
}  # fmt: skip


def make(num_envs: int = GAMES, **options: Any) -> Any:
    return gym.make_vec("tempest_agent:Tempest-v0", num_envs=num_envs, **options)


def assert_same(left: Any, right: Any, where: str = "") -> None:
    """Equal infos or observations, with masks, dtypes of numbers apart."""
    if isinstance(left, dict):
        assert set(left) == set(right), where
        for name in left:
            assert_same(left[name], right[name], f"{where}.{name}")
    elif isinstance(left, np.ndarray) and left.dtype == object:
        for one, other in zip(left, right, strict=True):
            assert_same(one, other, where)
    else:
        np.testing.assert_array_equal(left, right, where)


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize(
    ("action_type", "obs_type"),
    [("hybrid", "features"), ("box", "ram"), ("discrete", "features_plain")],
)
def test_equals_gymnasiums_own_vector_form(
    action_type: str, mode: AutoresetMode, obs_type: str
) -> None:
    """The slow reference: single environments stepped one after the other by Gymnasium."""
    options = {**OPTIONS, "action_type": action_type, "obs_type": obs_type}
    slow = SyncVectorEnv([lambda: TempestEnv(**options)] * GAMES, autoreset_mode=mode)
    fast = TempestVectorEnv(GAMES, autoreset_mode=mode, **options)
    assert fast.observation_space == slow.observation_space
    assert fast.action_space == slow.action_space
    for env_reset in zip(slow.reset(seed=11), fast.reset(seed=11), strict=True):
        assert_same(*env_reset)
    slow.action_space.seed(4)
    cuts = deaths = 0
    for _ in range(700):
        actions = slow.action_space.sample()
        expected, got = slow.step(actions), fast.step(actions)
        for one, other in zip(expected, got, strict=True):
            assert_same(one, other)
        done = expected[2] | expected[3]
        cuts += int(expected[3].sum())
        deaths += int(expected[2].sum())
        if mode == AutoresetMode.DISABLED and done.any():
            again = [env.reset(options={"reset_mask": done.copy()}) for env in (slow, fast)]
            assert_same(again[0][0], again[1][0])
            assert_same(again[0][1], again[1][1])
    assert cuts > 0
    assert deaths > 0


def test_make_vec_equals_make() -> None:
    vector = make(3)
    vector.reset(seed=0)
    singles = [gym.make("tempest_agent:Tempest-v0") for _ in range(3)]
    for game, env in enumerate(singles):
        env.reset(seed=game)
    vector.action_space.seed(1)
    for _ in range(200):
        action = vector.action_space.sample()
        observations, rewards, _, _, _ = vector.step(action)
        for game, env in enumerate(singles):
            one = {"buttons": action["buttons"][game], "spinner": action["spinner"][game]}
            observation, reward, _, _, _ = env.step(one)
            assert observation.tobytes() == observations[game].tobytes()
            assert reward == rewards[game]


def test_threads_and_seed_lists_change_nothing() -> None:
    one, many = make(5), make(5, num_threads=3)
    assert_same(one.reset(seed=7)[0], many.reset(seed=[7, 8, 9, 10, 11])[0])
    one.action_space.seed(0)
    for _ in range(300):
        action = one.action_space.sample()
        assert_same(one.step(action)[0], many.step(action)[0])
    many.close()


def test_the_mode_belongs_to_the_instance() -> None:
    first, second = make(autoreset_mode="SameStep"), make(autoreset_mode="Disabled")
    assert first.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert second.metadata["autoreset_mode"] is AutoresetMode.DISABLED
    assert make().metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert "autoreset_mode" not in TempestVectorEnv.metadata
    with pytest.raises(ValueError, match="autoreset_mode='Later'"):
        make(autoreset_mode="Later")


@pytest.mark.parametrize(
    ("mask", "error", "words"),
    [
        (np.array([1, 0, 0, 1]), TypeError, "int64"),
        ([True, False, False, True], TypeError, "list"),
        (np.zeros(GAMES, np.bool_), ValueError, "False everywhere"),
        (np.ones(GAMES + 1, np.bool_), ValueError, r"\(5,\)"),
        (np.ones((GAMES, 1), np.bool_), ValueError, "shape"),
    ],
)
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_bad_reset_mask_is_refused(
    mask: Any, error: type[Exception], words: str, mode: AutoresetMode
) -> None:
    env = make(autoreset_mode=mode)
    env.reset(seed=0)
    with pytest.raises(error, match=words):
        env.reset(options={"reset_mask": mask})


def test_a_partial_reset_before_the_first_is_refused() -> None:
    with pytest.raises(ValueError, match="never been reset"):
        make().reset(options={"reset_mask": np.array([True, False, False, False])})
    with pytest.raises(ValueError, match="unknown entry 'mask'"):
        make().reset(options={"mask": np.ones(GAMES, np.bool_)})
    with pytest.raises(TypeError, match=r"options=\[\]"):
        make().reset(options=[])  # type: ignore[arg-type]


def test_a_reset_mask_resets_those_games_only() -> None:
    env = make(autoreset_mode="Disabled")
    env.reset(seed=0)
    for _ in range(50):
        env.step(env.action_space.sample())
    before = env.unwrapped.ram()
    mask = np.array([False, True, False, True])
    observations, info = env.reset(seed=[0, 1, 2, 3], options={"reset_mask": mask})
    after = env.unwrapped.ram()
    assert [np.array_equal(*pair) for pair in zip(before, after, strict=True)] == (~mask).tolist()
    assert info["_score"].tolist() == mask.tolist()
    fresh, _ = make().reset(seed=0)
    np.testing.assert_array_equal(observations[mask], fresh[mask])


def test_a_finished_game_is_not_stepped_when_autoreset_is_off() -> None:
    env = make(autoreset_mode="Disabled", max_episode_steps=2)
    env.reset(seed=0)
    env.step(env.action_space.sample())
    assert env.step(env.action_space.sample())[3].all()
    with pytest.raises(RuntimeError, match="reset_mask"):
        env.step(env.action_space.sample())


@pytest.mark.parametrize("limits", [(5, None), (9, 5), (5, 9)])
def test_the_step_limit_of_make_vec_truncates(limits: tuple[int, int | None]) -> None:
    env = make(max_episode_steps=limits[0], max_steps=limits[1])
    env.reset(seed=0)
    for step in range(1, 6):
        _, _, terminated, truncated, info = env.step(env.action_space.sample())
        assert truncated.tolist() == [step == 5] * GAMES
    assert not terminated.any()
    assert info["terminal_cause"].tolist() == ["time_limit"] * GAMES


def test_returned_arrays_are_fresh_ones() -> None:
    env = make()
    env.reset(seed=0)
    first = env.step(env.action_space.sample())
    copies = pickle.loads(pickle.dumps(first))
    for _ in range(20):
        env.step(env.action_space.sample())
    for one, other in zip(first, copies, strict=True):
        assert_same(one, other)


def test_states_round_trip() -> None:
    env = make(autoreset_mode="SameStep", shaping=1.0)
    env.reset(seed=3)
    actions = [env.action_space.sample() for _ in range(120)]
    for action in actions[:60]:
        env.step(action)
    states = env.unwrapped.clone_states()
    first = [env.step(action)[:4] for action in actions[60:]]
    other = make(autoreset_mode="SameStep", shaping=1.0)
    other.unwrapped.restore_states(states)
    for action, expected in zip(actions[60:], first, strict=True):
        for one, got in zip(expected, other.step(action)[:4], strict=True):
            np.testing.assert_array_equal(one, got)


def test_states_of_another_form_are_refused() -> None:
    env = make()
    env.reset(seed=3)
    states = env.unwrapped.clone_states()
    other = make(input_delay=3)
    with pytest.raises(ValueError, match="make it with input_delay=0"):
        other.unwrapped.restore_states(states)
    for wrong in (states[:1], states[:, 1:], states.astype(int), states.tobytes()):
        with pytest.raises(ValueError, match=r"clone_states\(\)"):
            env.unwrapped.restore_states(wrong)


@pytest.mark.parametrize("num_envs", [0, True, 2.5, 10**9])
def test_an_impossible_number_of_games_is_refused(num_envs: Any) -> None:
    with pytest.raises(ValueError, match=f"num_envs={num_envs}"):
        TempestVectorEnv(num_envs)


def test_pictures_of_every_game() -> None:
    env = make(2, render_mode="rgb_array", render_size=(90, 120))
    env.reset(seed=0)
    pictures = env.render()
    assert [picture.shape for picture in pictures] == [(120, 90, 3)] * 2
    with pytest.raises(ValueError, match="one game"):
        make(2, render_mode="human")


def test_pickling_keeps_the_games() -> None:
    env = TempestVectorEnv(3, num_threads=2, autoreset_mode="SameStep", max_ticks=40)
    env.reset(seed=0)
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(100)]
    for action in actions[:50]:
        env.step(action)
    copy = pickle.loads(pickle.dumps(env))
    for action in actions[50:]:
        for one, other in zip(env.step(action), copy.step(action), strict=True):
            assert_same(one, other)


def test_vector_wrappers_work() -> None:
    env: Any = wrappers.vector.RecordEpisodeStatistics(make(max_episode_steps=50))
    env = wrappers.vector.NormalizeObservation(env)
    observations, _ = env.reset(seed=0)
    assert observations.shape == (GAMES, NUM_FEATURES)
    seen = 0
    for _ in range(120):
        *_, info = env.step(env.action_space.sample())
        seen += int(info.get("_episode", np.zeros(1)).sum())
    assert seen == 2 * GAMES


def test_wrong_actions_are_refused() -> None:
    env = make(action_type="discrete")
    env.reset(seed=0)
    with pytest.raises(ValueError, match="shape"):
        env.step(np.zeros(GAMES + 1, np.int64))
    with pytest.raises(ValueError, match="from 0 to 67"):
        env.step(np.full(GAMES, 68))


def test_stepping_before_the_reset_is_refused() -> None:
    env = make()
    with pytest.raises(RuntimeError, match="before reset"):
        env.step(env.action_space.sample())

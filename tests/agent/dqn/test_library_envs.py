"""The environments that ``HybridDQN`` takes: of others, and every form of Tempest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from numpy.typing import NDArray
from stable_baselines3.common.callbacks import BaseCallback, CheckpointCallback, EvalCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
from target_game import LENGTH, MINE, QUICK, TargetGame, best_action

from tempest_agent import HybridDQN
from tempest_agent.agent.checkpoints.policy import load_policy
from tempest_agent.agent.dqn.games_vec_env import GamesVecEnv
from tempest_agent.agent.games.action_forms import HybridForm, form_of
from tempest_agent.agent.games.env_games import FINE, EnvGames, layout_of
from tempest_agent.agent.games.spaces import space_from, space_to
from tempest_agent.agent.games.tempest_games import TEMPEST_LAYOUT, TempestGames
from tempest_agent.config import GameConfig
from tempest_agent.envs.api.sb3_vec_env import GymVecEnv, TempestVecEnv
from tempest_agent.envs.api.vector_env import TempestVectorEnv
from tempest_agent.envs.features.layout import FEATURES
from tempest_agent.errors import UserError

SMALL: dict[str, Any] = {
    "buffer_size": 2_000,
    "learning_starts": 20,
    "batch_size": 16,
    "policy_kwargs": {"net_arch": [16], "lane_width": 4},
    "device": "cpu",
    "seed": 2,
}


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("space", "expected"),
    [
        (
            spaces.Dict({"b": spaces.Discrete(5), "a": spaces.Box(0.0, 10.0, (1,))}),
            [{"b": 4, "a": [10.0]}, {"b": 0, "a": [2.5]}],
        ),
        (
            spaces.Tuple((spaces.Box(-4.0, 0.0, ()), spaces.Discrete(5, start=-2))),
            [(0.0, 2), (-3.0, -2)],
        ),
    ],
)
def test_actions_are_scaled_to_their_bounds(space: spaces.Space[Any], expected: Any) -> None:
    form = form_of(space)
    assert form.num_pairs == 5
    actions = form.each(np.array([4, 0]), np.array([1.0, -0.5]))
    assert all(space.contains(action) for action in actions)
    assert actions == expected
    batch = form.batch(np.array([4, 0]), np.array([1.0, -0.5]))
    keys = batch.keys() if isinstance(batch, dict) else range(2)
    for key in keys:
        np.testing.assert_array_equal(batch[key], [action[key] for action in expected])


@pytest.mark.parametrize(
    ("space", "words"),
    [
        (spaces.Discrete(4), "SB3's DQN"),
        (spaces.Box(-1.0, 1.0, (2,)), "SAC for continuous"),
        (spaces.Tuple((spaces.Discrete(2), spaces.Discrete(2))), "exactly one"),
        (spaces.Dict({"a": spaces.Discrete(2)}), "exactly one"),
        (spaces.Tuple((spaces.Discrete(2), spaces.Box(-1.0, 1.0, (2,)))), "must be one number"),
        (spaces.Tuple((spaces.Discrete(2), spaces.Box(-np.inf, 1.0, (1,)))), "finite bounds"),
        (spaces.Tuple((spaces.Discrete(300), spaces.Box(-1.0, 1.0, (1,)))), "at most 256"),
    ],
)
def test_other_actions_are_refused(space: spaces.Space[Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        HybridForm(space)


def test_observations_are_stored_as_exactly_as_they_are() -> None:
    action = TargetGame().action_space
    for dtype, stored in (
        (np.float64, "float32"), (np.float32, "float32"), (np.float16, "float16"),
        (np.uint8, "uint8"), (np.int32, "float32"),
    ):  # fmt: skip
        box = spaces.Box(0, 9, (3, 2), dtype)  # type: ignore[arg-type]
        layout = layout_of(box, action)
        assert (layout.num_features, layout.stored, layout.num_pairs) == (6, stored, 4)
        assert (layout.counts, layout.fire_and_zap) == (FINE, False)
    with pytest.raises(UserError, match="FlattenObservation"):
        layout_of(spaces.Dict({"a": spaces.Box(0, 1)}), action)
    with pytest.raises(UserError, match="action_type='hybrid'"):
        layout_of(spaces.Box(0, 255, (2048,), np.uint8), spaces.Box(-1.0, 1.0, (3,)))


def test_spaces_come_back_from_their_description() -> None:
    for space in (
        TargetGame().action_space, TargetGame("tuple").action_space,
        TargetGame().observation_space, spaces.Discrete(3, start=2),
        spaces.Box(np.array([0, 1], np.uint8), np.array([7, 9], np.uint8), dtype=np.uint8),
    ):  # fmt: skip
        assert space_from(space_to(space)) == space
    with pytest.raises(TypeError, match="cannot be stored"):
        space_to(spaces.MultiBinary(3))


class Script(TargetGame):
    """Observations count the steps, so that a stored row says where it is from."""

    def _draw(self) -> NDArray[np.float64]:
        self.state = np.array([float(self.steps) / 4.0, 0.0, 1.0, 0.0])
        return self.state.copy()


def test_cuts_are_bootstrapped_and_ends_are_not() -> None:
    """By hand: tool 1 at place x = step / 4 earns 1; a mine ends the episode."""
    games = EnvGames(DummyVecEnv([Script, Script]))
    games.reset()
    for step in range(LENGTH):
        place = (step / 4.0 + 2.0) / 5.0 * 2.0 - 1.0
        spin = np.full(2, round(place * FINE))
        # The second environment steps on a mine at once.
        buttons = np.array([1, MINE if step == 0 else 1], np.uint8)
        result = games.step(spin, buttons)
        assert result.reward[0] == pytest.approx(1.0, abs=1e-3)
        if step == 0:
            assert (result.terminated.tolist(), result.truncated.tolist()) == (
                [False, True], [False, False],
            )  # fmt: skip
            assert games.observe()[1, 0] == 0.0
            assert games.infos[1]["episode"] == {"r": 0.0, "l": 1}
    assert (result.terminated[0], result.truncated[0], result.game_over[0]) == (False, True, True)
    assert result.final_codes[0, 0] == LENGTH / 4.0
    assert games.observe()[0, 0] == 0.0
    assert games.infos[0]["episode"]["r"] == pytest.approx(10.0, abs=1e-2)
    assert games.observe().dtype == np.float32


def test_the_adapter_equals_stable_baselines_own_form() -> None:
    slow = DummyVecEnv([lambda: Monitor(TargetGame())] * 3)
    fast = GymVecEnv(SyncVectorEnv([TargetGame] * 3, autoreset_mode=AutoresetMode.SAME_STEP))
    assert fast.observation_space == slow.observation_space
    assert fast.action_space == slow.action_space
    slow.seed(5)
    fast.seed(5)
    np.testing.assert_array_equal(slow.reset(), fast.reset())
    slow.action_space.seed(0)
    ends = set()
    for step in range(60):
        actions: Any = [slow.action_space.sample() for _ in range(3)]
        if step % 3 == 0:
            actions = [best_action(game.unwrapped.state) for game in slow.envs]  # type: ignore[attr-defined]
        expected, got = slow.step(actions), fast.step(actions)
        for one, other in zip(expected[:3], got[:3], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)
        for i in np.flatnonzero(expected[2]):
            one, other = expected[3][i], got[3][i]
            last = [info["terminal_observation"] for info in (one, other)]
            np.testing.assert_array_equal(*last)
            assert one["TimeLimit.truncated"] == other["TimeLimit.truncated"]
            assert one["episode"]["r"] == pytest.approx(other["episode"]["r"], abs=1e-5)
            assert one["episode"]["l"] == other["episode"]["l"]
            ends.add(bool(one["TimeLimit.truncated"]))
    assert ends == {False, True}
    with pytest.raises(UserError, match="SameStep"):
        GymVecEnv(SyncVectorEnv([TargetGame] * 2))


class Telling(TargetGame):
    """Says in every way that Gymnasium knows what goes on."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float64], dict[str, Any]]:
        observation, _ = super().reset(seed=seed)
        return observation, {"begins": True, **self._info()}

    def _info(self) -> dict[str, Any]:
        info = {
            "score": 10 * self.steps, "share": 0.5, "alive": self.steps < 3,
            "name": f"step {self.steps}", "map": np.arange(2.0) + self.steps,
            "inner": {"depth": self.steps, "deeper": {"word": "x" * self.steps}},
        }  # fmt: skip
        if self.steps % 3 == 1:
            info["bonus"] = self.steps
        return info

    def step(self, action: Any) -> tuple[NDArray[np.float64], float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, _ = super().step(action)
        return observation, reward, terminated, truncated, self._info()


def same(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, float):
        return one == pytest.approx(other, abs=1e-5)
    return bool(np.array_equal(one, other)) and type(one) is type(other)


def test_infos_are_those_of_stable_baselines_own_form() -> None:
    slow = DummyVecEnv([Telling] * 3)
    fast = GymVecEnv(SyncVectorEnv([Telling] * 3, autoreset_mode=AutoresetMode.SAME_STEP))
    for env in (slow, fast):
        env.seed(5)
        env.reset()
    assert [same(*both) for both in zip(slow.reset_infos, fast.reset_infos, strict=True)] == [
        True
    ] * 3
    slow.action_space.seed(0)
    ended = 0
    for _ in range(40):
        actions: Any = [slow.action_space.sample() for _ in range(3)]
        expected, got = slow.step(actions)[3], fast.step(actions)[3]
        assert isinstance(got, list)
        for one, other in zip(expected, got, strict=True):
            # As a Monitor would, the adapter tells of the episode.
            ended += "episode" in other
            assert same(one, {name: other[name] for name in other if name != "episode"})
        assert all(same(*both) for both in zip(slow.reset_infos, fast.reset_infos, strict=True))
    assert ended > 5


def test_an_episode_that_a_wrapper_counts_is_its_own() -> None:
    def counted() -> gym.Env[Any, Any]:
        return gym.wrappers.RecordEpisodeStatistics(TargetGame())

    inner = SyncVectorEnv([counted] * 2, autoreset_mode=AutoresetMode.SAME_STEP)
    outer = gym.wrappers.vector.RecordEpisodeStatistics(same_step(2))
    for vector in (inner, outer):
        env = GymVecEnv(vector)
        env.seed(1)
        env.reset()
        seen = 0
        for _ in range(2 * LENGTH):
            actions: Any = [best_action(game.unwrapped.state) for game in vector.unwrapped.envs]  # type: ignore[attr-defined]
            infos = env.step(actions)[3]
            for info in infos:
                seen += "episode" in info
                if "episode" in info:
                    assert info["episode"]["l"] == LENGTH
                    assert info["episode"]["r"] == pytest.approx(10.0, abs=1e-3)
                    assert "t" in info["episode"], "the wrapper's, not the adapter's"
        assert seen == 4


def test_what_tempest_says_reaches_callbacks() -> None:
    told: list[dict[str, Any]] = []

    class Listener(BaseCallback):
        def _on_step(self) -> bool:
            infos = self.locals["infos"]
            assert isinstance(infos, list)
            assert len(infos) == self.training_env.num_envs
            told.extend(infos)
            return True

    agent = HybridDQN("MlpQPolicy", tempest("make_vec"), **SMALL)
    agent.learn(300, Listener())
    for info in told:
        assert {"score", "level", "lives", "ticks", "death_cause"} <= info.keys()
        assert (type(info["score"]), type(info["lives"])) == (int, int)
    ends = [info for info in told if "episode" in info]
    assert len(ends) > 1
    for info in ends:
        assert info["TimeLimit.truncated"] == (info["terminal_cause"] == "time_limit")
        # Of the game that ended, not of the one that has begun.
        assert info["ticks"] >= info["episode"]["l"] > 1
        assert info["terminal_observation"].shape == agent.observation_space.shape
    told.clear()
    HybridDQN("MlpQPolicy", tempest("games"), **SMALL).learn(20, Listener())
    assert all({"score", "level"} <= info.keys() for info in told)


def same_step(count: int) -> gym.vector.VectorEnv[Any, Any, Any]:
    return SyncVectorEnv([TargetGame] * count, autoreset_mode=AutoresetMode.SAME_STEP)


def test_gymnasium_and_stable_baselines_forms_train_alike() -> None:
    results = []
    for env in (DummyVecEnv([TargetGame] * 4), same_step(4)):
        agent = HybridDQN("MlpQPolicy", env, **{**QUICK, "learning_starts": 40})
        agent.learn(200)
        assert agent.learner.updates > 10
        results.append(torch.cat([p.flatten() for p in agent.learner.online.parameters()]))
    torch.testing.assert_close(results[0], results[1], rtol=1e-3, atol=1e-4)


def test_a_normalised_environment_trains() -> None:
    env = VecNormalize(DummyVecEnv([TargetGame] * 4), norm_reward=True)
    agent = HybridDQN("MlpQPolicy", env, **{**QUICK, "learning_starts": 40})
    agent.learn(120)
    assert agent.learner.updates > 5
    assert agent.get_vec_normalize_env() is env


def tempest(kind: str, obs_type: str = "features") -> Any:
    if kind == "gymnasium":
        return gym.make("tempest_agent:Tempest-v0", max_ticks=120, obs_type=obs_type)
    if kind == "make_vec":
        return gym.make_vec(
            "tempest_agent:Tempest-v0", num_envs=2, max_ticks=120, obs_type=obs_type,
            autoreset_mode="SameStep",
        )  # fmt: skip
    if kind == "box":
        return TempestVecEnv(2, max_ticks=120, obs_type=obs_type)
    return GamesVecEnv(TempestGames(2, GameConfig(max_ticks=120, observation=obs_type), 0))


@pytest.mark.parametrize("policy", ["LaneQPolicy", "MlpQPolicy"])
@pytest.mark.parametrize("kind", ["gymnasium", "make_vec", "box", "games"])
def test_every_form_of_tempest_trains(policy: str, kind: str, tmp_path: Path) -> None:
    env = tempest(kind)
    agent = HybridDQN(policy, env, **SMALL)
    assert agent.layout == TEMPEST_LAYOUT
    assert agent.loop.replay.codes.dtype == np.int8
    agent.learn(60)
    assert agent.learner.updates > 5
    agent.save(tmp_path / "agent.pt")
    loaded = HybridDQN.load(tmp_path / "agent.pt", env=tempest(kind))
    loaded.learn(10, reset_num_timesteps=False)
    observation = loaded.observation_space.sample()
    action, _ = loaded.predict(observation, deterministic=True)
    assert agent.action_space.contains(action)
    # The commands play it as well.
    player = load_policy(tmp_path / "agent.pt")
    spin, buttons = player.act(
        np.zeros((3, player.network.layout.num_features), np.int8), np.ones(3, np.bool_)
    )
    assert (spin.shape, buttons.shape) == ((3,), (3,))


def test_tempests_features_are_stored_as_the_codes_they_come_from() -> None:
    zap_legal = next(feature.index for feature in FEATURES if feature.name == "zap_legal")
    fast = TempestVectorEnv(3, autoreset_mode="SameStep")
    games = EnvGames(GymVecEnv(fast))
    games.env.seed(4)
    games.reset()
    for _ in range(80):
        np.testing.assert_array_equal(games.observe(), fast.batch.codes)
        np.testing.assert_array_equal(games.zap_legal(), fast.batch.codes[:, zap_legal] > 0)
        step = games.step(np.array([-31, 0, 31], np.int8), np.array([3, 1, 2], np.uint8))
        np.testing.assert_array_equal(fast.batch.games["executed_spin"], [-31, 0, 31])
        np.testing.assert_array_equal(fast.batch.games["executed_buttons"], step.buttons)


def test_callbacks_of_stable_baselines_on_tempest(tmp_path: Path) -> None:
    agent = HybridDQN("LaneQPolicy", tempest("games"), **SMALL)
    watch = EvalCallback(
        GamesVecEnv(TempestGames(2, GameConfig(max_ticks=60), 9)), n_eval_episodes=2, eval_freq=40,
        best_model_save_path=str(tmp_path), verbose=0,
    )  # fmt: skip
    agent.learn(100, [watch, CheckpointCallback(25, str(tmp_path))])
    assert (tmp_path / "best_model.pt").is_file()
    assert load_policy(tmp_path / "rl_model_100_steps.zip").step == 100
    best = HybridDQN.load(tmp_path / "best_model")
    mean, _ = evaluate_policy(best, GamesVecEnv(TempestGames(2, GameConfig(max_ticks=60), 9)), 2)
    assert isinstance(mean, float)


def test_the_shipped_player_can_be_loaded_and_trained_on() -> None:
    from importlib import resources

    path = Path(str(resources.files("tempest_agent.checkpoints") / "champion.pt"))
    plain = tempest("make_vec", obs_type="features_plain")
    with pytest.raises(UserError, match="obs_type='features'"):
        HybridDQN.load(path, env=plain)
    agent = HybridDQN.load(path, env=tempest("make_vec"))
    codes = np.random.default_rng(0).integers(-127, 128, (20, 1263)).astype(np.int8)
    actions, _ = agent.predict(codes.astype(np.float32) / np.float32(127.0), deterministic=True)
    spin, buttons = load_policy(path).act(codes, np.ones(20, np.bool_))
    assert [int(action["buttons"]) for action in actions] == buttons.tolist()
    places = [float(action["spinner"][0]) * 31.0 for action in actions]
    np.testing.assert_allclose(places, spin, atol=0.5001)
    with pytest.raises(UserError, match=r"nothing teaches it.*GamesVecEnv\(TempestGames"):
        agent.learn(40)
    own = GamesVecEnv(TempestGames(2, GameConfig(max_ticks=120), 0))
    agent = HybridDQN.load(path, env=own, learning_starts=16, batch_size=8)
    updates = agent.learner.updates
    agent.learn(40)
    assert agent.learner.updates > updates


class Broken(TargetGame):
    """``fault`` happens in the third step of each episode of four (of three with ``last``)."""

    fault: dict[str, float]

    def step(self, action: Any) -> tuple[NDArray[np.float64], float, bool, bool, dict[str, Any]]:
        observation, reward, _, _, info = super().step(action)
        if self.steps == 3:
            reward = self.fault.get("reward", reward)
            observation[2] = self.fault.get("observation", observation[2])
        return observation, reward, self.steps == 4 - int("last" in self.fault), False, info


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"reward": np.nan}, "environment 1 gave the reward nan"),
        ({"reward": -np.inf}, "reward -inf, which is no finite float32"),
        ({"observation": np.nan}, r"environment 1 gave the observation nan \(entry 2\)"),
        ({"observation": 1e300}, r"observation 1e\+300 \(entry 2\)"),
        ({"observation": np.inf, "last": 1.0}, r"environment 1 gave the observation inf"),
    ],
)
def test_numbers_that_are_none_never_reach_the_replay(fault: dict[str, float], words: str) -> None:
    def broken() -> Broken:
        env = Broken()
        env.fault = fault
        return env

    def sound() -> Broken:
        env = Broken()
        env.fault = {}
        return env

    agent = HybridDQN("MlpQPolicy", DummyVecEnv([sound, broken, sound]), **QUICK)
    with pytest.raises(UserError, match=words):
        agent.learn(60)
    assert agent.loop.replay.filled == 2
    assert np.isfinite(agent.loop.replay.codes).all()
    assert np.isfinite(agent.loop.replay.reward).all()
    # The same agent goes on in an environment that is sound.
    agent.set_env(DummyVecEnv([sound, sound, sound]))
    agent.learn(30)
    assert agent.loop.replay.filled > 2


class Rewards(TargetGame):
    """Gives a reward of several numbers, or of none."""

    def __init__(self, reward: Any) -> None:
        super().__init__()
        self.reward = reward

    def step(self, action: Any) -> Any:
        observation, _, *rest = super().step(action)
        return observation, self.reward, *rest


@pytest.mark.parametrize("reward", [np.ones(2), [1.0, 2.0], "x", None], ids=str)
@pytest.mark.parametrize(
    "made",
    [
        lambda make: make(),
        lambda make: DummyVecEnv([make] * 2),
        lambda make: SyncVectorEnv([make] * 2, autoreset_mode="SameStep"),
    ],
    ids=["single", "stable-baselines", "gymnasium"],
)
def test_rewards_that_are_no_number_are_said_so(made: Any, reward: Any) -> None:
    agent = HybridDQN("MlpQPolicy", made(lambda: Rewards(reward)), **QUICK)
    with pytest.raises(UserError, match=r"one number|no finite") as caught:
        agent.learn(40)
    assert "\n" not in str(caught.value)


def test_a_column_of_rewards_is_refused() -> None:
    class Column(DummyVecEnv):
        def step_wait(self) -> Any:
            observation, reward, *rest = super().step_wait()
            return observation, reward[:, None], *rest

    agent = HybridDQN("MlpQPolicy", Column([TargetGame] * 2), **QUICK)
    with pytest.raises(UserError, match=r"shape \(2, 1\), and \(2,\) is needed"):
        agent.learn(40)


def test_a_fault_inside_of_an_environment_stays_what_it_is() -> None:
    class Faulty(TargetGame):
        def step(self, action: Any) -> Any:
            raise ValueError("its own")

    with pytest.raises(ValueError, match="its own"):
        HybridDQN("MlpQPolicy", Faulty(), **QUICK).learn(40)


def test_features_that_were_scaled_again_are_refused() -> None:
    env = VecNormalize(GymVecEnv(TempestVectorEnv(2, autoreset_mode="SameStep")))
    agent = HybridDQN("LaneQPolicy", env, **SMALL)
    with pytest.raises(UserError, match="no feature from -1 to 1"):
        agent.learn(20)


class WithoutLast(DummyVecEnv):
    """Forgets what SB3 asks a VecEnv to tell."""

    def step_wait(self) -> Any:
        observation, reward, done, infos = super().step_wait()
        return observation, reward, done, [{} for _ in infos]


class WithoutFinal(SyncVectorEnv):
    def step(self, actions: Any) -> Any:
        *result, _ = super().step(actions)
        return *result, {}


def test_an_episode_without_its_last_observation_is_refused() -> None:
    games: Any = WithoutLast([TargetGame])
    with pytest.raises(UserError, match=r"environment 0 ended .*terminal_observation"):
        HybridDQN("MlpQPolicy", games, **QUICK).learn(20)
    vector = WithoutFinal([TargetGame], autoreset_mode=AutoresetMode.SAME_STEP)
    with pytest.raises(UserError, match="final_obs"):
        HybridDQN("MlpQPolicy", vector, **QUICK).learn(20)


def test_every_seed_a_run_may_have_is_taken() -> None:
    def weights(seed: int) -> torch.Tensor:
        agent = HybridDQN("MlpQPolicy", TargetGame(), **{**QUICK, "seed": seed})
        return torch.cat([p.flatten() for p in agent.learner.online.parameters()])

    assert torch.equal(weights(2**63 - 1), weights(2**63 - 1))
    seeds = (3, 2**32 + 3, 2**63 - 1)
    different = {tuple(weights(seed).tolist()) for seed in seeds}
    assert len(different) == len(seeds)


class LargeNumbers(gym.Env[Any, Any]):
    """Observes and takes unsigned whole numbers of 64 bits."""

    observation_space = spaces.Box(0, 2**64 - 1, (2,), np.uint64)
    action_space = spaces.Dict(a=spaces.Discrete(3), b=spaces.Box(0, 9, (1,), np.uint64))

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return np.array([0, 2**64 - 1], np.uint64), {}

    def step(self, action: Any) -> Any:
        return np.array([1, 2**63], np.uint64), 1.0, True, False, {}


def test_a_model_of_unsigned_numbers_of_64_bits_is_loaded_again(tmp_path: Path) -> None:
    model = HybridDQN("MlpQPolicy", LargeNumbers(), policy_kwargs={"net_arch": [4]})
    model.save(tmp_path / "model")
    again = HybridDQN.load(tmp_path / "model")
    assert again.observation_space == LargeNumbers.observation_space
    assert again.action_space == LargeNumbers.action_space

"""``HybridDQN`` as an algorithm of Stable-Baselines3, on an environment of somebody else's."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from places import ROOT
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import (
    CheckpointCallback,
    EvalCallback,
    StopTrainingOnMaxEpisodes,
    StopTrainingOnRewardThreshold,
)
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.logger import configure
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor
from target_game import LENGTH, QUICK, TargetGame

from tempest_agent import HybridDQN, LaneQPolicy, MlpQPolicy
from tempest_agent.agent.checkpoints.policy import export_policy
from tempest_agent.agent.dqn.sb3_arguments import KEYS
from tempest_agent.config import Config, load_config, settings
from tempest_agent.errors import UserError


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def environments(count: int = 8, form: str = "dict") -> DummyVecEnv:
    return DummyVecEnv([lambda: Monitor(TargetGame(form))] * count)


def model(env: Any = None, **changes: Any) -> HybridDQN:
    return HybridDQN("MlpQPolicy", env or environments(), **{**QUICK, **changes})


def weights(trained: HybridDQN) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in trained.learner.online.parameters()])


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[HybridDQN, Path]:
    """Trained until the evaluation is near the optimum, with SB3's callbacks."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("library")
    stop = StopTrainingOnRewardThreshold(8.5)
    watch = EvalCallback(
        Monitor(TargetGame()), callback_on_new_best=stop, n_eval_episodes=10, eval_freq=125,
        best_model_save_path=str(folder), log_path=str(folder), verbose=0,
    )  # fmt: skip
    save = CheckpointCallback(125, str(folder), save_replay_buffer=True)
    agent = model()
    agent.learn(9_000, [watch, save])
    return agent, folder


def test_it_is_learned_through_stable_baselines_api(trained: tuple[HybridDQN, Path]) -> None:
    agent, folder = trained
    best = HybridDQN.load(folder / "best_model", device="cpu")
    mean, _ = evaluate_policy(best, Monitor(TargetGame()), 20)
    assert float(np.mean(mean)) > 8.0, "a perfect player earns 10, a random one below 1"
    assert agent.num_timesteps < 9_000, "StopTrainingOnRewardThreshold ended it"
    evaluations = np.load(folder / "evaluations.npz")
    assert evaluations["results"].mean(axis=1).max() > 8.5
    assert agent.ep_info_buffer is not None
    assert {episode["l"] for episode in agent.ep_info_buffer} <= set(range(1, LENGTH + 1))


@pytest.mark.parametrize("with_env", [True, False])
def test_saved_and_loaded_it_plays_the_same(
    trained: tuple[HybridDQN, Path], tmp_path: Path, with_env: bool
) -> None:
    agent, _ = trained
    agent.save(tmp_path / "model")
    loaded = HybridDQN.load(tmp_path / "model", env=environments(2) if with_env else None)
    torch.load(tmp_path / "model.pt", weights_only=True)
    states = np.stack([agent.observation_space.sample() for _ in range(50)])
    mine, _ = agent.predict(states, deterministic=True)
    theirs, _ = loaded.predict(states, deterministic=True)
    assert len(mine) == 50
    for one, other in zip(mine, theirs, strict=True):
        assert agent.action_space.contains(one)
        assert (one["tool"], one["place"]) == (other["tool"], other["place"])
    single, _ = loaded.predict(states[7], deterministic=True)
    assert single["tool"] == mine[7]["tool"]
    assert loaded.observation_space == agent.observation_space
    assert loaded.action_space == agent.action_space


def test_a_loaded_model_goes_on_with_its_schedules(tmp_path: Path) -> None:

    def falling(progress: float) -> float:
        return 1e-4 + 3e-3 * progress**2

    agent = model(learning_rate=falling)
    agent.learn(800)
    agent.save(tmp_path / "model")
    agent.save_replay_buffer(tmp_path / "rows.npz")
    loaded = HybridDQN.load(tmp_path / "model", env=environments())
    assert loaded.loop.curriculum.schedules == agent.loop.curriculum.schedules
    assert loaded.loop.curriculum.schedules.learning_rate(400) == pytest.approx(
        falling(0.5), rel=1e-5
    )
    loaded.load_replay_buffer(tmp_path / "rows.npz")
    assert len(loaded.loop.replay) == len(agent.loop.replay)
    before = weights(loaded)
    loaded.learn(80, reset_num_timesteps=False)
    assert loaded.num_timesteps == 880
    assert loaded.loop.curriculum.schedules == agent.loop.curriculum.schedules
    group = loaded.learner.optimizer.param_groups[0]
    assert group["lr"] == pytest.approx(falling(0.0), rel=1e-9)
    assert loaded.exploration_rate == pytest.approx(0.05)
    assert not torch.equal(before, weights(loaded))
    loaded.learn(80)
    assert loaded.loop.curriculum.schedules.learning_rate(40) == pytest.approx(
        falling(0.5), rel=1e-5
    )


def test_without_the_replay_it_fills_up_first(tmp_path: Path) -> None:
    agent = model()
    agent.learn(320)
    agent.save(tmp_path / "model")
    loaded = HybridDQN.load(tmp_path / "model", env=environments(4))
    updates = loaded.learner.updates
    loaded.learn(160, reset_num_timesteps=False)
    assert loaded.learner.updates == updates
    loaded.learn(80, reset_num_timesteps=False)
    assert loaded.learner.updates > updates


def test_one_seed_gives_one_result() -> None:
    runs = []
    for seed in (5, 5, 6):
        agent = model(seed=seed)
        agent.learn(480)
        runs.append(weights(agent))
    assert torch.equal(runs[0], runs[1])
    assert not torch.equal(runs[0], runs[2])


def test_weights_that_are_put_in_meet_no_old_moments() -> None:
    """The first update after it is that of a model that never had others."""
    used, fresh, source = model(), model(), model(seed=9)
    used.learn(400)
    source.learn(320)
    for agent in (used, fresh):
        online = source.get_parameters()["online"]
        agent.set_parameters({"online": online}, exact_match=False)
        assert not agent.learner.optimizer.state_dict()["state"]
    batch = used.loop.replay.sample(128)
    for agent in (used, fresh):
        # Followers move by the number of updates; the weights themselves do not depend on it.
        agent.learner.update(batch, 1e-3, 0.0)
    assert torch.equal(weights(used), weights(fresh))
    assert not torch.equal(weights(used), weights(source))


def test_all_parameters_carry_over_with_their_moments(tmp_path: Path) -> None:
    source, target = model(), model(seed=9)
    source.learn(320)
    kept = source.get_parameters()
    target.set_parameters(kept)
    source.save(tmp_path / "model")
    other = model(seed=10)
    other.set_parameters(tmp_path / "model")
    batch = source.loop.replay.sample(128)
    for agent in (source, target, other):
        agent.learner.update(batch, 1e-3, 0.0)
    assert torch.equal(weights(source), weights(target))
    assert torch.equal(weights(source), weights(other))
    # What get_parameters gave is a copy.
    assert not torch.equal(kept["online"]["value_head.bias"], source.learner.online.value_head.bias)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"optimizer": None}, "are needed"),
        ({"policy": {}}, "are needed"),
        ({"online": {}}, "do not fit"),
        ({"optimizer": {"state": {}, "param_groups": []}}, "optimizer's state"),
    ],
)
def test_parameters_that_do_not_fit_change_nothing(changes: dict[str, Any], words: str) -> None:
    agent = model()
    before = agent.get_parameters()
    wrong = {name: value for name, value in {**before, **changes}.items() if value is not None}
    with pytest.raises(UserError, match=words):
        agent.set_parameters(wrong)
    after = agent.get_parameters()
    for name in ("online", "target", "average"):
        for key, tensor in before[name].items():
            assert torch.equal(tensor, after[name][key])


def test_arguments_are_settings() -> None:
    agent = model(
        learning_rate=1e-3, buffer_size=5_000, learning_starts=50, batch_size=32, tau=0.5,
        gamma=0.9, train_freq=(4, "step"), gradient_steps=-1, n_steps=3, target_update_interval=7,
        exploration_initial_eps=0.8, exploration_final_eps=0.1, max_grad_norm=2.5, seed=11,
        policy_kwargs={"net_arch": [32], "dueling": False},
    )  # fmt: skip
    learner, replay, exploration = (
        agent.config.learner,
        agent.config.replay,
        agent.config.exploration,
    )
    assert (learner.learning_rate, learner.learning_rate_schedule) == (1e-3, "constant")
    assert (replay.capacity, replay.learning_starts) == (5_000, 50)
    assert (learner.batch_size, learner.tau, learner.gamma) == (32, 0.5, 0.9)
    assert (learner.train_freq, learner.gradient_steps, learner.n_steps) == (4, 32, 3)
    assert (learner.target_update_interval, learner.max_grad_norm) == (7, 2.5)
    assert (exploration.epsilon_start, exploration.epsilon_max) == (0.8, 0.1)
    assert exploration.epsilon_min == 0.1
    assert agent.config.network.hidden == (32,)
    assert not agent.config.network.dueling
    assert (agent.config.run.seed, agent.config.run.num_envs) == (11, 8)
    assert (agent.batch_size, agent.gamma, agent.buffer_size, agent.seed) == (32, 0.9, 5_000, 11)
    agent.learn(80)
    assert agent.config.run.steps == 80
    assert agent.config.exploration.epsilon_steps == 40


def test_a_configuration_says_what_arguments_do_not() -> None:
    config = load_config(None, ["learner.loss=c51", "learner.gamma=0.7", "exploration.hold_max=9"])
    agent = model(config=config, gamma=0.8, exploration_fraction=None, learning_rate=None)
    assert (agent.config.learner.loss, agent.config.learner.gamma) == ("c51", 0.8)
    assert agent.config.exploration.hold_max == 9
    agent.learn(80)
    assert agent.config.exploration.epsilon_steps == Config().exploration.epsilon_steps
    tree = model(config={"learner": {"loss": "iqn"}})
    assert tree.config.learner.loss == "iqn"
    named = model(config="smoke")
    assert named.config.learner.n_steps == QUICK["n_steps"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"gamma": 1.5}, r"^gamma=1.5 is out of range"),
        ({"buffer_size": 10}, "^buffer_size=10 is too small"),
        ({"train_freq": (1, "episode")}, "not episodes"),
        ({"policy_kwargs": {"hiden": [3]}}, "did you mean 'hidden'"),
        ({"exploration_fraction": 5_000}, "from 0 to 1"),
        ({"config": {"learner": {"los": "c51"}}}, "did you mean 'learner.loss'"),
        ({"learning_rate": -1.0}, "out of range"),
        ({"config": float("-inf")}, "^config=-inf must be a map of settings"),
        ({"config": [1]}, r"^config=\[1\] must be"),
        ({"config": {"learner": 5}}, "learner must hold settings"),
        ({"config": Config(learner=5)}, "learner must hold settings"),  # type: ignore[arg-type]
        ({"config": {"run": {"seed": 10**5000}}}, "about 5,001 digits"),
        ({"teacher": "auto"}, "^teacher='auto' must be an object with act"),
        ({"teacher_score": "high"}, "^teacher_score='high'"),
        ({"on_metrics": 5}, "^on_metrics=5 must be a function"),
        ({"device": "gpu0"}, "gpu0"),
        ({"seed": 10**20}, "^seed=100000000000000000000 is out of range"),
        ({"seed": True}, "^seed=True must be a whole number"),
        ({"stats_window_size": -1}, "^stats_window_size=-1"),
        ({"exploration_fraction": "0.1"}, "^exploration_fraction='0.1'"),
        ({"policy_kwargs": [64]}, r"^policy_kwargs=\[64\] must be a map"),
        ({"train_freq": "4x", "gradient_steps": -1}, "4x"),
        ({"buffer_size": 10**5000}, "^buffer_size=<a whole number of about 5,001 digits>"),
        ({"env": 5}, "^env=5 must be an environment"),
        ({"env": "nope"}, r"^env='nope' cannot be made .*nope"),
        ({"env": "nomod:Nope-v0"}, "^env='nomod:Nope-v0' cannot be made"),
        ({"tensorboard_log": 5}, "^tensorboard_log=5 must be the path of a folder"),
        ({"tensorboard_log": ""}, "^tensorboard_log=''"),
        ({"verbose": "a"}, "^verbose='a': a whole number from 0 to 2"),
        ({"verbose": 3}, "^verbose=3"),
        ({"exploration_fraction": True}, "^exploration_fraction=True"),
        ({"learning_rate": lambda: 1}, "^learning_rate is a function that fails .TypeError"),
        ({"learning_rate": lambda _: "x"}, "^learning_rate is a function that fails .ValueError"),
        ({"learning_rate": lambda left: left - 0.5}, "^learning_rate is a function that gives -0"),
        ({"learning_rate": lambda _: float("nan")}, "^learning_rate is a function that gives nan"),
        ({"learning_rate": "lin_3e-4"}, "^learning_rate='lin_3e-4' is text"),
        ({"gamma": "0.9"}, "^gamma='0.9' is text"),
        ({"train_freq": ("4", "step")}, "^train_freq='4' is text"),
        ({"gradient_steps": 10**10}, "^gradient_steps=10000000000 is out of range.*100000"),
        ({"policy_kwargs": {"net_arch": [10**12]}}, r"most is taken by net_arch=\[10{12}\]"),
        (
            {"policy_kwargs": {"net_arch": [10**5] * 99}},
            r"by net_arch=\[[10, ]{,116}\.\.\.: set it lower",
        ),
        ({"policy_kwargs": {"net_arch": "64"}}, r"^net_arch='64': give the widths"),
        ({"policy_kwargs": {"net_arch": [64, "64"]}}, r"^net_arch=\[64, '64'\]: give the widths"),
        ({"policy_kwargs": {"net_arch": {"qf": [64]}}}, "^net_arch={'qf': .64.}: give the widths"),
        ({"policy_kwargs": {"hidden": True}}, "^hidden=True: give the widths"),
        ({"policy_kwargs": {"net_arch": [0]}}, "^net_arch=0 is out of range"),
        ({"policy_kwargs": {"net_arch": []}}, r"^net_arch=\[\] is empty"),
        ({"policy_kwargs": {"net_arch": [8], "hidden": [9]}}, "two names of one setting"),
        ({"policy_kwargs": {"spinner_knots": "9"}}, "^spinner_knots='9' is text"),
        ({"policy_kwargs": {"spinner_knots": 1}}, "^spinner_knots=1 is out of range"),
        ({"config": {"network": {"encoder": "lanes"}}}, "network.encoder=lanes.*'LaneQPolicy'"),
        ({"config": {"run": {"num_envs": 64}}}, "^config has run.num_envs=64, and env is 8"),
    ],
)
def test_wrong_arguments_are_named(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words) as caught:
        model(**changes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("policy", "env", "words"),
    [
        ("LaneQPolicy", TargetGame(), "use MlpQPolicy"),
        (LaneQPolicy, TargetGame(), "use MlpQPolicy"),
        ("MlpPolicy", TargetGame(), "did you mean 'MlpQPolicy'"),
        (TargetGame(), TargetGame(), "environment comes second"),
        ("MlpQPolicy", None, "needs an environment"),
        ("MlpQPolicy", "CartPole-v1", "discrete and a continuous action"),
    ],
)
def test_what_does_not_go_together_is_said(policy: Any, env: Any, words: str) -> None:
    with pytest.raises(UserError, match=words) as caught:
        HybridDQN(policy, env)
    assert "\n" not in str(caught.value)


def test_what_says_the_same_twice_is_fine(tmp_path: Path) -> None:
    agent = model(
        config={"network": {"encoder": "mlp"}, "run": {"num_envs": 8}}, tensorboard_log=tmp_path,
        verbose=False, policy_kwargs={"net_arch": None}, learning_rate=lambda left: 1.0 - left,
    )  # fmt: skip
    assert agent.config.network.hidden == Config().network.hidden
    assert agent.config.learner.learning_rate == 1.0  # It rises to that.
    assert model(policy_kwargs={"net_arch": 16}).config.network.hidden == (16,)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"total_timesteps": True}, r"^learn\(total_timesteps=True\): give a number of decisions"),
        ({"total_timesteps": 10**30}, "^total_timesteps=10{30} is out of range"),
        ({"total_timesteps": 8, "callback": 5}, r"^learn\(callback=5\): give a BaseCallback"),
        ({"total_timesteps": 8, "callback": [5]}, r"^learn\(callback=\[5\]\)"),
    ],
)
def test_wrong_arguments_of_learn_are_named(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        model(policy_kwargs={"net_arch": [8]}).learn(**arguments)


def test_environments_that_are_none_cannot_be_put_in() -> None:
    agent = model(policy_kwargs={"net_arch": [8]})
    for env in (5, "nope"):
        with pytest.raises(UserError, match=f"^env={env!r}"):
            agent.set_env(env)


def test_a_policy_may_be_a_class_and_the_environment_single() -> None:
    agent = HybridDQN(MlpQPolicy, TargetGame("tuple"), **{**QUICK, "learning_starts": 20})
    agent.learn(60)
    assert agent.learner.updates == 40
    action, _ = agent.predict(TargetGame().reset(seed=0)[0], deterministic=True)
    assert isinstance(action, tuple)
    assert agent.action_space.contains(action)


def test_environments_can_be_exchanged() -> None:
    agent = model()
    agent.learn(240)
    agent.set_env(environments())
    agent.learn(80, reset_num_timesteps=False)
    assert agent.num_timesteps == 320
    # The last decisions in the old environments end there, with a bootstrap.
    assert (agent.loop.replay.flags[29] & 3 > 0).all()
    with pytest.raises(UserError, match="8 environments, not 3"):
        agent.set_env(environments(3))
    with pytest.raises(UserError, match="was made for"):
        agent.set_env(environments(form="tuple"))


def test_a_model_loaded_alone_learns_once_it_has_environments(tmp_path: Path) -> None:
    agent = model()
    agent.learn(240)
    agent.save(tmp_path / "model")
    loaded = HybridDQN.load(tmp_path / "model")
    with pytest.raises(UserError, match="set_env"):
        loaded.learn(10)
    loaded.set_env(environments(2))
    loaded.learn(240, reset_num_timesteps=False)
    assert loaded.num_timesteps == 480
    assert not torch.equal(weights(agent), weights(loaded))
    with pytest.raises(UserError, match="other observations or actions"):
        HybridDQN.load(tmp_path / "model", env=TwoTools())
    with pytest.raises(UserError, match="no checkpoint"):
        HybridDQN.load(tmp_path / "nothing")
    with pytest.raises(UserError, match="does not fit"):
        HybridDQN.load(tmp_path / "model", policy_kwargs={"net_arch": [7]})


class TwoTools(TargetGame):
    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Dict(
            {"tool": spaces.Discrete(2), "place": spaces.Box(-2.0, 3.0, (1,))}
        )


def test_logger_board_bar_and_callbacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = DummyVecEnv([TargetGame] * 8)
    agent = model(
        VecMonitor(plain), tensorboard_log=str(tmp_path / "board"), verbose=1,
        config={"run": {"log_interval": 80}},
    )  # fmt: skip
    agent.learn(4_000, StopTrainingOnMaxEpisodes(10), progress_bar=True, tb_log_name="mine")
    assert 80 <= agent._episode_num < 88
    shown = capsys.readouterr().out
    for word in ("ep_rew_mean", "ep_len_mean", "exploration_rate", "q_mean"):
        assert word in shown
    assert list((tmp_path / "board" / "mine_1").glob("events*"))
    agent.set_logger(configure(str(tmp_path / "csv"), ["csv"]))
    agent.learn(240)
    header = (tmp_path / "csv" / "progress.csv").read_text().splitlines()[0]
    assert "train/loss" in header
    assert "rollout/ep_rew_mean" in header


def test_at_random_only_where_asked() -> None:
    agent = model()
    state = TargetGame().reset(seed=1)[0]
    greedy = agent.predict(state, deterministic=True)[0]
    assert all(agent.predict(state, deterministic=True)[0] == greedy for _ in range(5))
    assert agent.exploration_rate == 1.0
    drawn = [agent.predict(np.stack([state] * 2))[0] for _ in range(20)]
    assert len({int(actions[0]["tool"]) for actions in drawn}) > 1
    assert all(agent.action_space.contains(action) for actions in drawn for action in actions)


def test_every_argument_for_a_setting_exists() -> None:
    known = {key for key, _, _ in settings()}
    assert {f"{section}.{key}" for section, key in KEYS.values()} <= known


@pytest.mark.parametrize("name", ["model", "model.zip"])
def test_a_policy_is_saved_and_loaded(
    trained: tuple[HybridDQN, Path], tmp_path: Path, name: str
) -> None:
    agent, _ = trained
    agent.policy.save(tmp_path / name)
    file = tmp_path / (name if "." in name else f"{name}.pt")
    torch.load(file, weights_only=True)
    states = np.stack([agent.observation_space.sample() for _ in range(50)])
    mine, _ = agent.predict(states, deterministic=True)
    loaded = agent.policy.load(str(tmp_path / name), device="cpu")
    assert type(loaded) is MlpQPolicy
    assert (loaded.step, loaded.training) == (agent.policy.step, False)
    assert agent.num_timesteps - 8 <= loaded.step <= agent.num_timesteps
    assert (loaded.observation_space, loaded.action_space) == (
        agent.observation_space, agent.action_space,
    )  # fmt: skip
    player = HybridDQN.load(tmp_path / name, device="cpu")
    for other in (loaded, player):
        theirs, _ = other.predict(states, deterministic=True)
        assert repr(mine) == repr(theirs)
    mean, _ = evaluate_policy(loaded, Monitor(TargetGame()), 10)
    assert float(np.mean(mean)) > 8.0
    # Whole checkpoints hold a policy too, and an exported player is still of its own spaces.
    agent.save(tmp_path / "whole")
    export_policy(tmp_path / "whole.pt", tmp_path / "player.pt")
    for file in (tmp_path / "whole", tmp_path / "player.pt"):
        again, _ = MlpQPolicy.load(file, device="cpu").predict(states, deterministic=True)
        assert repr(mine) == repr(again)


def test_a_policy_that_is_not_one_is_refused(tmp_path: Path) -> None:
    agent = model()
    agent.policy.save(tmp_path / "model")
    with pytest.raises(UserError, match=r"holds a MlpQPolicy: load it with MlpQPolicy\.load"):
        LaneQPolicy.load(tmp_path / "model")
    with pytest.raises(UserError, match="no checkpoint"):
        MlpQPolicy.load(tmp_path / "nothing")
    (tmp_path / "text.pt").write_text("text")
    with pytest.raises(UserError, match="not a checkpoint"):
        MlpQPolicy.load(tmp_path / "text.pt")
    before = (tmp_path / "model.pt").read_bytes()
    with pytest.raises(UserError, match="cannot write"):
        agent.policy.save(tmp_path / "no" / "folder" / "model")
    assert (tmp_path / "model.pt").read_bytes() == before


ROW = re.compile(r"^\| `(\w+)` \| ([^|]+?) \| ([^|]+?) \|$", re.MULTILINE)


def test_every_difference_from_stable_baselines_dqn_is_in_the_table() -> None:
    page = (ROOT / "docs" / "learner.md").read_text()
    section = page[page.index("### Differences from SB3's DQN") :]
    section = section[: section.index("\n#", 1)]
    table = {name: (theirs, ours) for name, theirs, ours in ROW.findall(section)}
    of_dqn = dict(inspect.signature(DQN.__init__).parameters)
    of_learn = inspect.signature(DQN.learn).parameters
    own = inspect.signature(HybridDQN.__init__).parameters
    agent = HybridDQN("MlpQPolicy", TargetGame(), policy_kwargs={"net_arch": [4]})
    in_effect = {name: settings_of(agent.config, *KEYS[name]) for name in KEYS} | {
        "learning_rate": agent.config.learner.learning_rate,
        "exploration_fraction": agent.exploration_fraction,
        "exploration_final_eps": agent.config.exploration.epsilon_max,
    }
    for name, parameter in of_dqn.items():
        if name in ("self", "env", "_init_setup_model"):
            continue
        there = parameter.default
        here = in_effect.get(name, own[name].default if name in own else "missing")
        if name == "device":
            here = agent.config.run.device
        # The same words with another meaning are differences too.
        other_meaning = name in ("policy", "policy_kwargs")
        assert (there != here or other_meaning) == (name in table), name
        if name in table and isinstance(there, int | float):
            assert number(table[name][0]) == there, name
            assert here == "missing" or number(table[name][1]) == here, name
    extra = set(table) - set(of_dqn)
    assert extra == {"log_interval"}
    assert number(table["log_interval"][0]) == of_learn["log_interval"].default
    assert number(table["log_interval"][1]) == agent.config.run.log_interval


def settings_of(config: Config, section: str, key: str) -> Any:
    return getattr(getattr(config, section), key)


def number(cell: str) -> float:
    """The number that a cell begins with."""
    found = re.match(r"False|[\d.,]*\d(e-\d+)?", cell)
    assert found is not None, cell
    return 0.0 if found[0] == "False" else float(found[0].replace(",", ""))

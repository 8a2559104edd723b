"""Every space that ``HybridDQN`` says it takes: played evenly and within bounds, seen as it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from fake_games import SMALL, FakeGames
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import DummyVecEnv

from tempest_agent import HybridDQN
from tempest_agent.agent.curriculum.expert_share import ExpertShare
from tempest_agent.agent.dqn.games_vec_env import GamesVecEnv
from tempest_agent.agent.games.action_forms import FINE, HybridForm
from tempest_agent.agent.games.env_games import EnvGames
from tempest_agent.agent.games.spaces import space_from, space_to
from tempest_agent.agent.learner.imitation import gate, resemblance
from tempest_agent.config import TeacherConfig, load_config
from tempest_agent.errors import UserError

Box = spaces.Box
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
REALS = ("float16", "float32", "float64")
PLACES = np.arange(-FINE, FINE + 1) / FINE
"""Every place that the replay can hold."""


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def box(low: Any, high: Any, dtype: str, shape: tuple[int, ...] = (1,)) -> spaces.Box:
    """Also with bounds that ``Box`` refuses as numbers, which it takes as arrays."""
    ends = (np.full(shape, end, dtype) for end in (low, high))
    return Box(*ends, dtype=np.dtype(dtype))  # type: ignore[arg-type]


def form_with(axis: spaces.Space[Any]) -> HybridForm:
    return HybridForm(spaces.Dict({"which": spaces.Discrete(2), "where": axis}))


def played(axis: spaces.Box, places: NDArray[np.float64] = PLACES) -> NDArray[Any]:
    """What is done for each of ``places``."""
    where: NDArray[Any] = form_with(axis).batch(np.zeros(len(places), np.int64), places)["where"]
    assert where.dtype == axis.dtype
    assert where.shape == (len(places), *axis.shape)
    flat = where.reshape(-1)
    assert (flat >= axis.low.reshape(-1)[0]).all()
    assert (flat <= axis.high.reshape(-1)[0]).all()
    return flat


@st.composite
def integer_boxes(draw: st.DrawFn) -> spaces.Box:
    dtype = draw(st.sampled_from(INTEGERS))
    least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    near = st.integers(min_value=max(least, -300), max_value=min(most, 300))
    anywhere = st.integers(least, most)
    ends = sorted(draw(st.tuples(near, near) | st.tuples(anywhere, anywhere)))
    return box(*ends, dtype, draw(st.sampled_from([(), (1,), (1, 1)])))


@st.composite
def real_boxes(draw: st.DrawFn) -> spaces.Box:
    dtype = draw(st.sampled_from(REALS))
    largest = float(np.finfo(dtype).max)
    width = {"float16": 16, "float32": 32, "float64": 64}[dtype]
    number = st.floats(-largest, largest, width=width)  # type: ignore[arg-type]
    ends = sorted(draw(st.tuples(number, number)))
    return box(*ends, dtype, draw(st.sampled_from([(), (1,), (1, 1)])))


@settings(max_examples=60, deadline=None)
@given(integer_boxes())
def test_every_whole_number_is_played_as_often_as_the_others(axis: spaces.Box) -> None:
    done = played(axis).astype(object)
    low, high = int(axis.low.item()), int(axis.high.item())
    assert (done[0], done[-1]) == (low, high)
    assert (np.diff(done) >= 0).all()
    if high - low < len(PLACES):
        counts = np.bincount((done - low).astype(np.int64), minlength=high - low + 1)
        assert counts.max() - counts.min() <= 1
    else:
        # More numbers than places: evenly spread.
        steps = np.diff(done)
        assert max(steps) - min(steps) <= 1


@settings(max_examples=60, deadline=None)
@given(real_boxes())
def test_real_numbers_reach_both_ends_and_never_more(axis: spaces.Box) -> None:
    done = played(axis, PLACES[:: FINE // 50])
    assert np.isfinite(done).all()
    assert (np.diff(done.astype(np.float64)) >= 0).all()
    assert (done[0], played(axis, np.array([1.0]))[0]) == (axis.low.item(), axis.high.item())
    low, high = float(axis.low.item()), float(axis.high.item())
    numbers: Any = np.finfo(axis.dtype)  # type: ignore[arg-type]
    error = float(numbers.eps) * max(abs(low), abs(high)) + float(numbers.tiny)
    assert abs(float(played(axis, np.zeros(1))[0]) - (0.5 * low + 0.5 * high)) <= error


def test_an_integer_box_by_hand() -> None:
    axis = Box(0, 10, (1,), np.int64)
    done = played(axis)
    assert {int(count) for count in np.bincount(done)} == {5957, 5958}, "65,535 places for 11"
    # The numbers' own places on the axis come back as the numbers.
    np.testing.assert_array_equal(played(axis, np.linspace(-1.0, 1.0, 11)), np.arange(11))
    widest = played(Box(-1.7e308, 1.7e308, (1,), np.float64), np.array([-1.0, -0.5, 0.5, 1.0]))
    np.testing.assert_allclose(widest, [-1.7e308, -0.85e308, 0.85e308, 1.7e308], rtol=1e-15)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(INTEGERS),
    st.integers(2, 256),
    st.data(),
    st.sampled_from(["dict", "reversed", "tuple", "turned"]),
)
def test_each_action_is_one_of_the_space(
    dtype: str, count: int, data: st.DataObject, order: str
) -> None:
    most, least = int(np.iinfo(dtype).max), int(np.iinfo(dtype).min)
    count = min(count, most)
    # Gymnasium takes starts of 64 bits with a sign.
    low, high = max(least, -(2**63)), min(most, 2**63 - 1) - count
    start = data.draw(st.integers(low, high))
    which = spaces.Discrete(count, start=start, dtype=np.dtype(dtype).type)
    where = Box(-2.0, 1.0, data.draw(st.sampled_from([(), (1,)])))
    space: spaces.Space[Any] = {
        "dict": spaces.Dict({"a": which, "b": where}),
        "reversed": spaces.Dict({"a": where, "b": which}),
        "tuple": spaces.Tuple((which, where)),
        "turned": spaces.Tuple((where, which)),
    }[order]
    form = HybridForm(space)
    pairs = np.array([0, count - 1])
    actions = form.each(pairs, np.array([-1.0, 1.0]))
    assert all(space.contains(action) for action in actions)
    key: Any = {"dict": "a", "reversed": "b", "tuple": 0, "turned": 1}[order]
    ends = [int(action[key]) for action in actions]
    assert ends == [start, start + count - 1]
    assert space_from(space_to(space)) == space


@pytest.mark.parametrize(
    ("space", "words"),
    [
        (Box(-np.inf, np.inf, (1,), np.int32), "finite bounds"),
        (Box(0, np.inf, (1,)), "finite bounds"),
        (Box(-np.inf, 1.0, ()), "finite bounds"),
        (Box(0.0, 1.0, (2,)), "must be one number"),
        (Box(0.0, 1.0, (0,)), "must be one number"),
        (spaces.MultiBinary(1), "exactly one"),
        (spaces.MultiDiscrete([3]), "exactly one"),
        (spaces.Dict({"x": Box(0.0, 1.0)}), "exactly one"),
        (spaces.Text(3), "exactly one"),
    ],
)
def test_axes_that_are_none_are_refused_in_one_line(space: spaces.Space[Any], words: str) -> None:
    with pytest.raises(UserError, match=words) as caught:
        form_with(space)
    assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match="nothing to choose"):
        HybridForm(spaces.Tuple((spaces.Discrete(1), Box(0.0, 1.0))))


class Noise(gym.Env[Any, Any]):
    """Random observations; counts nothing but the steps."""

    def __init__(self, observation: spaces.Space[Any], action: spaces.Space[Any]) -> None:
        self.observation_space, self.action_space, self.steps = observation, action, 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action), action
        self.steps += 1
        return self.observation_space.sample(), 1.0, False, self.steps == 5, {}


SHORT: dict[str, Any] = {
    "buffer_size": 200,
    "learning_starts": 8,
    "batch_size": 4,
    "policy_kwargs": {"net_arch": [8]},
    "device": "cpu",
    "seed": 1,
}
PLAIN = spaces.Tuple((spaces.Discrete(3, start=1), Box(-1.0, 1.0, (1,))))
WIDE = spaces.Dict({"a": Box(-1.7e308, 1.7e308, (), np.float64), "b": spaces.Discrete(2)})
WHOLE = spaces.Dict({"b": spaces.Discrete(5, start=-9), "c": Box(0, 10, (1,), np.int64)})


@pytest.mark.parametrize(
    ("observation", "action"),
    [
        (Box(0.0, 1.0, (), np.float32), WHOLE),
        (Box(-1.0, 1.0, (), np.float16), PLAIN),
        (Box(-1.0, 1.0, (3,), np.float16), WIDE),
        (Box(-np.inf, np.inf, (2, 2), np.float64), WIDE),
        (Box(0, 255, (), np.uint8), PLAIN),
        (Box(0, 255, (40, 36, 3), np.uint8), WHOLE),
        (Box(-5, 5, (3,), np.int8), PLAIN),
        (Box(0, 1, (2,), np.bool_), PLAIN),
        (box(0, 2**32 - 1, "uint32", (2,)), PLAIN),
    ],
    ids=str,
)
def test_it_trains_plays_and_comes_back(
    observation: spaces.Box, action: spaces.Space[Any], tmp_path: Path
) -> None:
    agent = HybridDQN("MlpQPolicy", Noise(observation, action), **SHORT)
    agent.learn(16)
    assert agent.learner.updates > 3
    seen = observation.sample()
    for deterministic in (True, False):
        # Not deterministic, at an exploration of 1: drawn from all of the space.
        agent._total_timesteps = agent.num_timesteps = 0
        one, _ = agent.predict(seen, deterministic=deterministic)
        many, _ = agent.predict(np.stack([seen] * 3), deterministic=deterministic)
        assert all(action.contains(each) for each in (one, *many))
        assert len(many) == 3
    agent.save(tmp_path / "agent")
    loaded = HybridDQN.load(tmp_path / "agent")
    assert (loaded.observation_space, loaded.action_space) == (agent.observation_space, action)
    played, again = (a.predict(seen, deterministic=True)[0] for a in (agent, loaded))
    assert repr(played) == repr(again)


def test_half_precision_observations_are_stored_and_drawn_as_they_are() -> None:
    env = Noise(Box(-1.0, 1.0, (3,), np.float16), PLAIN)
    agent = HybridDQN("MlpQPolicy", DummyVecEnv([lambda: env]), **SHORT)
    agent.learn(30)
    batch = agent.loop.replay.sample(16)
    codes: Any = batch.codes
    assert codes.dtype == agent.loop.replay.codes.dtype == np.float16
    stored = agent.loop.replay.codes.reshape(-1, 3)
    np.testing.assert_array_equal(codes, stored[batch.rows])


def test_an_observation_without_numbers_is_refused() -> None:
    with pytest.raises(UserError, match="no numbers"):
        EnvGames(DummyVecEnv([lambda: Noise(Box(0.0, 1.0, (0,)), PLAIN)]))


@pytest.mark.parametrize("steps", [0, -5, 0.0, np.int64(0)])
def test_nothing_to_learn_is_no_error(steps: Any) -> None:
    """As in Stable-Baselines3: the model comes back as it was, callbacks hear of both ends."""
    agent = HybridDQN("MlpQPolicy", Noise(Box(0.0, 1.0), PLAIN), **SHORT)
    planned = agent.config
    assert agent.learn(steps) is agent
    assert (agent.num_timesteps, agent.loop.replay.filled, agent.config) == (0, 0, planned)
    agent.learn(np.int64(9)).learn(steps, reset_num_timesteps=False)
    assert (agent.num_timesteps, agent.config.run.steps) == (9, 9)
    assert agent.learn(11.5).num_timesteps == agent.config.run.steps == 12  # type: ignore[arg-type]


@pytest.mark.parametrize("steps", [float("nan"), float("inf"), "100", None])
def test_no_number_of_steps_is_said_in_one_line(steps: Any) -> None:
    agent = HybridDQN("MlpQPolicy", Noise(Box(0.0, 1.0), PLAIN), **SHORT)
    with pytest.raises(UserError, match=r"^learn\(total_timesteps=.*\): give a number"):
        agent.learn(steps)


class SixWays(FakeGames):
    """The same problem with six values of the discrete action, and a continuous one in 65,535."""

    def __init__(self, num_games: int) -> None:
        super().__init__(num_games, 0)
        self.layout = type(self.layout)(
            self.layout.num_features, num_pairs=6, counts=FINE, fire_and_zap=False
        )

    def zap_legal(self) -> NDArray[np.bool_]:
        return np.ones(self.num_games, np.bool_)

    def step(self, spin: NDArray[Any], buttons: NDArray[np.uint8]) -> Any:
        assert spin.dtype == np.int16
        assert buttons.max() < 6
        step = super().step(np.round(spin / FINE * 31.0), buttons)
        return step._replace(spin=spin, buttons=buttons, final_zap_legal=self.zap_legal())


class SixthWay:
    def act(self, images: NDArray[np.int8]) -> tuple[NDArray[np.int16], NDArray[np.uint8]]:
        return np.full(len(images), FINE, np.int16), np.full(len(images), 5, np.uint8)

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        pass


@pytest.mark.parametrize("loss", ["cross_entropy", "margin"])
def test_labels_may_be_of_any_number_of_values(loss: str) -> None:
    config = load_config(None, [*SMALL, f"learner.imitation={loss}", "learner.batch_size=16"])
    agent = HybridDQN(
        "MlpQPolicy",
        GamesVecEnv(SixWays(16)),
        config=config,
        teacher=SixthWay(),
        teacher_score=1e6,  # type: ignore[arg-type]
    )
    agent.learn(960)
    assert agent.learner.updates > 20
    alike = resemblance(torch.tensor([5]), torch.tensor([1.0]), 3, width=0.5, pairs=6)[0]
    assert alike.shape == (6, 3)
    assert (alike[5, 2], alike[:5].abs().sum()) == (1.0, 0.0)
    # What the teacher always does is what the student has learned.
    spin, buttons = agent.learner.act(agent.loop.games.observe(), agent.loop.games.zap_legal())
    assert spin.dtype == np.int16
    assert (buttons == 5).all()


@settings(max_examples=200, deadline=None)
@given(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9), st.floats(0.0, 1.0))
def test_the_gate_is_a_weight_whatever_the_scores(
    student: float, teacher: float, floor: float
) -> None:
    weight = gate(student, teacher, floor)
    assert floor <= weight <= 1.0
    if student >= teacher > 0.0 or (student >= teacher and teacher < 0.0):
        assert weight == floor
    # Who plays better is taught less.
    assert gate(student + abs(student), teacher, floor) <= weight


def test_the_gate_of_negative_scores_by_hand() -> None:
    assert [gate(s, -10.0) for s in (-30.0, -20.0, -15.0, -10.0, -5.0, 3.0)] == [1, 1, 0.5, 0, 0, 0]
    assert [gate(s, 200.0) for s in (-50.0, 0.0, 50.0, 200.0)] == [1, 1, 0.75, 0]
    assert [gate(s, 0.5) for s in (0.0, 0.25, 0.5)] == [1, 0.5, 0]


def test_the_teachers_share_follows_negative_scores() -> None:
    teacher = TeacherConfig(
        expert_ratio_schedule="performance", expert_ratio_start=0.8, expert_ratio_floor=0.0,
        expert_ratio_goal=0.5, expert_ratio_drop=0.25,
    )  # fmt: skip
    share = ExpertShare(teacher)
    # Half as good as -10 is -20; as far below it is -40.
    shares = []
    for score in (-50.0, -40.0, -30.0, -24.0):
        share.observe(1_000, score, 100, -10.0)
        assert not share.raised
        shares.append(share(1.0))
    assert shares == pytest.approx([0.8, 0.8, 0.4, 0.16])
    share.observe(2_000, -31.0, 100, -10.0)
    assert share.raised, "more than a quarter worse than -24"

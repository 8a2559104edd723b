"""States that are labelled beside the play: which, when, and that their labels reach their rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tempest_agent.agent.collect.collector import Collector
from tempest_agent.agent.collect.drivers import Drivers
from tempest_agent.agent.collect.local_source import LocalSource
from tempest_agent.agent.collect.plan_labeller import PlanLabeller
from tempest_agent.agent.games.interface import Step
from tempest_agent.agent.games.tempest_games import TEMPEST_LAYOUT, TempestGames
from tempest_agent.agent.replay.buffer import ReplayBuffer
from tempest_agent.agent.replay.plans import PLANS
from tempest_agent.agent.replay.rows import HAS_PLANS
from tempest_agent.config import load_config
from tempest_agent.envs.machine.memory import as_bytes

GAMES, LENGTH, DEATH_TICKS = 6, 100, 5
NUMBERS = np.random.default_rng(0).integers(0, 251, (2048, 2))


def name_of(images: NDArray[np.void], inputs: NDArray[np.int16]) -> NDArray[np.int64]:
    """Two bytes that depend on the whole image and the inputs under way, ``(N, 2)``."""
    extra = inputs.reshape(len(images), -1).sum(axis=1, keepdims=True)
    named: NDArray[np.int64] = (as_bytes(images).astype(np.int64) @ NUMBERS + extra) % 251
    return named


class Namer:
    """In place of a planner: one plan, whose spin and buttons name the image."""

    def __init__(self) -> None:
        self.asked = 0

    def evaluate_plans(
        self, images: NDArray[np.void], inputs: NDArray[np.int16]
    ) -> tuple[NDArray[np.int8], NDArray[np.uint8], NDArray[np.float64]]:
        self.asked += len(images)
        names = name_of(images, inputs)
        return (
            (names[:, :1] % 63 - 31).astype(np.int8),
            names[:, 1:].astype(np.uint8),
            np.zeros((len(images), 1)),
        )


class Play:
    """Random play in which the states' names are kept beside the replay."""

    def __init__(self, share: float, *game: str) -> None:
        config = load_config(
            None,
            [f"run.num_envs={GAMES}", "game.max_ticks=120", "game.start_levels=[33]", *game],
        )
        self.games = TempestGames(GAMES, config.game, 3)
        self.games.reset()
        self.random = np.random.default_rng(1)
        self.namer = Namer()
        self.labeller = labeller = PlanLabeller(
            self.namer, GAMES, share, DEATH_TICKS, 5  # type: ignore[arg-type]
        )  # fmt: skip
        drivers = Drivers(GAMES, config.teacher, config.exploration, 2)
        self.replay = ReplayBuffer(
            GAMES * LENGTH, GAMES, TEMPEST_LAYOUT.num_features, n_steps=2, gamma=0.9,
            plans=True,
        )  # fmt: skip
        source = LocalSource(self.games, self.act, None, drivers, labeller)
        self.collector = Collector(source, self.replay, death_ticks=DEATH_TICKS)
        self.names: list[NDArray[np.int64]] = []
        self.steps: list[Step] = []

    def act(self, codes: Any, legal: Any) -> tuple[NDArray[np.int8], NDArray[np.uint8]]:
        turns = self.random.integers(-31, 32, GAMES).astype(np.int8)
        return turns, np.zeros(GAMES, np.uint8)

    def go(self, steps: int) -> None:
        for _ in range(steps):
            images, inputs = self.games.images()
            self.names.append(name_of(images.copy(), inputs))
            self.steps.append(self.collector.collect(0.0, 0.0).step)

    def asked(self) -> int:
        """How many states the planner was asked for, after a step that asks for no more."""
        self.labeller.label(np.zeros(GAMES, np.bool_), np.zeros(GAMES, np.bool_))
        return self.namer.asked

    def labelled(self) -> set[tuple[int, int]]:
        """Steps and games with plans, after a check that these are their own."""
        columns, now = self.replay.plan_columns, len(self.names)
        found = set()
        for t in range(max(0, now - LENGTH), now):
            for game in range(GAMES):
                row = t % LENGTH, game
                if self.replay.flags[row] & HAS_PLANS:
                    spin, buttons = self.names[t][game]
                    assert columns["plan_spin"][row][0] == spin % 63 - 31
                    assert columns["plan_buttons"][row][0] == buttons
                    assert columns["plan_regret"][row].tolist() == [0] + [65535] * (PLANS - 1)
                    found.add((t, game))
        return found


def last_ticks(play: Play) -> set[tuple[int, int]]:
    """Steps and games within the last ticks of a life, as a plain loop finds them."""
    found = set()
    for t, step in enumerate(play.steps):
        for game in np.flatnonzero(step.lost_lives()):
            for ago in range(DEATH_TICKS):
                before = t - ago
                if before < 0:
                    break
                ended = play.steps[before].lost_lives() | play.steps[before].game_over
                if ago and ended[game]:
                    break
                found.add((before, int(game)))
    return found


@pytest.mark.parametrize("terminal", ["true", "false"])
def test_the_last_ticks_before_every_death_are_labelled_and_nothing_else(terminal: str) -> None:
    play = Play(0.0, f"game.life_loss_terminal={terminal}")
    play.go(250)
    expected = {each for each in last_ticks(play) if each[0] >= 250 - LENGTH}
    # Labels of the newest step are still under way.
    late = play.steps[-1].lost_lives()
    expected -= {each for each in expected if late[each[1]] and each[0] > 250 - DEATH_TICKS - 1}
    assert len(expected) > 2 * DEATH_TICKS
    assert play.labelled() == expected
    assert play.asked() == len(last_ticks(play))


def test_a_share_of_the_states_is_labelled_at_random_and_none_twice() -> None:
    play = Play(0.3, "game.input_delay=1")
    play.go(200)
    labelled = play.labelled()
    assert 0.2 * LENGTH * GAMES < len(labelled) < 0.5 * LENGTH * GAMES
    assert {t for t, _ in labelled} <= set(range(200 - LENGTH, 199))
    near = len(last_ticks(play))
    assert play.namer.asked == pytest.approx(0.3 * 200 * GAMES + 0.7 * near, rel=0.15)
    assert {each for each in last_ticks(play) if 200 - LENGTH <= each[0] < 190} <= labelled


def test_games_that_are_left_keep_their_labels_and_have_no_death() -> None:
    play = Play(0.5)
    play.go(20)
    before = play.labelled()
    play.collector.abandon()
    play.games.reset()
    play.go(1)
    assert play.labelled() > before
    assert {t for t, _ in play.labelled() - before} == {19}
    play.go(30)
    play.labelled()


@pytest.mark.parametrize("delay", [0, 2])
def test_labels_under_way_arrive_after_a_resume(delay: int) -> None:
    settings = f"game.input_delay={delay}", "game.lives=2"
    whole, other = Play(0.3, *settings), Play(0.3, *settings)
    whole.go(73)
    # The state of the run is taken with labels under way, and the run goes on.
    state = whole.collector.state_dict()
    state = {**state, "games": {"states": state["games"]["states"].copy()}}
    rows = {name: column.copy() for name, column in whole.replay.arrays().items()}
    counters, dice = whole.replay.state_dict(), whole.random.bit_generator.state
    other.names, other.steps = whole.names.copy(), whole.steps.copy()
    other.collector.load_state_dict(state)
    other.replay.load(rows, counters)
    other.random.bit_generator.state = dice
    whole.go(60)
    other.go(60)
    assert whole.labelled() == other.labelled()
    for name, column in whole.replay.arrays().items():
        np.testing.assert_array_equal(column, other.replay.arrays()[name], name)

"""Labels that value all plans, for some of the visited states, computed beside everything else.

The planner takes longer for a label than the student for a decision.  So the states are handed to a
thread, whose compiled code runs while this one plays and learns, and the labels arrive with the
next decision, for rows that are stored by then.  That is a fixed time, so runs stay reproducible.

A share of the states is chosen at random, whatever they are.  The last ticks before a death are
labelled as well: what was wrong in them is known only then, so their images are kept until then.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tempest_agent.agent.games.interface import Games
from tempest_agent.agent.games.tempest_games import TempestGames
from tempest_agent.agent.replay.plans import LateLabels, merge_plans
from tempest_agent.config import Config
from tempest_agent.envs.machine.inputs import MAX_INPUT_DELAY
from tempest_agent.envs.machine.memory import RAM_DTYPE, as_bytes, from_bytes
from tempest_agent.errors import UserError
from tempest_agent.experts import Planner

Merged = tuple[NDArray[np.int8], NDArray[np.uint8], NDArray[np.uint16]]


LABEL_STREAM = 1
"""Key of the stream that chooses states, beside that of the drivers."""


class _Asked(NamedTuple):
    """States whose labels are under way."""

    step: NDArray[np.int64]
    """``(M,)``."""
    game: NDArray[np.int64]
    labels: Future[Merged]


class PlanLabeller:
    """Labels of N games' states.

    Args:
        planner: values the plans.
        num_games: N.
        share: of the states that is labelled whatever comes of them.
        death_ticks: states before each death that are labelled as well.
        seed: of the choice.
    """

    def __init__(
        self, planner: Planner, num_games: int, share: float, death_ticks: int, seed: int
    ) -> None:
        self.planner, self.share, self.death_ticks = planner, share, death_ticks
        self.random = np.random.default_rng(seed)
        self._step = 0
        shape = max(death_ticks, 1), num_games
        # Images of the last steps; step s is in row s modulo their number.
        self._images = np.zeros(shape, RAM_DTYPE)
        self._inputs = np.zeros((*shape, 0, 2), np.int16)
        self._open = np.zeros(shape, np.bool_)
        """Which of them belong to the running lives and have not been asked for."""
        self._asked: _Asked | None = None
        self._worker = ThreadPoolExecutor(1, "labels")

    def see(self, ram: NDArray[np.void], pending: NDArray[np.int16]) -> None:
        """Keep the images ``(N,)`` that are about to be decided on, with the inputs under way."""
        if pending.shape[1:] != self._inputs.shape[2:]:
            self._inputs = np.zeros((*self._images.shape, *pending.shape[1:]), np.int16)
        here = self._step % len(self._images)
        self._images[here], self._inputs[here], self._open[here] = ram, pending, True

    def label(self, died: NDArray[np.bool_], game_over: NDArray[np.bool_]) -> LateLabels | None:
        """Ask for labels of what was seen; return those that were asked for a step ago.

        Args:
            died: where the decision cost a life, ``(N,)``.
            game_over: where it ended the game, ``(N,)``.
        """
        late = self._take()
        wanted = np.zeros_like(self._open)
        wanted[self._step % len(wanted)] = self.random.random(len(died)) < self.share
        if self.death_ticks:
            wanted[:, died] = True
        wanted &= self._open
        self._ask(wanted)
        self._open[wanted] = False
        self.forget(died | game_over)
        self._step += 1
        return late

    def _ask(self, wanted: NDArray[np.bool_]) -> None:
        """Hand the states ``wanted`` (by row of the images and game) to the thread."""
        row, game = np.nonzero(wanted)
        self._asked = None
        if row.size:
            step = self._step - (self._step - row) % len(wanted)
            images, inputs = self._images[row, game], self._inputs[row, game]
            labels = self._worker.submit(merged_plans, self.planner, images, inputs)
            self._asked = _Asked(step, game, labels)

    def _take(self) -> LateLabels | None:
        """Wait for the labels that are under way."""
        if self._asked is None:
            return None
        step, game, labels = self._asked
        return LateLabels(self._step - step, game, *labels.result())

    def forget(self, games: NDArray[np.bool_]) -> None:
        """Label no more of what was seen of ``games``, ``(N,)``: another life begins."""
        self._open[:, games] = False

    def state_dict(self) -> dict[str, Any]:
        """Return images, newest first, and which of them are open or asked for, ``(N, ...)``.

        Labels under way are computed again: they depend on nothing but the image.
        """
        asked = np.zeros_like(self._open)
        if self._asked is not None:
            asked[self._asked.step % len(asked), self._asked.game] = True
        order = (self._step - 1 - np.arange(len(asked))) % len(asked)
        inputs = np.zeros((*asked.shape, MAX_INPUT_DELAY, 2), np.int16)
        delay = self._inputs.shape[2]
        inputs[:, :, :delay] = self._inputs
        images = as_bytes(self._images)
        arrays: dict[str, NDArray[Any]] = {
            "images": images,
            "inputs": inputs,
            "open": self._open,
            "asked": asked,
        }
        state = {name: array[order].swapaxes(0, 1).copy() for name, array in arrays.items()}
        return {**state, "delay": delay, "random": self.random.bit_generator.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from ``state_dict``; ``ValueError`` for anything else."""
        # Newest first there; here as if they had been the first steps.
        steps, games = self._open.shape
        arrays = {
            name: np.ascontiguousarray(np.asarray(state[name]).swapaxes(0, 1)[::-1])
            for name in ("images", "inputs", "open", "asked")
        }
        if arrays["open"].shape != (steps, games):
            raise ValueError(f"labels of shape {arrays['open'].shape}, not {(steps, games)}")
        self._images = from_bytes(arrays["images"])
        self._inputs = arrays["inputs"][:, :, : int(state["delay"])].astype(np.int16)
        self._open = arrays["open"].astype(np.bool_)
        self._step = steps - 1
        self._ask(arrays["asked"].astype(np.bool_))
        self._step = steps
        self.random.bit_generator.state = state["random"]


def merged_plans(planner: Planner, images: NDArray[np.void], inputs: NDArray[np.int16]) -> Merged:
    """Return the labels ``(M, PLANS)`` of M images and the inputs under way."""
    return merge_plans(*planner.evaluate_plans(images, inputs))


def make_labeller(config: Config, games: Games, drivers_seed: int) -> PlanLabeller | None:
    """Return what labels states of ``games``; None unless ``teacher.labels`` is ``plans``.

    Raises:
        UserError: other games than Tempest.
    """
    teacher = config.teacher
    if teacher.labels != "plans":
        return None
    if not isinstance(games, TempestGames):
        raise UserError(
            "teacher.labels=plans values plans in Tempest's simulator, and these are other games; "
            "leave it at action"
        )
    seed = np.random.SeedSequence(drivers_seed, spawn_key=(LABEL_STREAM,))
    return PlanLabeller(
        Planner(seed=config.run.seed),
        games.num_games,
        teacher.label_share,
        teacher.death_labels,
        int(seed.generate_state(1)[0]),
    )

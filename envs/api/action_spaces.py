"""The three forms of an action, and what each means at the controls.

=============  ====================================================================
``"hybrid"``   ``Dict(buttons=Discrete(4), spinner=Box(-1, 1, (1,)))``
``"box"``      ``Box(-1, 1, (3,))``: fire if above 0, zap if above 0, spinner
``"discrete"`` ``Discrete(4 * K)``: ``buttons * K + knot``, K an odd number of knots
=============  ====================================================================

``buttons`` is fire + 2*zap.  The spinner is in units of 31 knob counts a tick, which is the most
the game uses and nearly two lanes; positive values lower the lane number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeAlias

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from tempest_agent.envs.checks import is_whole
from tempest_agent.envs.engine.hybrid_controls import (
    NAN_SPINNER,
    NO_NUMBER,
    NO_PAIR,
    decode_hybrid,
    spinner_counts,
)
from tempest_agent.envs.machine.inputs import BUTTON_PAIRS, SPINNER_MAX
from tempest_agent.envs.messages import shown

Controls: TypeAlias = tuple[NDArray[np.int8], NDArray[np.uint8]]
"""Knob counts a tick and buttons, one each per game."""


ACTION_TYPES = ("hybrid", "box", "discrete")
DEFAULT_SPINNER_KNOTS = 17

_HYBRID_PARTS = {"buttons", "spinner"}


def knot_counts(knots: int) -> NDArray[np.int8]:
    """Return the counts of ``knots`` evenly spaced spinner values, shape ``(knots,)``.

    ``ValueError`` unless ``knots`` is an odd number from 1 to 63: with an even number the spinner
    could not rest, and more would repeat counts.
    """
    if not is_whole(knots) or knots % 2 == 0 or not 1 <= knots <= 63:
        raise ValueError(
            f"spinner_knots={shown(knots)}: an odd number from 1 to 63 is needed, so that one knot "
            "is the spinner at rest; 17 is the default"
        )
    if knots == 1:
        return np.zeros(1, np.int8)
    return spinner_counts(np.linspace(-1.0, 1.0, knots))


class ActionForm(ABC):
    """A space of actions and its meaning."""

    space: spaces.Space[Any]

    def batched(self, num_games: int) -> spaces.Space[Any]:
        """Return the space of ``num_games`` actions together, as Gymnasium batches it."""
        return batch_space(self.space, num_games)

    @abstractmethod
    def decode(self, actions: Any, num_games: int) -> Controls:
        """Return the controls of a batch of actions; ``ValueError`` unless they fit the space."""

    def parts(self, actions: Any) -> tuple[Any, Any] | None:
        """Return buttons and spinner of hybrid actions, unchecked: compiled code checks them."""
        return None

    @abstractmethod
    def single(self, action: Any) -> Any:
        """Return one action as a batch of one."""


class HybridActions(ActionForm):
    """Buttons and spinner by name."""

    def __init__(self) -> None:
        self.space = spaces.Dict(
            {
                "buttons": spaces.Discrete(BUTTON_PAIRS),
                "spinner": spaces.Box(-1.0, 1.0, (1,), np.float32),
            }
        )

    def decode(self, actions: Any, num_games: int) -> Controls:
        if not isinstance(actions, dict) or actions.keys() != _HYBRID_PARTS:
            raise ValueError(
                f"action={shown(actions)}: action_type='hybrid' takes a dict with 'buttons' and "
                "'spinner'; action_type='box' takes an array"
            )
        buttons = _whole_numbers(actions["buttons"], (num_games,), "buttons")
        spinner = _array(actions["spinner"], (num_games, 1), "spinner")
        controls = np.empty(num_games, np.int8), np.empty(num_games, np.uint8)
        wrong = decode_hybrid(buttons, spinner, *controls)
        if wrong & NO_PAIR:
            raise ValueError(_outside(buttons, BUTTON_PAIRS, "buttons"))
        if wrong & NO_NUMBER:
            raise ValueError(NAN_SPINNER)
        return controls

    def parts(self, actions: Any) -> tuple[Any, Any] | None:
        if type(actions) is dict and len(actions) == 2:
            return actions.get("buttons"), actions.get("spinner")
        return None

    def single(self, action: Any) -> Any:
        if not isinstance(action, dict):
            return action  # decode() says what is wrong with it
        shapes = {"buttons": (), "spinner": (1,)}
        return {name: _one(value, shapes.get(name), name) for name, value in action.items()}


class BoxActions(ActionForm):
    """Three numbers, for algorithms with continuous actions."""

    def __init__(self) -> None:
        self.space = spaces.Box(-1.0, 1.0, (3,), np.float32)

    def decode(self, actions: Any, num_games: int) -> Controls:
        values = _array(actions, (num_games, 3), "the action")
        buttons = (values[:, 0] > 0) + 2 * (values[:, 1] > 0)
        return spinner_counts(values[:, 2]), buttons.astype(np.uint8)

    def single(self, action: Any) -> Any:
        return _one(action, (3,), "the action")


class DiscreteActions(ActionForm):
    """One number, for algorithms with a finite set of actions."""

    def __init__(self, knots: int = DEFAULT_SPINNER_KNOTS) -> None:
        self.counts = knot_counts(knots)
        self.space = spaces.Discrete(BUTTON_PAIRS * knots)

    def decode(self, actions: Any, num_games: int) -> Controls:
        knots = len(self.counts)
        numbers = _numbers(actions, (num_games,), BUTTON_PAIRS * knots, "the action")
        return self.counts[numbers % knots], (numbers // knots).astype(np.uint8)

    def single(self, action: Any) -> Any:
        return _one(action, (), "the action")


def action_form(action_type: str, knots: int = DEFAULT_SPINNER_KNOTS) -> ActionForm:
    """Return the form named ``action_type``; ``ValueError`` for an unknown one."""
    if action_type == "hybrid":
        return HybridActions()
    if action_type == "box":
        return BoxActions()
    if action_type == "discrete":
        return DiscreteActions(knots)
    raise ValueError(
        f"action_type={shown(action_type)}: one of 'hybrid', 'box', 'discrete'; "
        "Stable-Baselines3 needs 'box' (SAC, PPO, TD3) or 'discrete' (DQN)"
    )


def encode(action_type: str, spin: int, buttons: int) -> Any:
    """Return the ``hybrid`` or ``box`` action that puts in these counts and buttons."""
    spinner = np.float32(spin / SPINNER_MAX)
    if action_type == "hybrid":
        return {"buttons": np.int64(buttons), "spinner": np.array([spinner], np.float32)}
    if action_type == "box":
        fire, zap = (1.0 if buttons & bit else -1.0 for bit in (1, 2))
        return np.array([fire, zap, spinner], np.float32)
    raise ValueError(
        f"action_type={shown(action_type)}: only 'hybrid' and 'box' can express every knob count"
    )


def _one(value: Any, shape: tuple[int, ...] | None, what: str) -> NDArray[Any]:
    """Return one game's ``value`` as a batch of one; ``ValueError`` unless it has this shape."""
    array = np.asarray(value)
    if shape is not None and array.shape != shape:
        needed = f"of shape {shape}" if shape else "a single number"
        raise ValueError(f"{what}={shown(value)} has shape {array.shape}: {needed} is needed")
    return array[None]


def _array(values: Any, shape: tuple[int, ...], what: str) -> NDArray[np.floating[Any]]:
    array = np.asarray(values)
    if array.shape != shape:
        raise ValueError(f"{what} has shape {array.shape}, but {shape} is needed")
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{what} holds {array.dtype} values: numbers are needed")
    if array.dtype != np.float32:
        array = np.asarray(array, np.float64)
    return np.asarray(array, order="C")


def _whole_numbers(values: Any, shape: tuple[int, ...], what: str) -> NDArray[np.int64]:
    array = np.asarray(values)
    if array.shape != shape:
        raise ValueError(f"{what} has shape {array.shape}, but {shape} is needed")
    if array.dtype.kind not in "iu":
        raise ValueError(f"{what} holds {array.dtype} values: whole numbers are needed")
    return np.asarray(array, np.int64, order="C")


def _numbers(values: Any, shape: tuple[int, ...], count: int, what: str) -> NDArray[np.int64]:
    numbers = _whole_numbers(values, shape, what)
    # Seen as unsigned, a negative number is too large as well.
    if numbers.size and numbers.view(np.uint64).max() >= count:
        raise ValueError(_outside(numbers, count, what))
    return numbers


def _outside(numbers: NDArray[np.int64], count: int, what: str) -> str:
    return f"{what}={shown(numbers.tolist())}: numbers from 0 to {count - 1} are needed"

"""How an environment's actions are made from the student's: a number and a place in [-1, 1].

The student chooses one of n discrete values and, with it, one position on a continuous axis.
Environments write that as a ``Dict`` or a ``Tuple`` of one ``Discrete`` and one ``Box`` with a
single number; the arcade's games also as three numbers (``action_space``).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from tempest_agent.errors import UserError, brief

from .spaces import action_space

MOST_VALUES = 256
"""Discrete values that the replay has room for."""

FINE = 32_767
"""Steps from the middle of a continuous action to its ends: what int16 can hold."""


class ActionForm(ABC):
    """A space of actions.

    Attributes:
        num_pairs: values of the discrete part.
    """

    num_pairs: int

    @abstractmethod
    def batch(self, pair: NDArray[Any], position: NDArray[Any]) -> Any:
        """N actions as Gymnasium batches them, from ints ``(N,)`` and places in [-1, 1]."""

    @abstractmethod
    def each(self, pair: NDArray[Any], position: NDArray[Any]) -> Any:
        """The same as a sequence of N single actions, for SB3's vector environments."""


class ControlsForm(ActionForm):
    """Fire if above 0, zap if above 0, spinner: float32 ``(N, 3)``."""

    num_pairs = 4

    def batch(self, pair: NDArray[Any], position: NDArray[Any]) -> NDArray[np.float32]:
        fire, zap = (np.where(pair & bit, 1.0, -1.0) for bit in (1, 2))
        return np.stack((fire, zap, position), axis=1).astype(np.float32)

    each = batch


class HybridForm(ActionForm):
    """A ``Dict`` or ``Tuple`` of a ``Discrete`` and a ``Box`` with one number, in either order.

    Args:
        space: the action space of one environment.

    Raises:
        UserError: another kind of space, with what to do about it.
    """

    def __init__(self, space: spaces.Space[Any]) -> None:
        parts: dict[Any, spaces.Space[Any]]
        if isinstance(space, spaces.Dict):
            parts = dict(space.spaces)
        elif isinstance(space, spaces.Tuple):
            parts = dict(enumerate(space.spaces))
        else:
            raise UserError(
                f"HybridDQN needs a discrete and a continuous action together, not {brief(space)}; "
                "give Dict(Discrete, Box) or Tuple(Discrete, Box) (for Tempest "
                "action_type='hybrid'), or use SB3's DQN for discrete, SAC for continuous actions"
            )
        discrete = [key for key, part in parts.items() if isinstance(part, spaces.Discrete)]
        continuous = [key for key, part in parts.items() if isinstance(part, spaces.Box)]
        if len(parts) != 2 or len(discrete) != 1 or len(continuous) != 1:
            raise UserError(
                f"the action space {brief(space)} must have exactly one Discrete and one Box part; "
                "wrap the environment with an action that has"
            )
        self._named = isinstance(space, spaces.Dict)
        self._discrete, self._continuous = discrete[0], continuous[0]
        values, axis = parts[self._discrete], parts[self._continuous]
        assert isinstance(values, spaces.Discrete)
        assert isinstance(axis, spaces.Box)
        if math.prod(axis.shape) != 1 or not axis.is_bounded():
            raise UserError(
                f"the continuous action {brief(axis)} must be one number with finite bounds, such "
                "as Box(-1, 1, (1,)); wrap the environment with one"
            )
        if int(values.n) > MOST_VALUES:
            raise UserError(
                f"the discrete action has {values.n} values, HybridDQN takes at most "
                f"{MOST_VALUES}; put some of them together"
            )
        if int(values.n) < 2:
            raise UserError(
                f"the discrete action {brief(values)} leaves nothing to choose: use SB3's SAC on "
                "the continuous part alone"
            )
        self.num_pairs = int(values.n)
        self._values, self._axis = values, axis

    def batch(self, pair: NDArray[Any], position: NDArray[Any]) -> Any:
        axis = self._axis
        place = _whole(axis, position) if axis.dtype.kind in "biu" else _real(axis, position)
        parts = {
            self._discrete: pair.astype(self._values.dtype) + self._values.start,
            self._continuous: place.reshape(-1, *axis.shape),
        }
        return parts if self._named else (parts[0], parts[1])

    def each(self, pair: NDArray[Any], position: NDArray[Any]) -> list[Any]:
        batch = self.batch(pair, position)
        # With the ellipsis a place without dimensions stays an array, which a ``Box`` asks for.
        if isinstance(batch, Mapping):
            return [{key: part[i, ...] for key, part in batch.items()} for i in range(len(pair))]
        return [tuple(part[i, ...] for part in batch) for i in range(len(pair))]


def _real(axis: spaces.Box, position: NDArray[Any]) -> NDArray[Any]:
    """Places ``(N,)`` of a ``Box`` of real numbers, from places in [-1, 1]."""
    low, high = axis.low.astype(np.float64).item(), axis.high.astype(np.float64).item()
    # In halves, because the distance between the bounds may be more than a number can be.
    half = 0.5 * low + 0.5 * (position.astype(np.float64) + 1.0) * (0.5 * high - 0.5 * low)
    # Where the lower one is huge the sum would lose the upper one.
    place = np.where(position >= 1.0, high, 2.0 * half).astype(axis.dtype)
    return np.minimum(np.maximum(place, axis.low.item()), axis.high.item())


def _whole(axis: spaces.Box, position: NDArray[Any]) -> NDArray[Any]:
    """The same of a ``Box`` of whole numbers, each for an equal part of [-1, 1], ends included."""
    low, last = int(axis.low.item()), int(axis.high.item()) - int(axis.low.item())
    # Python's numbers: 64 bits do not hold the products.
    step = np.rint((np.clip(position, -1.0, 1.0) + 1.0) * FINE).astype(np.int64).astype(object)
    if last <= 2 * FINE:
        chosen = step * (last + 1) // (2 * FINE + 1)
    else:
        chosen = (step * last + FINE) // (2 * FINE)
    whole: NDArray[Any] = (chosen + low).astype(axis.dtype)
    return whole


def form_of(space: spaces.Space[Any]) -> ActionForm:
    """The form of an action space.

    Raises:
        UserError: HybridDQN cannot act in it.
    """
    return ControlsForm() if space == action_space() else HybridForm(space)
